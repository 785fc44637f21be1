"""Rings against a deque, with cells of every width and slabs of every size."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import EVENTS, rule_group

from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.layout import (
    FRONT,
    NIBBLE,
    PAIR,
    REMEMBERED,
    RING,
    RING_CLASS,
    SIZE,
    WHOLE,
)
from tidings.feed.columnar.rules.kernels.rings import (
    count_ranks_above,
    expire_got,
    got_slot,
    got_us,
    is_writable,
    larger_class,
    place_of,
    push_got,
    push_rank,
    reserve_got,
    reserve_rank,
    ring_cell,
    take_ring,
)

QUOTAS = [{"name": "quota", "n": 2}, {"name": "quota", "n": 3}]
WIDTHS = {NIBBLE: 16, 8: 100, PAIR: 300, WHOLE: 2_000}
"""How many ranks make cells of so many bits in the pool of a test."""


def quotas(values: int) -> RuleGroup:
    """Return two quotas whose cells can have the ranks 0, 1 / values, 2 / values, ..."""
    group = rule_group(QUOTAS)
    group.rows.packed.learn(np.arange(values) / values)
    return group


def remembered(group: RuleGroup, ring: int) -> list[float]:
    ranks: list[float] = group.rows.packed.get(group.rows.rank_cells(np.array([ring]))).tolist()
    return ranks


def remember(group: RuleGroup, ring: int, rank: float) -> None:
    arrays = group.arrays
    assert reserve_rank(arrays, ring)
    push_rank(arrays, ring, rank)


@pytest.mark.parametrize(("bits", "values"), WIDTHS.items())
def test_a_pool_of_the_ranks_here_has_cells_of_each_width(bits: int, values: int) -> None:
    assert quotas(values).rows.packed.bits == bits


@settings(max_examples=20)
@pytest.mark.parametrize("values", WIDTHS.values())
@given(pushes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 15)), max_size=60))
def test_rings_remember_what_was_pushed(values: int, pushes: list[tuple[int, int]]) -> None:
    group, expected = quotas(values), [deque[float](maxlen=REMEMBERED) for _ in range(6)]
    for ring, number in pushes:
        remember(group, ring, number / values)
        expected[ring].append(number / values)
    assert [remembered(group, ring) for ring in range(6)] == [list(each) for each in expected]
    arrays, halves = (
        group.arrays,
        [(number + half) / values for number in range(4) for half in (0, 0.5)],
    )
    for ring, ranks in enumerate(expected):
        if ranks:
            for rank in halves:
                above = sum(each > rank for each in ranks)
                assert count_ranks_above(arrays, ring, rank) == above


def test_ranks_that_differ_in_their_last_bits_are_compared_in_full() -> None:
    group = quotas(2_000)
    ranks = [0.5, 0.5 + 2**-52, 0.5 + 2**-50, 0.5 - 2**-53, 0.5 + 2**-20, 0.0, -0.0]
    for rank in ranks:
        remember(group, 0, rank)
    assert remembered(group, 0) == ranks
    for rank in ranks:
        above = sum(each > rank for each in ranks)
        assert count_ranks_above(group.arrays, 0, rank) == above


@pytest.mark.parametrize("values", WIDTHS.values())
def test_a_full_ring_forgets_its_oldest(values: int) -> None:
    group, expected = quotas(values), deque[float](maxlen=REMEMBERED)
    for number in range(2 * REMEMBERED + 7):
        rank = number * 7 % 16 / values
        remember(group, 3, rank)
        expected.append(rank)
        if number in (REMEMBERED - 1, REMEMBERED, REMEMBERED + 1, 2 * REMEMBERED):
            assert remembered(group, 3) == list(expected)
    assert remembered(group, 3) == list(expected)
    for rank in (0.0, 3 / values, 3.5 / values, 15 / values, 1.0):
        above = sum(each > rank for each in expected)
        assert count_ranks_above(group.arrays, 3, rank) == above
    assert group.rows.rings[3, [SIZE, FRONT]].tolist() == [REMEMBERED, 7]


def test_a_ring_without_room_in_the_pool_stays_as_it_is() -> None:
    group = quotas(16)
    for number in range(4):  # the smallest slab
        remember(group, 0, number / 16)
    group.rows.ranks.slabs.used[0] = len(group.rows.packed) - 7  # less than the next slab
    before = group.rows.rings.copy()
    assert not reserve_rank(group.arrays, 0)
    assert (group.rows.rings == before).all()
    assert remembered(group, 0) == [0, 1 / 16, 2 / 16, 3 / 16]
    group.rows.ranks.slabs.used[0] -= 1
    assert reserve_rank(group.arrays, 0)
    assert remembered(group, 0) == [0, 1 / 16, 2 / 16, 3 / 16]


def test_only_ranks_with_a_code_are_writable() -> None:
    packed, whole = quotas(16).arrays.ranks, quotas(2_000).arrays.ranks
    assert [is_writable(packed, rank) for rank in (0.0, 0.5, 15 / 16, 0.51, 1.0)] == [
        *(True, True, True),
        *(False, False),
    ]
    assert is_writable(whole, 0.123456)


@given(st.lists(st.integers(0, 9), unique=True).map(sorted), st.integers(-1, 20))
def test_a_place_is_the_number_of_lower_values(values: list[int], twice: int) -> None:
    column = np.array(values, np.float64)
    assert place_of(column, twice / 2) == sum(value < twice / 2 for value in values)


def test_slabs_are_taken_until_the_pool_is_full() -> None:
    slabs = rule_group(QUOTAS).rows.ranks.slabs
    assert larger_class(slabs, -1, 1) == 0
    assert larger_class(slabs, 0, 1) == 1  # at least the next one
    assert larger_class(slabs, -1, REMEMBERED) == len(slabs.capacity) - 1
    small = int(slabs.capacity[0])
    assert [take_ring(slabs, 0, 2 * small) for _ in range(3)] == [0, small, -1]
    assert slabs.used[0] == 2 * small


steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 2), st.integers(0, 31), st.integers(0, 1)),
        st.tuples(st.just("expire"), st.integers(0, 2), st.integers(-1, 9), st.just(0)),
    ),
    max_size=60,
)


@given(steps)
def test_received_events_leave_in_the_order_in_which_they_came(
    steps: list[tuple[str, int, int, int]],
) -> None:
    """Some are received when they are published, and others later."""
    group = rule_group(["different"])
    arrays, expected, now = group.arrays, [deque[tuple[int, int]]() for _ in range(3)], 0
    for step, ring, number, wait in steps:
        if step == "push":
            now = max(now, EVENTS[number].published_us) + wait
            assert reserve_got(arrays, ring, 1)
            push_got(arrays, ring, now, number)
            expected[ring].append((now, number))
        else:
            expire_got(arrays, ring, number * 1_000_000)
            while expected[ring] and expected[ring][0][0] <= number * 1_000_000:
                expected[ring].popleft()
        cells = [
            [ring_cell(arrays, arrays.got.slabs, each, nth) for nth in range(len(got))]
            for each, got in enumerate(expected)
        ]
        assert group.rows.rings[:3, SIZE].tolist() == [len(got) for got in expected]
        found = [[(got_us(arrays, c), got_slot(arrays, c)) for c in ring] for ring in cells]
        assert found == [list(got) for got in expected]
        # The rows of Python read the same cells.
        for each, got in enumerate(expected):
            received = group.rows.received(group.rows.got_cells(np.array([each])))
            assert [*zip(received.us.tolist(), received.slot.tolist(), strict=True)] == list(got)


def test_a_ring_that_wraps_around_is_unrolled_when_it_grows() -> None:
    group = rule_group(["different"])
    arrays, rings = group.arrays, group.rows.rings
    for slot in range(4):  # as many as the smallest slab has
        assert reserve_got(arrays, 1, 1)
        push_got(arrays, 1, 10 + slot, slot)
    start = int(rings[1, RING])
    expire_got(arrays, 1, 11)
    for slot in (4, 5):
        assert reserve_got(arrays, 1, 1)
        push_got(arrays, 1, 10 + slot, slot)
    assert rings[1, [RING, FRONT, SIZE]].tolist() == [start, 2, 4]
    assert reserve_got(arrays, 1, 1)
    assert rings[1, [FRONT, SIZE, RING_CLASS]].tolist() == [0, 4, 1]
    assert rings[1, RING] != start
    received = group.rows.received(group.rows.got_cells(np.array([1])))
    assert received.slot.tolist() == [2, 3, 4, 5]
    assert received.us.tolist() == [12, 13, 14, 15]


def test_several_events_are_reserved_at_once_or_not_at_all() -> None:
    group = rule_group(["different"])
    arrays, slabs = group.arrays, group.rows.got.slabs
    assert reserve_got(arrays, 0, 40)
    assert slabs.capacity[group.rows.rings[0, RING_CLASS]] >= 40
    before = group.rows.rings.copy()
    assert not reserve_got(arrays, 1, len(group.rows.got_slot))
    assert (group.rows.rings == before).all()
    slabs.used[0] = len(group.rows.got_slot)
    assert reserve_got(arrays, 0, 40)  # it has its slab
    assert not reserve_got(arrays, 2, 1)
