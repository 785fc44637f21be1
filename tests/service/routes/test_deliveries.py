"""Feeds and notifications over HTTP: pages, marks of what was read, and who may see them."""

from collections.abc import Iterator

import pytest
from tests.service.routes.serving import Served, problem, serving
from tests.store.appender import delivery


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("deliveries")) as running:
        running.store.catalogue.put({"id": "ada"}, {"id": "bob"}, {"id": "cy"})
        for name, count in (("ada", 5), ("bob", 3)):
            events = [delivery(name, f"e{number}", number) for number in range(count)]
            running.store.notifications.append(name, 0, events)
        yield running


def numbers(answer: dict[str, list[dict[str, int]]]) -> list[int]:
    return [item["sequence"] for item in answer["items"]]


@pytest.mark.parametrize(
    ("query", "found", "following"),
    [
        ({}, [1, 2, 3, 4, 5], None),
        ({"limit": 2}, [1, 2], 2),
        ({"after": 2, "limit": 2}, [3, 4], 4),
        ({"after": 4, "limit": 2}, [5], None),
        ({"after": 3, "limit": 2}, [4, 5], None),
        ({"after": 5}, [], None),
        ({"after": 99}, [], None),
    ],
)
def test_pages_of_notifications_follow_each_other(
    served: Served, query: dict[str, int], found: list[int], following: int | None
) -> None:
    answer = served.admin.get("/v1/notifications/ada", params=query).json()
    assert numbers(answer) == found
    assert answer["next"] == following
    assert answer["inbox"] == {"last": 5, "read": 0, "unread": 5}


def test_a_notification_is_that_of_the_store(served: Served) -> None:
    [item] = served.admin.get("/v1/notifications/ada", params={"limit": 1}).json()["items"]
    [expected] = served.store.notifications.after("ada", limit=1)
    assert item == expected.to_dict()


@pytest.mark.parametrize("query", [{"after": -1}, {"limit": 0}, {"limit": 1_001}, {"after": "x"}])
def test_other_pages_are_refused(served: Served, query: dict[str, str]) -> None:
    assert served.admin.get("/v1/notifications/ada", params=query).status_code == 422


def test_the_mark_of_what_was_read_never_moves_back(served: Served) -> None:
    path = "/v1/notifications/bob/read"
    for sequence, read in ((2, 2), (1, 2), (0, 2), (3, 3), (3, 3)):
        answer = served.admin.post(path, json={"sequence": sequence}).json()
        assert answer == {"last": 3, "read": read, "unread": 3 - read}
    assert problem(served.admin.post(path, json={"sequence": 4})) == (
        409,
        "there is no notification 4; the last is 3",
        "/sequence",
    )


@pytest.mark.parametrize(
    "form", [{}, {"sequence": -1}, {"sequence": 1.5}, {"sequence": "1"}, {"sequence": 1, "x": 1}]
)
def test_another_mark_is_refused(served: Served, form: dict[str, object]) -> None:
    assert served.admin.post("/v1/notifications/ada/read", json=form).status_code == 422


def test_a_feed_is_empty_until_the_pipeline_knows_the_subscriber(served: Served) -> None:
    assert served.admin.get("/v1/feeds/cy").json() == {"items": []}
    served.process()
    assert served.admin.get("/v1/feeds/cy").json() == {"items": []}


PATHS = ["/v1/feeds/{}", "/v1/notifications/{}"]


@pytest.mark.parametrize("path", PATHS)
def test_a_subscriber_sees_only_itself(served: Served, path: str) -> None:
    ada = served.as_subscriber("ada")
    assert ada.get(path.format("ada")).status_code == 200
    for other in ("bob", "nobody"):
        assert ada.get(path.format(other)).status_code == 403
    assert ada.post("/v1/notifications/bob/read", json={"sequence": 1}).status_code == 403


@pytest.mark.parametrize("path", PATHS)
def test_somebody_exists_who_has_a_record_or_a_subscription_or_a_notification(
    served: Served, path: str
) -> None:
    assert problem(served.admin.get(path.format("nobody"))) == (
        404,
        "there is no such subscriber",
        None,
    )
    served.store.catalogue.put({"id": "of-dan", "subscriber": "dan", "where": "n = 1"})
    served.store.notifications.append("eve", 0, [delivery("eve", "e1")])
    for name in ("dan", "eve"):
        assert served.admin.get(path.format(name)).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_one_with_a_token_exists_before_it_has_any_interest(served: Served, path: str) -> None:
    answer = served.as_subscriber("zoe").get(path.format("zoe"))
    assert answer.status_code == 200
    assert answer.json()["items"] == []
