"""The order of ties as numbers."""

import numpy as np
from hypothesis import given
from tests.diversify.small import by_rank, large_windows

from tidings.diversify.protocol import Candidate
from tidings.diversify.tie_order import by_rank as ranked
from tidings.diversify.tie_order import order_of, rank_places, ranks_and_keys
from tidings.model.records import newest_first


@given(large_windows())
def test_the_order_of_ties_is_that_of_the_events(window: list[Candidate]) -> None:
    events = [member.event for member in window]
    order = order_of(events)
    assert [events[i] for i in np.argsort(order.newest)] == sorted(events, key=newest_first)
    assert [events[i].id for i in np.argsort(order.names)] == sorted(member.id for member in events)
    assert order.times.tolist() == [member.published_us for member in events]


@given(large_windows())
def test_by_rank_orders_by_key_then_newer_then_id(window: list[Candidate]) -> None:
    _, keys = ranks_and_keys(window)
    newest = order_of([member.event for member in window]).newest
    rekeyed = [Candidate(member.event, member.key, member.key) for member in window]
    expected = sorted(rekeyed, key=by_rank)
    assert [rekeyed[i] for i in ranked(keys, newest)] == expected
    assert [expected[place] for place in rank_places(keys, newest)] == rekeyed


@given(large_windows(min_size=3))
def test_some_candidates_keep_their_order(window: list[Candidate]) -> None:
    events = [member.event for member in window]
    some = order_of(events).take(np.array([2, 0]))
    alone = order_of([events[2], events[0]])
    assert np.argsort(some.newest).tolist() == np.argsort(alone.newest).tolist()
    assert some.times.tolist() == alone.times.tolist()
