"""Columns of matches, against lists of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.rank.matches import Matches, joined

EVENT = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.lists(st.integers(0, 99), min_size=1, max_size=4),
    ),
    max_size=4,
)
EVENTS = st.lists(EVENT, max_size=5)


def columns(events) -> Matches:
    matches = [match for event in events for match in event]
    return Matches(
        np.cumsum([0, *map(len, events)]),
        np.array([subscriber for subscriber, _, _ in matches], np.int32),
        np.array([rank for _, rank, _ in matches], np.float64),
        np.cumsum([0, *(len(matched) for _, _, matched in matches)]),
        np.array([number for _, _, matched in matches for number in matched], np.int32),
    )


def lists(matches: Matches):
    return [list(matches.rows(event)) for event in range(len(matches.starts) - 1)]


@given(EVENTS)
def test_events_are_slices(events):
    matches = columns(events)
    assert lists(matches) == events
    assert matches.events.tolist() == [at for at, event in enumerate(events) for _ in event]
    for at, event in enumerate(events):
        assert lists(matches.of_events(at, at + 1)) == [event]


@given(st.lists(st.tuples(EVENT, EVENT), max_size=5))
def test_matches_of_the_same_events_are_joined_event_by_event(pairs):
    ones, others = [one for one, _ in pairs], [other for _, other in pairs]
    assert lists(joined([columns(ones), columns(others)])) == [a + b for a, b in pairs]
    assert lists(joined([columns(ones)])) == ones


@given(st.lists(EVENTS, min_size=1, max_size=3))
def test_batches_are_concatenated(batches):
    whole = Matches.concatenated([columns(events) for events in batches])
    assert lists(whole) == [event for events in batches for event in events]


@given(EVENTS, st.sampled_from([0.0, 0.5]))
def test_a_mask_keeps_matches_and_all_events(events, least):
    matches = columns(events)
    kept = matches.only(matches.ranks > least)
    assert lists(kept) == [[match for match in event if match[1] > least] for event in events]


@given(EVENTS, st.data())
def test_selected_events_come_in_the_order_asked_for(events, data):
    places = data.draw(st.permutations(range(len(events))))[: len(events) // 2 + 1]
    selected = columns(events).select(np.array(places, np.int64))
    assert lists(selected) == [events[place] for place in places]


def test_nothing_is_a_batch_too():
    assert lists(Matches.empty(2)) == [[], []]
    assert lists(Matches.empty()) == []
