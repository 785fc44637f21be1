"""Subscribers and subscriptions over HTTP: put, conditions on what exists, reach, and imports."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.service.routes.serving import Served, problem, serving

from tidings.service.settings import ServiceSettings

NUMBERS = count()
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = ServiceSettings(subscriptions=2, wait_s=0.05)
    with serving(tmp_path_factory.mktemp("records"), settings) as running:
        yield running


@pytest.fixture
def name() -> str:
    """Return the id of a subscriber that no other test has."""
    return f"ada{next(NUMBERS)}"


def put(served: Served, name: str, where: str = "n = 1", owner: str = "", **more: Any) -> Any:
    form = {"subscriber": owner or name, "where": where}
    return served.admin.put(f"/v1/subscriptions/{name}", json=form, **more)


def test_a_subscriber_is_added_and_replaced(served: Served, name: str) -> None:
    path = f"/v1/subscribers/{name}"
    assert problem(served.admin.get(path)) == (404, "there is no such subscriber", None)
    added = served.admin.put(path, json={"policy": {"k": 3}})
    assert (added.status_code, added.json()["applied"]) == (201, None)
    assert added.json()["version"] == served.store.catalogue.version()
    assert served.admin.get(path).json() == {"id": name, "policy": {"k": 3}}
    replaced = served.admin.put(path, json={"id": name, "policy": {"k": 4}})
    assert replaced.status_code == 200
    assert served.admin.get(path).json()["policy"] == {"k": 4}


@pytest.mark.parametrize("kind", ["subscribers", "subscriptions"])
def test_the_id_of_the_body_is_that_of_the_path(served: Served, name: str, kind: str) -> None:
    form = {"id": "other", "subscriber": "x", "where": "n = 1"}
    assert problem(served.admin.put(f"/v1/{kind}/{name}", json=form)) == (
        422,
        "the id in the body differs from that in the path",
        "/id",
    )


@pytest.mark.parametrize(
    ("kind", "form", "pointer"),
    [
        ("subscribers", {"policy": {"k": 0}}, "/policy"),
        ("subscribers", {"policy": {"window": "foo"}}, "/policy"),
        ("subscriptions", {"subscriber": "x", "where": "n >"}, "/where"),
        ("subscriptions", {"subscriber": "", "where": "n = 1"}, "/subscriber"),
    ],
)
def test_a_wrong_record_is_refused_with_its_field(
    served: Served, name: str, kind: str, form: Any, pointer: str
) -> None:
    status, _, found = problem(served.admin.put(f"/v1/{kind}/{name}", json=form))
    assert status == 422
    assert str(found).startswith(pointer)


def test_conditions_on_what_exists_are_checked(served: Served, name: str) -> None:
    path, form = f"/v1/subscribers/{name}", {"policy": {"k": 3}}
    new, old = {"If-None-Match": "*"}, {"If-Match": "*"}
    assert served.admin.put(path, json=form, headers=old).status_code == 412
    assert served.admin.put(path, json=form, headers=new).status_code == 201
    assert served.admin.put(path, json=form, headers=new).status_code == 200  # nothing changes
    assert served.admin.put(path, json={"policy": {"k": 4}}, headers=new).status_code == 412
    assert served.admin.put(path, json={"policy": {"k": 4}}, headers=old).status_code == 200
    wrong = served.admin.put(path, json=form, headers={"If-Match": "7"})
    assert wrong.status_code == 422


def test_a_record_is_removed_once(served: Served, name: str) -> None:
    put(served, name)
    path = f"/v1/subscriptions/{name}"
    removed = served.admin.delete(path)
    assert removed.json()["version"] == served.store.catalogue.version()
    assert problem(served.admin.delete(path)) == (404, "there is no such subscription", None)
    assert problem(served.admin.get(path))[0] == 404


def test_a_subscriber_is_paused_and_resumed(served: Served, name: str) -> None:
    path = f"/v1/subscribers/{name}"
    assert problem(served.admin.post(f"{path}/pause")) == (404, "there is no such subscriber", None)
    served.admin.put(path, json={})
    served.admin.post(f"{path}/pause")
    assert served.admin.get(path).json()["paused"] is True
    served.admin.post(f"{path}/resume")
    assert "paused" not in served.admin.get(path).json()


def test_a_change_that_is_not_applied_in_time_says_so(served: Served, name: str) -> None:
    path, wait = f"/v1/subscribers/{name}", {"wait": "applied"}
    assert served.admin.put(path, json={}, params=wait).json()["applied"] is False
    served.process()
    assert served.admin.put(path, json={}, params=wait).json()["applied"] is True


def test_a_subscriber_has_a_maximum_of_subscriptions(served: Served, name: str) -> None:
    for number in range(2):
        assert put(served, f"{name}:{number}", owner=name).status_code == 201
    assert problem(put(served, f"{name}:2", owner=name)) == (
        409,
        "the subscriber has 2 subscriptions, which is the maximum",
        None,
    )
    assert put(served, f"{name}:1", "n = 2", owner=name).status_code == 200


def test_a_subscriber_changes_its_own_subscriptions(served: Served, name: str) -> None:
    own = served.as_subscriber(name)
    path, form = f"/v1/subscriptions/{name}:films", {"subscriber": name, "where": "n = 1"}
    assert own.put(path, json=form).status_code == 201
    assert own.put(path, json=form | {"where": "n = 2"}).status_code == 200
    assert own.get(path).json()["where"] == "n = 2"
    assert [each["id"] for each in own.get("/v1/subscriptions").json()["items"]] == [
        f"{name}:films"
    ]
    assert own.delete(path).status_code == 200


def test_a_subscriber_does_not_learn_of_the_subscriptions_of_others(
    served: Served, name: str
) -> None:
    own, other = served.as_subscriber(name), f"{name}-other"
    put(served, other)
    missing = (404, "there is no such subscription", None)
    for request in (own.get, own.delete):
        assert problem(request(f"/v1/subscriptions/{other}")) == missing
        assert problem(request(f"/v1/subscriptions/{name}-none")) == missing
    for form in ({"subscriber": other, "where": "n = 1"}, {"where": "n = 1"}):
        assert problem(own.put(f"/v1/subscriptions/{other}", json=form)) == (
            403,
            "a token with the role subscriber may change only its own subscriptions",
            "/subscriber",
        )
    mine = {"subscriber": name, "where": "n = 1"}
    for taken in (other, f"{name}-free", f"{name}:a:b", name):
        status, detail, pointer = problem(own.put(f"/v1/subscriptions/{taken}", json=mine))
        assert (status, pointer) == (403, "/id")
        assert detail.endswith(f"adds one whose id is {name}: and a name without a colon")
    assert own.get("/v1/subscriptions", params={"subscriber": other}).status_code == 403


def test_an_id_that_an_admin_has_given_away_is_taken(served: Served, name: str) -> None:
    put(served, f"{name}:films", owner="somebody")
    mine = {"subscriber": name, "where": "n = 1"}
    answer = served.as_subscriber(name).put(f"/v1/subscriptions/{name}:films", json=mine)
    assert answer.status_code == 412
    served.admin.delete(f"/v1/subscriptions/{name}:films")


def test_a_subscriber_sees_its_default_policy_before_it_has_a_record(
    served: Served, name: str
) -> None:
    own = served.as_subscriber(name)
    assert own.get(f"/v1/subscribers/{name}").json()["id"] == name
    assert own.get("/v1/subscribers/other").status_code == 403
    assert own.put("/v1/subscribers/other", json={}).status_code == 403
    assert own.put(f"/v1/subscribers/{name}", json={"policy": {"k": 7}}).status_code == 201
    assert own.get(f"/v1/subscribers/{name}").json()["policy"] == {"k": 7}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/subscribers"),
        ("DELETE", "/v1/subscribers/ada"),
        ("POST", "/v1/subscriptions:import"),
        ("GET", "/v1/subscriptions:export"),
    ],
)
def test_all_records_are_for_admins(served: Served, name: str, method: str, path: str) -> None:
    assert served.as_subscriber(name).request(method, path).status_code == 403


def test_pages_follow_each_other(served: Served, name: str) -> None:
    for number in range(2):
        put(served, f"{name}:{number}", owner=name)
    first = served.admin.get("/v1/subscriptions", params={"subscriber": name, "limit": 1}).json()
    assert ([each["id"] for each in first["items"]], first["next"]) == ([f"{name}:0"], f"{name}:0")
    query = {"subscriber": name, "limit": 1, "after": first["next"]}
    second = served.admin.get("/v1/subscriptions", params=query).json()
    assert ([each["id"] for each in second["items"]], second["next"]) == ([f"{name}:1"], None)


@pytest.mark.parametrize("limit", ["0", "1001", "x", ""])
def test_a_page_has_between_one_and_a_thousand(served: Served, limit: str) -> None:
    assert served.admin.get("/v1/subscribers", params={"limit": limit}).status_code == 422


@pytest.mark.parametrize("lines", [True, False])
def test_records_are_imported_and_bad_ones_are_named(
    served: Served, name: str, lines: bool
) -> None:
    forms = [
        {"id": name, "policy": {"k": 2}},
        {"id": f"{name}:s", "subscriber": name, "where": "n >"},
        {"id": "x" * 1_001, "subscriber": name, "where": "n = 1"},
        {"id": f"{name}:t", "subscriber": name, "where": "n = 1"},
    ]
    content: Any = {"json": forms}
    if lines:
        content = {"content": "\n".join(map(json.dumps, forms)), "headers": LINES}
    answer = served.admin.post("/v1/subscriptions:import", **content).json()
    assert (answer["accepted"], answer["refused"]) == (2, 2)
    assert [each["position"] for each in answer["problems"]] == [2, 3]
    assert answer["problems"][1]["detail"].startswith("an id is at most 1000 bytes long")
    assert served.admin.get(f"/v1/subscriptions/{name}:t").status_code == 200


def test_an_import_of_nothing_but_bad_records_is_refused(served: Served) -> None:
    answer = served.admin.post("/v1/subscriptions:import", content="{\n", headers=LINES)
    status, detail, _ = problem(answer)
    assert status == 422
    assert detail.startswith("no record is accepted: the line is not JSON: ")
    assert [each["position"] for each in answer.json()["problems"]] == [1]


def test_an_export_can_be_imported(served: Served, name: str) -> None:
    put(served, name)
    exported = served.admin.get("/v1/subscriptions:export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    forms = [json.loads(line) for line in exported.text.splitlines()]
    assert {"id": name, "subscriber": name, "where": "n = 1"} in [
        {key: form.get(key) for key in ("id", "subscriber", "where")} for form in forms
    ]
    again = served.admin.post("/v1/subscriptions:import", content=exported.text, headers=LINES)
    assert again.json()["accepted"] == len(forms)
