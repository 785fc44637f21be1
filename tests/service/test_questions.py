"""What would have been, and whom an event reaches: answers of the service, judged by an engine."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.service.running import delivered, service_at

from tidings import Engine, Subscriber, Subscription
from tidings.formats.json_forms import loads_policy

SAVED = {"k": 3, "window": {"name": "sliding", "length": 6}}
TRIED = {
    "k": 2,
    "window": {"name": "sliding", "length": 4},
    "diversify": {"name": "divrank", "sigma": 0.3},
    "rules": [{"name": "quota", "n": 4, "per": "hour", "pick": "first"}],
}
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "s1", "subscriber": "ada", "where": "genre = 'drama'", "prefrank": 0.5},
    {"id": "s2", "subscriber": "ada", "where": "year >= 2000"},
]
EVENTS: list[dict[str, Any]] = [
    {
        "id": f"e{number}",
        "published_at": f"2026-01-01T00:{number:02d}:00Z",
        "attributes": {"genre": "drama" if number % 3 else "comedy", "year": 1990 + number},
        "content": {"title": f"Film {number}"},
    }
    for number in range(20)
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """Return a client of a service that has taken some events; its tests change nothing."""
    with service_at(str(tmp_path_factory.mktemp("questions") / "t.db")) as running:
        running.put("/v1/subscribers/ada", json={"policy": SAVED, "prefers": [["s2", "s1"]]})
        for form in SUBSCRIPTIONS:
            running.put(f"/v1/subscriptions/{form['id']}", json=form, params={"wait": "applied"})
        running.post("/v1/events", json=EVENTS, params={"wait": "delivered"})
        delivered(running, "ada", 1)
        yield running


def expected(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what an engine delivers."""
    engine = Engine()
    engine.subscribe(Subscriber("ada", loads_policy(policy), [("s2", "s1")]))
    engine.add_many([Subscription(**form) for form in SUBSCRIPTIONS])
    return [delivery.to_dict() for delivery in engine.publish_many(EVENTS)]


def test_a_preview_compares_the_saved_policy_with_the_one_tried(client: httpx2.Client) -> None:
    question = {"subscriber": "ada", "policy": TRIED, "compare": True}
    answer = client.post("/v1/preview", json=question).json()
    tried, saved = expected(TRIED), expected(SAVED)
    assert answer["items"] == tried
    comparison = answer["comparison"]
    had, has = ({each["event"] for each in listed} for listed in (saved, tried))
    changes = {
        "comes": [delivery for delivery in reversed(tried) if delivery["event"] not in had],
        "goes": [delivery for delivery in reversed(saved) if delivery["event"] not in has],
        "stays": [delivery for delivery in reversed(tried) if delivery["event"] in had],
    }
    for name, listed in changes.items():
        assert comparison[name] == {"count": len(listed), "items": listed}
    assert comparison["goes"]["count"] > 0
    for side, deliveries in (("tried", tried), ("saved", saved)):
        ranks = [delivery["rank"] for delivery in deliveries]
        assert comparison[side]["delivered"] == len(deliveries)
        assert comparison[side]["mean_rank"] == pytest.approx(sum(ranks) / len(ranks))
        assert sum(comparison["timeline"][side]) == len(deliveries)
    assert sum(comparison["timeline"]["published"]) == answer["publications"] == len(EVENTS)


def test_lists_of_a_preview_are_limited(client: httpx2.Client) -> None:
    question = {"subscriber": "ada", "policy": TRIED, "compare": True, "limit": 1}
    answer = client.post("/v1/preview", json=question).json()
    assert len(answer["items"]) == 1
    assert [len(answer["comparison"][name]["items"]) for name in ("goes", "stays")] == [1, 1]


def test_what_is_the_same_neither_comes_nor_goes(client: httpx2.Client) -> None:
    question = {"subscriber": "ada", "compare": True}
    comparison = client.post("/v1/preview", json=question).json()["comparison"]
    assert comparison["tried"] == comparison["saved"]
    assert (comparison["comes"]["count"], comparison["goes"]["count"]) == (0, 0)


@pytest.mark.parametrize(
    ("question", "detail"),
    [
        ({"where": "true", "compare": True}, "needs a subscriber"),
        ({"compare": "yes"}, "compare is true or false"),
        ({"subscriber": "ada", "limit": 0}, "limit"),
        ({"subscriptions": [SUBSCRIPTIONS[0]] * 2}, "subscription 's1' is listed twice"),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    client: httpx2.Client, question: dict[str, Any], detail: str
) -> None:
    answer = client.post("/v1/preview", json=question)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]


def test_a_target_explains_the_best_and_what_others_lack(client: httpx2.Client) -> None:
    event = {"attributes": {"genre": "comedy", "year": 2005}}
    answer = client.post("/v1/target", json={"event": event, "k": 1, "others": 5}).json()
    [best], [other] = answer["items"], answer["others"]
    assert (best["subscription"], best["position"]) == ("s2", 1)
    assert best["reason"]["holds"] == ["year >= 2000"]
    assert (other["subscription"], other["score"]) == ("s1", None)
    assert other["reason"]["fails"][0]["value"] == "comedy"
    answer = client.post("/v1/target", json={"event": event, "others": 0}).json()
    assert answer["others"] == []
    refused = client.post("/v1/target", json={"event": event, "others": 101})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/others")


def test_the_last_publications_are_listed_newest_first(client: httpx2.Client) -> None:
    items = client.get("/v1/events", params={"limit": 2}).json()["items"]
    assert items == [EVENTS[-1], EVENTS[-2]]
