"""What became of recent publications, which attributes they have, and what a condition finds."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.service.running import delivered, service_at

from tidings.engine.subscriber_replay import InterestReplay
from tidings.service.recent_publications import Interest, Replays

POLICY = {"k": 1, "window": {"name": "sliding", "length": 2}}
GENRES = ["drama", "drama", "comedy", "horror", "drama", "drama"]


def policy_that_holds(now: int) -> dict[str, Any]:
    """Return a policy whose quiet hours are around a time."""
    start, end = (time.strftime("%H:%M", time.gmtime(now + hours * 3_600)) for hours in (-1, 2))
    return {"k": 5, "rules": [{"name": "quiet", "start": start, "end": end, "zone": "UTC"}]}


def events(first: int) -> list[dict[str, Any]]:
    """Return events of consecutive seconds."""
    return [
        {
            "id": f"e{number}",
            "published_at": first + number,
            "attributes": {"genre": genre, "year": 2000 + number, "release day": True},
            "content": {"title": f"Film {number}"},
        }
        for number, genre in enumerate(GENRES)
    ]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    soon = int(time.time()) + 200  # the clock of rules never makes them late
    with service_at(str(tmp_path_factory.mktemp("decisions") / "t.db")) as client:
        client.put("/v1/subscribers/ada", json={"policy": POLICY})
        client.put("/v1/subscribers/bob", json={"policy": policy_that_holds(soon)})
        wishes = {"s1": ("genre = 'drama'", 0.5), "s2": ("year = 2000", 0.9)}
        for name, (where, prefrank) in wishes.items():
            form = {"subscriber": "ada", "where": where, "prefrank": prefrank}
            client.put(f"/v1/subscriptions/{name}", json=form)
        form = {"subscriber": "bob", "where": "genre = 'drama'"}
        client.put("/v1/subscriptions/b1", json=form, params={"wait": "applied"})
        client.post("/v1/events", json=events(soon), params={"wait": "delivered"})
        delivered(client, "ada", 1)
        yield client


def outcomes(client: httpx2.Client, subscriber: str, **parameters: Any) -> dict[str, str]:
    answer = client.get(f"/v1/decisions/{subscriber}", params=parameters)
    assert answer.status_code == 200, answer.text
    return {item["event"]: item["outcome"] for item in answer.json()["items"]}


def test_decisions_are_listed_with_their_reasons(client: httpx2.Client) -> None:
    sent = [item["event"] for item in client.get("/v1/notifications/ada").json()["items"]]
    listed = outcomes(client, "ada")
    assert list(listed) == ["e5", "e4", "e1", "e0"]
    assert {event for event, outcome in listed.items() if outcome == "delivered"} == set(sent)
    assert outcomes(client, "ada", show="unmatched") == {"e3": "unmatched", "e2": "unmatched"}
    assert list(outcomes(client, "ada", show="all")) == ["e5", "e4", "e3", "e2", "e1", "e0"]
    unsent = client.get("/v1/decisions/ada", params={"show": "unsent"}).json()
    assert unsent["publications"] == 6
    item = next(item for item in unsent["items"] if item["event"] == "e1")
    assert (item["outcome"], item["rank"], item["matched"]) == ("outranked", 0.5, ["s1"])
    assert item["content"] == {"title": "Film 1"}
    assert item["attributes"]["year"] == 2001
    assert "newer events rank at least as high" in item["verdict"]


def test_what_comes_during_a_question_is_not_taken_for_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_at(str(tmp_path / "t.db")) as client:
        client.put("/v1/subscribers/ada", json={"policy": POLICY})
        for name, where, prefrank in (("s1", "true", 0.4), ("s2", "n = 0", 0.9)):
            form = {"subscriber": "ada", "where": where, "prefrank": prefrank}
            client.put(f"/v1/subscriptions/{name}", json=form, params={"wait": "applied"})

        def publish(number: int) -> None:
            event = {"id": f"e{number}", "attributes": {"n": number}}
            client.post("/v1/events", json=event, params={"wait": "delivered"})

        replays = Replays.of

        def replay_and_publish(self: Replays, *interests: Interest) -> list[InterestReplay]:
            found = replays(self, *interests)
            publish(1)
            return found

        publish(0)
        monkeypatch.setattr(Replays, "of", replay_and_publish)
        assert outcomes(client, "ada") == {"e0": "delivered"}
        monkeypatch.undo()
        assert outcomes(client, "ada") == {"e1": "open", "e0": "delivered"}


def test_pages_of_decisions_follow_each_other(client: httpx2.Client) -> None:
    found, before = list[str](), None
    for _ in range(5):
        parameters: dict[str, Any] = {"show": "all", "limit": 2}
        parameters |= {"before": before} if before else {}
        page = client.get("/v1/decisions/ada", params=parameters).json()
        found += [item["event"] for item in page["items"]]
        before = page["next"]
        if before is None:
            break
    assert found == ["e5", "e4", "e3", "e2", "e1", "e0"]


def test_what_rules_hold_says_until_when(client: httpx2.Client) -> None:
    page = client.get("/v1/decisions/bob", params={"show": "unsent"}).json()
    assert {item["outcome"] for item in page["items"]} == {"held"}
    assert all(item["until"] for item in page["items"])


def test_an_explanation_has_fields_beside_the_text(client: httpx2.Client) -> None:
    why = client.get("/v1/explain", params={"subscriber": "ada", "event": "e1"}).json()
    assert why["outcome"] == "outranked"
    assert why["verdict"] in why["text"]
    beaten_by = [rival["event"] for rival in why["standing"]["choices"][0]["chosen"]]
    assert beaten_by == ["e0"]
    assert why["events"].keys() == {"e0", "e1", "e4"}
    assert why["events"]["e0"]["content"] == {"title": "Film 0"}
    failed = {reason["subscription"]: reason["fails"] for reason in why["reasons"]}
    assert failed["s2"][0]["value"] == 2001


@pytest.mark.parametrize(
    "parameters", [{"show": "some"}, {"limit": 0}, {"limit": 101}, {"before": ""}]
)
def test_a_wrong_parameter_is_refused(client: httpx2.Client, parameters: Any) -> None:
    assert client.get("/v1/decisions/ada", params=parameters).status_code == 422
    assert client.get("/v1/decisions/nobody").status_code == 404


def test_attributes_have_their_values_as_conditions_write_them(client: httpx2.Client) -> None:
    answer = client.get("/v1/attributes").json()
    items = {item["name"]: item for item in answer["items"]}
    assert answer["publications"] == 6
    assert items["genre"] == {
        "name": "genre",
        "written": "genre",
        "publications": 6,
        "types": ["string"],
        "distinct": 3,
        "values": [
            {"written": "'drama'", "publications": 4},
            {"written": "'comedy'", "publications": 1},
            {"written": "'horror'", "publications": 1},
        ],
    }
    assert items["release day"]["written"] == '"release day"'
    assert items["release day"]["values"] == [{"written": "true", "publications": 6}]
    for item in items.values():
        for value in item["values"]:
            where = f"{item['written']} = {value['written']}"
            found = client.post("/v1/conditions:check", json={"where": where}).json()
            assert found["matched"] == value["publications"]
    parameters: dict[str, Any] = {"name": "genre", "contains": "OM", "limit": 1}
    [found] = client.get("/v1/attributes", params=parameters).json()["items"]
    assert [value["written"] for value in found["values"]] == ["'comedy'"]
    assert client.get("/v1/attributes", params={"name": "none"}).json()["items"] == []


def test_a_condition_is_counted_with_examples(client: httpx2.Client) -> None:
    answer = client.post("/v1/conditions:check", json={"where": "genre = 'drama'"}).json()
    assert (answer["publications"], answer["matched"]) == (6, 4)
    assert [example["event"] for example in answer["examples"]] == ["e5", "e4", "e1", "e0"]
    assert answer["advice"] == []


def test_a_condition_that_cannot_match_gets_advice(client: httpx2.Client) -> None:
    answer = client.post("/v1/conditions:check", json={"where": "gnre = 'drama'"}).json()
    assert answer["matched"] == 0
    [advice] = answer["advice"]
    assert advice["predicate"] == "gnre = 'drama'"
    assert "did you mean genre?" in advice["text"]


def test_a_condition_that_cannot_be_read_has_a_position(client: httpx2.Client) -> None:
    answer = client.post("/v1/conditions:check", json={"where": "year > and"}).json()
    assert answer["problem"]["position"] == 5
    assert answer["problem"]["detail"].startswith("this cannot be read as a condition")
    assert answer["matched"] is None
    empty = client.post("/v1/conditions:check", json={"where": "a > 2 and a < 1"}).json()
    assert "nothing can satisfy it" in empty["problem"]["detail"]
    assert client.post("/v1/conditions:check", json={}).status_code == 422
    assert client.post("/v1/conditions:check", json={"what": "a = 1"}).status_code == 422
    assert client.post("/v1/conditions:check", json={"where": 7}).status_code == 422


def test_what_came_too_late_was_not_sent(tmp_path: Path) -> None:
    now = int(time.time())
    with service_at(str(tmp_path / "t.db")) as client:
        form = {"subscriber": "ada", "where": "n = 1"}
        client.put("/v1/subscriptions/s1", json=form, params={"wait": "applied"})
        for name, at, n in (("new", now, 1), ("late", now - 60, 1), ("other", now - 60, 2)):
            event = {"id": name, "published_at": at, "attributes": {"n": n}}
            client.post("/v1/events", json=event, params={"wait": "delivered"})
        assert outcomes(client, "ada") == {"late": "late", "new": "delivered"}
        assert outcomes(client, "ada", show="unsent") == {"late": "late"}
        assert outcomes(client, "ada", show="unmatched") == {"other": "unmatched"}
        question = {"subscriber": "ada", "event": "late"}
        assert "too late" in client.get("/v1/explain", params=question).json()["note"]
