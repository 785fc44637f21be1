"""Marks: on notifications that exist, each once, gone with them."""

from collections.abc import Iterator

import pytest
from tests.store.appender import delivery

from tidings.store import Store, open_store
from tidings.store.marks import NOT_FOR_ME, OPENED, READ


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        deliveries = [delivery(name, event, 10**7) for name in ("ada", "bob") for event in "xy"]
        opened.notifications.append("q", 0, deliveries)
        yield opened


def test_a_notification_is_marked_once(store: Store) -> None:
    assert store.marks.add("ada", [1, 2, 7], OPENED, "home", 5) == 2
    assert store.marks.add("ada", [2, 1], OPENED, None, 6) == 0
    assert store.marks.add("ada", [1], NOT_FOR_ME, None, 7) == 1
    marks = store.marks.of("ada")
    assert [(mark.sequence, mark.mark, mark.channel) for mark in marks] == [
        (1, NOT_FOR_ME, None),
        (1, OPENED, "home"),
        (2, OPENED, "home"),
    ]
    assert store.marks.of("ada", after=1, limit=1)[0].to_dict() == {
        "sequence": 2,
        "mark": OPENED,
        "channel": "home",
        "marked_at": "1970-01-01T00:00:00.000005Z",
    }
    assert store.marks.of("bob") == []


def test_marks_go_with_their_notifications(store: Store) -> None:
    store.marks.add("ada", [1], READ, None, 5)
    assert store.marks.prune() == 0
    store.notifications.prune(100)
    assert store.marks.prune() == 1
