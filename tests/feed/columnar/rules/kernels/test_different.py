"""The kernel of `different` against the state machine of one subscriber, call by call."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import EVENTS, pick_of, put, room, rule_group
from tests.feed.columnar.rules.kernels.test_quota import verdicts_of

from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.different import (
    begin_gaps,
    is_near_none,
    measure_all,
    measured_gap,
    nearest_got,
    offer_different,
)
from tidings.feed.columnar.rules.kernels.layout import KEPT_READ, KEPT_TURN, SIZE
from tidings.feed.columnar.rules.kernels.rings import expire_got, push_got, reserve_got
from tidings.feed.single import PolicyChooser
from tidings.model.records import Event
from tidings.model.values import rounded
from tidings.rules.different import Different, DifferentState

SECOND = 1_000_000
SLOTS = len(EVENTS)
DISTANCES: list[Any] = ["overlap", "jaccard", {"name": "overlap", "weights": {"genre": 0.3}}]


def group_of(known: int = SLOTS, compare: list[Event] = EVENTS, **rule: Any) -> RuleGroup:
    """Return rows that compare; only the first events are known by more than their ids."""
    group = rule_group([{"name": "different", "within": "5s", **rule}], events=compare)
    events, compared = group._tables.events, group._compared
    for slot in range(known, len(compare)):
        events.objects[slot] = None
    compared._add(np.arange(len(compare)))
    size = len(events.us)
    compared.kept = compared.kept._replace(turn=np.zeros(size, np.int64), gap=np.zeros(size))
    compared.kept.state[:] = -1, 0, 0
    return group


def part_of(group: RuleGroup) -> Different:
    [part] = group.policy.rules
    assert isinstance(part, Different)
    return part


def state_of(group: RuleGroup) -> DifferentState:
    return part_of(group).open(PolicyChooser(group.policy))


def receive(group: RuleGroup, row: int, slot: int, at: int) -> None:
    arrays = group.arrays
    assert reserve_got(arrays, row, 1)
    push_got(arrays, row, at, slot)


offers = st.lists(
    st.tuples(st.integers(0, SLOTS - 1), st.sampled_from([0, 0, 1, 2, 5]), st.booleans()),
    min_size=1,
    max_size=25,
)


@settings(max_examples=120)
@given(
    st.sampled_from(DISTANCES),
    st.sampled_from([0.2, 0.5, 0.7, 1.0]),
    st.sampled_from([-(1 << 62), 3 * SECOND]),
    offers,
)
def test_it_decides_as_the_state_of_one_subscriber(
    distance: Any, least: float, since: int, offers: list[tuple[int, int, bool]]
) -> None:
    """What passes is received, unless a later rule holds it."""
    group, output, row, now = group_of(distance=distance, min=least), room(), 2, 0
    arrays, state = group.arrays, state_of(group)
    group.rows.end[row] = state.since_us = since
    for slot, gap, held in offers:
        now = max(now, EVENTS[slot].published_us) + gap * SECOND
        put(arrays, 0, slot, now, 0.5, 0.5)
        pick = pick_of(slot, now, 0.5)
        passes = offer_different(arrays, output, row, 0, 0)
        assert passes == bool(state.offer(pick))
        if passes and not held and EVENTS[slot].published_us > since:
            receive(group, row, slot, now)
            state.got(pick)
        received = group.rows.received(group.rows.got_cells(np.array([row])))
        pairs = zip(received.us.tolist(), received.slot.tolist(), strict=True)
        assert [*pairs] == [(got.us, EVENTS.index(got.event)) for got in state.received]
    assert verdicts_of(group, output) == state.verdicts


@given(
    st.sampled_from(DISTANCES),
    st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, 9)), max_size=12),
    st.integers(0, SLOTS - 1),
    st.integers(-1, 9),
    st.sampled_from([0.1, 0.5, 1.0]),
)
def test_the_last_of_the_nearest_events_is_found(
    distance: Any, received: list[tuple[int, int]], slot: int, oldest: int, least: float
) -> None:
    group = group_of(distance=distance)
    part = part_of(group)
    received = sorted(received, key=lambda pair: pair[1])
    for other, us in received:
        receive(group, 0, other, us)
    left = [(other, us) for other, us in received if us > oldest]
    gaps = [rounded(part.distance.between(EVENTS[slot], EVENTS[other])) for other, _ in left]
    near = [(gap, -place) for place, gap in enumerate(gaps) if gap < least]
    expire_got(group.arrays, 0, oldest)
    found = nearest_got(group.arrays, 0, slot, least)
    assert (found.place >= 0) == bool(near)
    if near:
        assert (found.gap, -found.place) == min(near)
    assert group.rows.rings[0, SIZE] == len(left)


@settings(max_examples=120)
@given(
    st.sampled_from(DISTANCES),
    st.sampled_from([0.2, 0.5, 0.7, 1.0]),
    st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=12),
    st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=12, max_size=12),
    st.sets(st.integers(0, 11)),
)
def test_gaps_to_all_events_decide_as_those_to_received_ones(
    distance: Any,
    least: float,
    values: list[tuple[int, ...]],
    rows: list[set[int]],
    later: set[int],
) -> None:
    """Some events are picked only later: then they are compared with what was received."""
    events = [
        Event(f"e{n:02d}", dict(zip(("genre", "mood", "year"), each, strict=True)), n)
        for n, each in enumerate(values)
    ]
    group, output = (
        group_of(compare=events, known=len(events), distance=distance, min=least),
        room(),
    )
    arrays, states = group.arrays, [state_of(group) for _ in range(3)]
    for slot, event in enumerate(events):
        at = event.published_us + (SECOND // 2 if slot in later else 0)
        begin_gaps(arrays, slot)
        measure_all(arrays, slot)
        for row in rows[slot]:
            put(arrays, 0, slot, at, 0.5, 0.5)
            pick = pick_of(slot, at, 0.5, events)
            passes = offer_different(arrays, output, row, 0, 0)
            assert passes == bool(states[row].offer(pick))
            if passes:
                receive(group, row, slot, at)
                states[row].got(pick)


def test_an_event_without_near_ones_is_known_after_much_reading() -> None:
    group = group_of(known=3)  # e00 and e02 have nothing in common, and e01 half of each
    arrays, kept = group.arrays, group._compared.kept
    at = EVENTS[2].published_us
    for row, slot in ((0, 0), (1, 1)):
        receive(group, row, slot, at)
    put(arrays, 0, 2, at, 0.5, 0.5)
    for _ in range(len(kept.turn)):
        assert offer_different(arrays, room(), 0, 0, 0)
        assert kept.least[0] == -math.inf
    assert offer_different(arrays, room(), 0, 0, 0)
    assert kept.least[0] == 0.5
    assert is_near_none(arrays, 0, 2, at)
    assert not is_near_none(arrays, 0, 2, at + 1)  # the event may be in rings itself
    assert not is_near_none(arrays, 0, 1, at)
    read = kept.state[KEPT_READ]
    assert offer_different(arrays, room(), 1, 0, 0)
    assert kept.state[KEPT_READ] == read
    group.rules.codes.least[0] = 0.6
    assert not is_near_none(arrays, 0, 2, at)
    assert not offer_different(arrays, room(), 1, 0, 0)


def test_distances_are_kept_until_another_event_is_compared() -> None:
    kept = group_of().arrays
    assert [begin_gaps(kept, slot) for slot in (3, 3, 4, 3)] == [1, 1, 2, 3]
    assert kept.kept.state[KEPT_TURN] == 3


def test_events_of_which_only_the_id_is_known_are_near_to_none() -> None:
    arrays = group_of(known=3).arrays
    assert measured_gap(arrays, 0, 1) == 0.5
    assert measured_gap(arrays, 0, 3) == math.inf
    assert measured_gap(arrays, 3, 0) == math.inf
    assert measured_gap(arrays, 7, 7) == math.inf


@pytest.mark.parametrize(("second", "passes"), [(0, False), (4, False), (5, True)])
def test_an_event_is_compared_until_its_time_is_over(second: int, passes: bool) -> None:
    group, output = group_of(), room()
    receive(group, 0, 0, 0)
    put(group.arrays, 0, 4, second * SECOND, 0.5, 0.5)  # the same as event 0
    assert offer_different(group.arrays, output, 0, 0, 0) == passes
    assert [str(verdict.reason) for verdict in verdicts_of(group, output)] == (
        [] if passes else ["its distance to e00, got at 1970-01-01T00:00:00Z, is 0, below 0.2"]
    )


@pytest.mark.parametrize(("least", "passes"), [(0.5, True), (0.51, False)])
def test_the_least_distance_is_far_enough(least: float, passes: bool) -> None:
    group = group_of(min=least)
    receive(group, 0, 0, SECOND)
    put(group.arrays, 0, 1, SECOND, 0.5, 0.5)
    assert measured_gap(group.arrays, 0, 1) == 0.5
    assert offer_different(group.arrays, room(), 0, 0, 0) == passes


def test_rows_do_not_compare_with_what_others_received() -> None:
    group = group_of()
    receive(group, 0, 0, SECOND)
    put(group.arrays, 0, 4, SECOND, 0.5, 0.5)
    assert offer_different(group.arrays, room(), 1, 0, 0)
    assert not offer_different(group.arrays, room(), 0, 0, 0)


@pytest.mark.parametrize(("gap", "passes"), [(0.1, False), (0.2, True)])
def test_a_distance_that_the_caller_measured_decides(gap: float, passes: bool) -> None:
    group = group_of()
    group.rules.codes.measured[0] = 1
    receive(group, 0, 8, SECOND)
    receive(group, 0, 5, SECOND)
    group._compared.measured.nearest[0], group._compared.measured.gap[0] = 1, gap
    put(group.arrays, 0, 4, SECOND, 0.5, 0.5)
    output = room()
    assert offer_different(group.arrays, output, 0, 0, 0) == passes
    assert [verdict.other for verdict in verdicts_of(group, output)] == ([] if passes else ["e05"])
    group._compared.measured.nearest[0] = -1  # there is none
    assert offer_different(group.arrays, output, 0, 0, 0)


@pytest.mark.parametrize(("slot", "passes"), [(0, True), (4, True), (8, False)])
def test_only_what_is_published_after_a_rule_came_is_compared(slot: int, passes: bool) -> None:
    group = group_of()
    group.rows.end[0] = SECOND  # events 4 to 7 are published then, and 8 to 11 later
    receive(group, 0, 12, 3 * SECOND)
    put(group.arrays, 0, slot, 3 * SECOND, 0.5, 0.5)
    assert offer_different(group.arrays, room(), 0, 0, 0) == passes
