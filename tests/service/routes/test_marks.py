"""Marks on notifications over HTTP: once each, on what exists, by those who may."""

from collections.abc import Iterator

import pytest
from tests.service.routes.serving import Served, problem, serving
from tests.store.appender import delivery


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("marks")) as running:
        for name in ("ada", "bob"):
            events = [delivery(name, f"e{number}") for number in range(4)]
            running.store.notifications.append(name, 0, events)
        yield running


def marks(served: Served, name: str, **query: int) -> list[tuple[int, str]]:
    items = served.admin.get(f"/v1/notifications/{name}/marks", params=query).json()["items"]
    return [(item["sequence"], item["mark"]) for item in items]


def test_a_mark_is_noted_once(served: Served) -> None:
    path = "/v1/notifications/ada/marks"
    for sequence, mark in ((2, "opened"), (1, "not-for-me"), (2, "read"), (4, "opened")):
        form = {"sequence": sequence, "mark": mark}
        assert served.admin.post(path, json=form).json() == {"marked": True}
        assert served.admin.post(path, json=form).json() == {"marked": False}
    assert sorted(marks(served, "ada")) == [
        *((1, "not-for-me"), (2, "opened"), (2, "read"), (4, "opened"))
    ]
    assert [sequence for sequence, _ in marks(served, "ada")] == [1, 2, 2, 4]
    assert {sequence for sequence, _ in marks(served, "ada", after=2)} == {4}
    assert len(marks(served, "ada", limit=1)) == 1
    assert marks(served, "bob") == []


@pytest.mark.parametrize("sequence", [5, 99, 2**63 - 1])
def test_a_notification_that_does_not_exist_is_not_marked(served: Served, sequence: int) -> None:
    form = {"sequence": sequence, "mark": "read"}
    assert problem(served.admin.post("/v1/notifications/bob/marks", json=form)) == (
        409,
        f"there is no notification {sequence}",
        "/sequence",
    )
    assert marks(served, "bob") == []


@pytest.mark.parametrize(
    ("form", "pointer"),
    [
        ({"sequence": 1}, None),
        ({"sequence": 0, "mark": "read"}, "/sequence"),
        ({"sequence": "1", "mark": "read"}, "/sequence"),
        ({"sequence": 2**63, "mark": "read"}, "/sequence"),
        ({"sequence": 1, "mark": "liked"}, "/mark"),
        ({"sequence": 1, "mark": None}, "/mark"),
    ],
)
def test_other_marks_are_refused_with_their_field(
    served: Served, form: dict[str, object], pointer: str | None
) -> None:
    status, _, found = problem(served.admin.post("/v1/notifications/bob/marks", json=form))
    assert status == 422
    assert found in (pointer, "") or pointer is None
    assert marks(served, "bob") == []


def test_only_the_owner_and_admins_see_and_add_marks(served: Served) -> None:
    form = {"sequence": 1, "mark": "read"}
    ada = served.as_subscriber("ada")
    assert ada.get("/v1/notifications/ada/marks").status_code == 200
    assert ada.get("/v1/notifications/bob/marks").status_code == 403
    assert ada.post("/v1/notifications/bob/marks", json=form).status_code == 403
    assert served.admin.get("/v1/notifications/nobody/marks").status_code == 404
    assert served.admin.post("/v1/notifications/nobody/marks", json=form).status_code == 404
