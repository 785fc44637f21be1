"""The current list of a window in arrays is that of one plain feed, and changes nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, offers_of
from tests.feed.columnar.kernels.diverse import EVENTS, diverse_cohort, parts
from tests.feed.columnar.kernels.windows import ranked_cohort

from tidings.feed.columnar.kernels.layout import WindowExtent
from tidings.feed.columnar.peek import current_diverse, current_ranked
from tidings.feed.single import Feed
from tidings.model.records import Match
from tidings.model.values import format_time
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

WINDOWS: list[Any] = [
    {"name": "sliding", "length": 4},
    {"name": "sliding", "length": 9, "count": "published"},
    {"name": "sliding", "length": "3us", "wait": True},
    {"name": "sliding", "length": 4, "delivered": "leave", "wait": True},
    {"name": "continuous"},
    {"name": "continuous", "expires": "3us", "wait": True},
    {"name": "periodic", "length": 3},
    {"name": "periodic", "length": "4us"},
    {"name": "jumping", "length": "4us", "step": "2us"},
    {"name": "jumping", "length": 4, "step": 3, "wait": True},
    {"name": "history", "length": 4},
    {"name": "history", "length": "3us", "wait": True},
]
later = st.tuples(st.integers(0, 4), st.integers(0, 4))


def plain_list(policy: Policy, batch: list[Offered], now: Moment) -> list[tuple[Any, ...]]:
    """Return the event, the rank and the window of each entry of the current list."""
    feed = Feed(Subscriber("u", policy))
    for _, slot, score in batch:
        event = EVENTS[slot]
        feed.offer(Match("u", event, score, ()), Moment(event.published_us, event.sequence or 0))
    return [
        (one.event, one.rank, one.window["start"], one.window["end"], one.window["size"])
        for one in feed.current(now)
    ]


def now_of(batch: list[Offered], after: tuple[int, int]) -> Moment:
    event = EVENTS[batch[-1][1] if batch else 1]
    return Moment(event.published_us + after[0], (event.sequence or 0) + after[1])


def listed(current: Any) -> list[tuple[Any, ...]]:
    """Return the entries of a list in arrays in the same way."""
    extent: WindowExtent = current.extent
    window = (format_time(extent.start_us), format_time(extent.stop_us), extent.width)
    pairs = zip(current.slot.tolist(), current.rank.tolist(), strict=True)
    assert current.handle.tolist() == [slot + 1000 for slot in current.slot.tolist()]
    return [(EVENTS[slot].id, rank, *window) for slot, rank in pairs]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=40)
@given(batch=batches(rows=1, max_size=10), k=st.integers(1, 3), after=later, decayed=st.booleans())
def test_a_ranked_window_lists_like_a_plain_feed(window, batch, k, after, decayed):
    decay = {"name": "exponential", "rate": 1e5} if decayed else "none"
    cohort = ranked_cohort(k=k, window=window, decay=decay)
    if decayed:
        cohort.score = cohort.score.copy()
    cohort.offer(offers_of(batch))
    before, now = cohort.head.copy(), now_of(batch, after)
    current = listed(current_ranked(cohort, 0, now))
    assert current == plain_list(cohort.policy, batch, now)
    assert (cohort.head == before).all()


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=40)
@given(batch=batches(rows=1, max_size=10), k=st.integers(1, 3), after=later, part=parts)
def test_a_diverse_window_lists_like_a_plain_feed(window, batch, k, after, part):
    cohort = diverse_cohort(k=k, window=window, diversify=part)
    cohort.offer(offers_of(batch))
    before, now = cohort.head.copy(), now_of(batch, after)
    current = listed(current_diverse(cohort, 0, now))
    assert current == plain_list(cohort.policy, batch, now)
    assert (cohort.head == before).all()


def test_an_empty_window_lists_nothing():
    now = Moment(7, 9)
    lists = (current_ranked(ranked_cohort(), 0, now), current_diverse(diverse_cohort(), 0, now))
    for empty in lists:
        assert empty.slot.tolist() == empty.rank.tolist() == empty.handle.tolist() == []
        assert empty.extent.width == 0
