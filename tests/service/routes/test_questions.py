"""Questions over HTTP: every wrong one is refused with its field, and nobody asks for others."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.service.routes.serving import Served, problem, serving

from tidings import Event, Subscription
from tidings.store import NewPublication

EVENTS = [Event(f"e{n}", {"genre": "drama" if n % 2 else "comedy", "n": n}, n) for n in range(6)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("questions")) as running:
        running.store.catalogue.put(
            {"id": "ada", "policy": {"k": 2}},
            Subscription("s1", "ada", where="genre = 'drama'", score=0.5),
            Subscription("s2", "ada", where="n >= 3"),
            Subscription("s3", "bob", where="n >= 0", score=0.25),
        )
        running.store.publications.accept([NewPublication(event) for event in EVENTS], 1)
        running.process()
        yield running


def test_a_target_has_the_best_subscriptions(served: Served) -> None:
    question = {"event": {"id": "e", "attributes": {"genre": "drama", "n": 5}}}
    found = served.admin.post("/v1/target", json=question).json()["items"]
    assert [(item["subscription"], item["score"]) for item in found] == [
        ("s2", 1.0),
        ("s1", 0.5),
        ("s3", 0.25),
    ]
    assert len(served.admin.post("/v1/target", json=question | {"k": 1}).json()["items"]) == 1


def test_others_are_explained_beside_the_best(served: Served) -> None:
    question = {"event": {"attributes": {"n": 1}}, "k": 1, "others": 2}
    answer = served.admin.post("/v1/target", json=question).json()
    assert [item["subscription"] for item in answer["items"]] == ["s3"]
    assert {item["subscription"] for item in answer["others"]} == {"s1", "s2"}


def test_a_target_of_too_many_names_the_limit(served: Served) -> None:
    form = {"event": {"attributes": {}}, "k": 1_001}
    answer = served.admin.post("/v1/target", json=form).json()
    assert answer["detail"] == "k is 1,001, above the limit k = 1,000"


@pytest.mark.parametrize(
    ("form", "pointer"),
    [
        ({}, ""),
        ({"event": {"attributes": {"n": {}}}}, "/event"),
        ({"event": 7}, "/event"),
        ({"event": {"attributes": {}}, "k": 0}, "/k"),
        ({"event": {"attributes": {}}, "k": 1_001}, "/k"),
        ({"event": {"attributes": {}}, "scorer": "foo"}, "/scorer"),
        ({"event": {"attributes": {}}, "others": -1}, "/others"),
        ({"event": {"attributes": {}}, "others": 101}, "/others"),
        ({"event": {"attributes": {}}, "x": 1}, "/x"),
    ],
)
def test_a_wrong_question_about_a_target_is_refused(
    served: Served, form: dict[str, Any], pointer: str
) -> None:
    status, _, found = problem(served.admin.post("/v1/target", json=form))
    assert status == 422
    assert found is None or found == pointer or str(found).startswith(f"{pointer}/")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, "pass a subscriber, a condition `where`, or subscriptions"),
        ({"where": "n = 1", "compare": True}, "`compare` needs a subscriber"),
        ({"where": "n >"}, None),
        ({"where": "n = 1", "policy": {"k": 0}}, None),
        ({"where": "n = 1", "limit": 0}, None),
        ({"where": "n = 1", "limit": 1_001}, None),
        ({"where": "n = 1", "compare": "yes"}, None),
        ({"where": "n = 1", "subscriber": 7}, None),
        (
            {"subscriptions": "all"},
            "`subscriptions` is a list of at most 1,000 subscriptions",
        ),
        (
            {
                "where": "n = 1",
                "subscriptions": [{"id": "where", "subscriber": "x", "where": "n = 2"}],
            },
            "subscription 'where' is listed twice",
        ),
    ],
)
def test_a_wrong_question_about_a_preview_is_refused(
    served: Served, form: dict[str, Any], words: str | None
) -> None:
    status, detail, _ = problem(served.admin.post("/v1/preview", json=form))
    assert status == 422
    assert words is None or detail == words


def preview(served: Served, **form: Any) -> list[tuple[str, str]]:
    answer = served.admin.post("/v1/preview", json=form)
    assert answer.status_code == 200, answer.text
    assert answer.json()["publications"] == len(EVENTS)
    return [(item["subscriber"], item["event"]) for item in answer.json()["items"]]


def test_a_preview_takes_what_is_left_out_from_the_subscriber(served: Served) -> None:
    everything = preview(served, subscriber="ada", policy={"k": 9})
    assert [event for _, event in everything] == ["e1", "e3", "e4", "e5"]
    assert {name for name, _ in everything} == {"ada"}
    condition = preview(served, subscriber="ada", policy={"k": 9}, where="n = 2")
    assert condition == [("ada", "e2")]
    assert preview(served, where="n = 2") == [("preview", "e2")]
    own = {"id": "x", "subscriber": "somebody", "where": "n = 4"}
    assert preview(served, subscriber="ada", subscriptions=[own]) == [("ada", "e4")]
    assert preview(served, subscriber="ada", where="n = 2", subscriptions=[own]) == [
        *(("ada", "e2"), ("ada", "e4"))
    ]


def test_a_preview_returns_the_last_deliveries(served: Served) -> None:
    limited = preview(served, subscriber="ada", policy={"k": 9}, limit=2)
    assert limited == [("ada", "e4"), ("ada", "e5")]


def test_a_condition_is_counted_or_has_a_problem(served: Served) -> None:
    right = served.admin.post("/v1/conditions:check", json={"where": "n >= 3"}).json()
    assert (right["problem"], right["publications"], right["matched"]) == (None, 6, 3)
    wrong = served.admin.post("/v1/conditions:check", json={"where": "n >"}).json()
    assert wrong["problem"]["position"] == "n >".index(">")
    assert "condition:" not in wrong["problem"]["detail"].partition("\n")[0]
    assert (wrong["publications"], wrong["matched"], wrong["examples"]) == (None, None, [])


@pytest.mark.parametrize("form", [{}, {"where": 7}, {"where": "n = 1", "x": 1}])
def test_another_question_about_a_condition_is_refused(
    served: Served, form: dict[str, Any]
) -> None:
    assert served.admin.post("/v1/conditions:check", json=form).status_code == 422


def test_attributes_are_listed_for_everybody(served: Served) -> None:
    query: dict[str, Any] = {"name": "genre", "contains": "DRA", "limit": 1}
    for client in (served.admin, served.as_subscriber("ada")):
        answer = client.get("/v1/attributes", params=query).json()
        assert answer["publications"] == 6
        assert [value["written"] for value in answer["items"][0]["values"]] == ["'drama'"]
    assert served.admin.get("/v1/attributes", params={"limit": 101}).status_code == 422
    assert served.admin.get("/v1/attributes", params={"name": ""}).status_code == 422


def test_subscribers_ask_about_themselves_only(served: Served) -> None:
    ada = served.as_subscriber("ada")
    question = {"event": {"attributes": {"n": 1}}}
    assert ada.post("/v1/target", json=question).status_code == 403
    for name, status in (("ada", 200), ("bob", 403)):
        query = {"subscriber": name, "event": "e1"}
        assert ada.get("/v1/explain", params=query).status_code == status
        assert ada.get(f"/v1/decisions/{name}").status_code == status
        assert ada.post("/v1/preview", json={"subscriber": name}).status_code == status
    items = ada.post("/v1/preview", json={"policy": {"k": 9}}).json()["items"]
    assert {item["subscriber"] for item in items} == {"ada"}
