"""Notifications in an SQLite file: numbered per subscriber, read, pruned and skipped if damaged."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.store.appender import delivery

from tidings.errors import StoreError, TidingsError
from tidings.formats.arrow import deliveries_to_table
from tidings.store import AppendResult, Inbox, Store, open_store
from tidings.store.notifications import Notifications

SECOND = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tidings.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def notifications(store: Store) -> Notifications:
    """Return the notifications e0 to e4 of ann, one per second, and e0 of bob."""
    many = [delivery("ann", f"e{n}", n * SECOND) for n in range(5)]
    store.notifications.append("q", 0, [*many, delivery("bob", "e0")])
    return store.notifications


def numbered(found: list[Any]) -> list[tuple[int, str]]:
    return [(each.sequence, each.event) for each in found]


def test_unread_are_those_after_the_last_one_read() -> None:
    assert Inbox().unread == 0
    assert Inbox(last=7, read=3).unread == 4


def test_the_newest_come_first_and_pages_in_order(notifications: Notifications) -> None:
    assert numbered(notifications.newest("ann", limit=2)) == [(5, "e4"), (4, "e3")]
    assert numbered(notifications.after("ann", limit=2)) == [(1, "e0"), (2, "e1")]
    assert numbered(notifications.after("ann", 3)) == [(4, "e3"), (5, "e4")]
    assert notifications.after("ann", 5) == []
    assert notifications.newest("nobody") == []


def test_one_query_for_many_subscribers_has_the_answer_of_many(
    notifications: Notifications,
) -> None:
    known = {"ann": 3, "bob": 0, "nobody": 0}
    expected = [
        notification for name in known for notification in notifications.after(name, known[name])
    ]
    assert notifications.after_each(known) == expected
    assert notifications.after_each(known | {f"x{n}": 0 for n in range(1_200)}) == expected
    assert notifications.after_each({}) == []


def test_what_is_written_changes_with_each_batch(notifications: Notifications) -> None:
    before = notifications.written()
    assert notifications.written() == before
    notifications.append("other", 0)
    assert notifications.written() != before


def test_every_subscriber_is_numbered_from_1_without_gaps(notifications: Notifications) -> None:
    repeated = [delivery("bob", "e0"), delivery("bob", "e7"), delivery("ann", "e7")]
    assert notifications.append("q", 1, repeated) == AppendResult(delivered=2, repeated=1)
    assert numbered(notifications.after("bob")) == [(1, "e0"), (2, "e7")]
    assert numbered(notifications.after("ann", 5)) == [(6, "e7")]


def test_columns_are_appended_as_objects_are(notifications: Notifications, tmp_path: Path) -> None:
    batch = [delivery("ann", "e9", 3), delivery("ann", "e0"), delivery("cleo", "e0")]
    with open_store(tmp_path / "other.db") as other:
        other.notifications.append("q", 0, notifications.after("ann") + notifications.after("bob"))
        found = other.notifications.append_columns("q", 1, deliveries_to_table(batch))
        assert found == notifications.append("q", 1, batch) == AppendResult(2, repeated=1)
        for name in ("ann", "bob", "cleo"):
            assert other.notifications.after(name) == notifications.after(name)


def test_the_last_batch_is_the_largest_of_its_query(notifications: Notifications) -> None:
    assert notifications.last_batch("other") is None
    notifications.append("other", 7)
    notifications.append("q", 3)
    assert (notifications.last_batch("q"), notifications.last_batch("other")) == (3, 7)


def test_reading_moves_only_forward_and_not_beyond_the_last(notifications: Notifications) -> None:
    assert notifications.mark_read("ann", 3) == Inbox(last=5, read=3)
    assert notifications.mark_read("ann", 1) == Inbox(last=5, read=3)
    assert notifications.mark_read("ann", 5).unread == 0
    assert notifications.inbox("bob") == Inbox(last=1, read=0)
    with pytest.raises(StoreError, match="'bob' has no notification 2; the last is 1"):
        notifications.mark_read("bob", 2)


def test_an_unknown_subscriber_has_an_empty_inbox(notifications: Notifications) -> None:
    assert notifications.inbox("nobody") == Inbox()
    assert notifications.mark_read("nobody", 0) == Inbox()
    with pytest.raises(StoreError, match="'nobody' has no notification 1; the last is 0"):
        notifications.mark_read("nobody", 1)


def test_deliveries_strictly_before_a_time_are_pruned(notifications: Notifications) -> None:
    assert notifications.prune(before=0) == 0
    assert notifications.prune(before=2) == 3
    assert numbered(notifications.after("ann")) == [(3, "e2"), (4, "e3"), (5, "e4")]
    assert notifications.after("bob") == []
    assert notifications.inbox("bob") == Inbox(last=1)
    assert notifications.prune(before=2) == 0


def test_keys_of_pruned_deliveries_are_forgotten_only_when_asked(
    notifications: Notifications,
) -> None:
    again = [delivery("ann", f"e{n}", 9 * SECOND) for n in range(5)]
    notifications.prune(before="1970-01-01T00:00:04Z")
    assert notifications.append("q", 1, again).repeated == 5
    notifications.prune(before=4, keep_keys="2s")
    assert notifications.append("q", 2, again) == AppendResult(delivered=2, repeated=3)
    assert numbered(notifications.after("ann")) == [(5, "e4"), (6, "e0"), (7, "e1")]


def test_pruning_lists_only_the_last_batches_of_each_query(
    notifications: Notifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.store.notifications.BATCHES_KEPT", 2)
    for number in (1, 2, 3):
        notifications.append("q", number, [delivery("cleo", f"e{number}")])
    notifications.prune(before=0)
    assert notifications.append("q", 1) == AppendResult(skipped=True)
    assert notifications.append("q", 2) == AppendResult(delivered=1, skipped=True)
    assert notifications.last_batch("q") == 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE deliveries SET won_in = '[' WHERE event = 'e1'",
        "UPDATE deliveries SET matched = '3' WHERE event = 'e1'",
    ],
)
def test_a_damaged_delivery_is_skipped_with_a_warning(
    notifications: Notifications, path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    assert [notification.event for notification in notifications.after("ann")] == [
        "e0",
        "e2",
        "e3",
        "e4",
    ]
    assert "skipping a damaged delivery of a store: ('ann', 'e1'" in caplog.text


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("newest", ("ann", 0)),
        ("after", ("ann", -1)),
        ("after", ("ann", 0, 0)),
        ("mark_read", ("ann", -1)),
        ("mark_read", ("ann", "1")),
        ("append", ("", 1)),
        ("append", ("q", -1)),
        ("prune", ("soon",)),
        ("prune", (0, "soon")),
    ],
)
def test_wrong_arguments_are_refused(
    notifications: Notifications, verb: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(TidingsError):
        getattr(notifications, verb)(*arguments)
