"""References of windows to events and to sets of subscriptions, through compaction."""

from typing import Any

import numpy as np
import pytest
from tests.feed.columnar.test_feeds import table_of

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels.layout import SLAB
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment

POLICIES: dict[str, dict[str, Any]] = {
    "ranked": {"window": {"name": "sliding", "length": 4}},
    "counted": {"window": {"name": "periodic", "length": "1h"}},
    "diverse": {"window": {"name": "sliding", "length": 4}, "diversify": "divrank"},
    "voted": {"window": {"name": "sliding", "length": 4}, "diversify": "maxdivrel-lsh"},
}
every_policy = pytest.mark.parametrize("name", POLICIES)


def filled(name: str, events: int = 9) -> TableFeeds:
    feeds = table_of({f"u{n}": Policy(k=2, **POLICIES[name]) for n in range(5)})
    for n in range(1, events + 1):
        event = Event(f"e{n}", {"a": n % 3}, n, n)
        matched = tuple(f"s{i}" for i in range(n % 4))
        offers = [(Match(f"u{u}", event, 0.1 * (n * u % 7), matched), u) for u in range(n % 5 + 1)]
        feeds.offer_many([(match, Moment(event.published_us, n)) for match, _ in offers])
    return feeds


def current(feeds: TableFeeds) -> list[Any]:
    now = Moment(9_000_000, 9)
    return [feeds.current(f"u{n}", now) for n in range(5)]


@every_policy
def test_all_events_of_windows_are_marked(name: str) -> None:
    feeds = filled(name)
    [cohort] = feeds.cohorts.arrays()
    alive = np.zeros(len(feeds.tables.events.us), np.int32)
    cohort.mark_slots(alive)
    state = cohort.columns(np.arange(5))
    held = {int(slot) for column in ("slot", "ring") for slot in state.get(column, ())}
    assert {*np.flatnonzero(alive).tolist()} == held


@every_policy
def test_windows_are_the_same_after_compaction(name: str) -> None:
    feeds = filled(name)
    [cohort] = feeds.cohorts.arrays()
    before, rows = current(feeds), np.arange(5)
    columns = {name: column.tolist() for name, column in cohort.columns(rows).items()}
    cohort.reset(2)
    columns_left = {n: c.tolist() for n, c in cohort.columns(np.array([0, 1, 3, 4])).items()}
    assert columns_left != columns
    cohort.make_room(0, 10**6)  # the buffer grows, and the pools are compacted if they are full
    for pool in ("slot", "entry", "key", "mark", "score", "handle", "votes"):
        if hasattr(cohort, pool):
            assert len(getattr(cohort, pool)) < 400
    left = cohort.columns(np.array([0, 1, 3, 4]))
    assert {n: c.tolist() for n, c in left.items()} == columns_left
    assert cohort.head[2, SLAB] == 0
    after = current(feeds)
    assert [after[n] for n in (0, 1, 3, 4)] == [before[n] for n in (0, 1, 3, 4)]


@every_policy
def test_sets_in_use_are_copied_with_their_members(name: str) -> None:
    feeds = filled(name)
    before, matched = current(feeds), feeds.tables.matched
    runs, packed = matched._runs, np.zeros(1000, np.int32)
    used = feeds.copy_sets(runs, packed, 1)
    matched._runs, matched._used = packed, used
    assert current(feeds) == before
    assert any(len(delivery.matched) > 1 for deliveries in before for delivery in deliveries)
    assert not packed[used:].any()
