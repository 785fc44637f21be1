"""Compaction of rules: rows that are reset, and what rules still refer to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import put, rule_group

from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.compaction import (
    copy_held_sets,
    mark_events,
    release_rules,
)
from tidings.feed.columnar.rules.kernels.held_list import insert_cell, list_cell, reserve_cells
from tidings.feed.columnar.rules.kernels.layout import (
    BEFORE,
    DEADLINE,
    HANDLE,
    HELD,
    RING_CLASS,
    SENT,
    SIZE,
    SLAB_CLASS,
)
from tidings.feed.columnar.rules.kernels.rings import push_got, push_rank, reserve_got, reserve_rank

RULES = ["different", {"name": "quota", "n": 2}, "quiet"]
PLACES, RINGED = 3, 2
SLOTS = 32


def hold(group: RuleGroup, line: int, slot: int, handle: int = -1) -> None:
    """Hold an event in a line, behind the others."""
    arrays, size = group.arrays, int(group.rows.lists[line, HELD])
    put(arrays, 0, slot, 5, 0.5, 0.5)
    arrays.held.cell[0, HANDLE] = handle
    assert reserve_cells(arrays, line, size + 1)
    insert_cell(arrays, line, size, 0, 0.5)


def receive(group: RuleGroup, row: int, slot: int) -> None:
    assert reserve_got(group.arrays, row * RINGED, 1)
    push_got(group.arrays, row * RINGED, 7, slot)


def remember(group: RuleGroup, row: int) -> None:
    group.rows.packed.learn(np.array([0.5]))
    assert reserve_rank(group.arrays, row * RINGED + 1)
    push_rank(group.arrays, row * RINGED + 1, 0.5)


def used(group: RuleGroup, row: int) -> None:
    """Fill everything that a row has."""
    for slot in range(3):
        hold(group, row * PLACES + 1, slot)
        hold(group, row * PLACES + 2, slot + 3)
        receive(group, row, slot)
        remember(group, row)
    rows = group.rows
    rows.end[row * PLACES : (row + 1) * PLACES] = 9
    rows.rings[row * RINGED : (row + 1) * RINGED, BEFORE] = 4
    rows.heads[row, [SENT, DEADLINE]], rows.paused[row] = (8, 9), 1


def state_of(group: RuleGroup, row: int) -> list[list[object]]:
    rows, lines = group.rows, slice(row * PLACES, (row + 1) * PLACES)
    rings = slice(row * RINGED, (row + 1) * RINGED)
    return [
        rows.heads[row].tolist(),
        [int(rows.paused[row])],
        rows.end[lines].tolist(),
        rows.lists[lines].tolist(),
        rows.rings[rings].tolist(),
    ]


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_row_that_is_released_is_as_a_new_one_and_others_stay(row: int) -> None:
    group, new = rule_group(RULES), rule_group(RULES)
    for each in range(3):
        used(group, each)
    before = [state_of(group, each) for each in range(3)]
    release_rules(group.arrays, row)
    for each in range(3):
        assert state_of(group, each) == (state_of(new, row) if each == row else before[each])
    assert group.rows.heads[row].tolist() == [0, FAR]
    assert (group.rows.lists[row * PLACES : (row + 1) * PLACES, SLAB_CLASS] == -1).all()
    assert (group.rows.rings[row * RINGED : (row + 1) * RINGED, RING_CLASS] == -1).all()


def test_the_slabs_of_released_lists_are_used_again() -> None:
    group = rule_group(RULES)
    used(group, 1)
    cells = int(group.rows.held.slabs.used[0])
    for _ in range(5):
        release_rules(group.arrays, 1)
        used(group, 1)
    assert group.rows.held.slabs.used[0] == cells


slots = st.lists(st.tuples(st.integers(0, 2), st.integers(0, SLOTS - 1)), max_size=12)


@given(slots, slots, slots)
def test_exactly_what_is_held_or_received_is_marked(
    by_quota: list[tuple[int, int]], by_quiet: list[tuple[int, int]], got: list[tuple[int, int]]
) -> None:
    group = rule_group(RULES)
    for row, slot in by_quota:
        hold(group, row * PLACES + 1, slot)
    for row, slot in by_quiet:
        hold(group, row * PLACES + 2, slot)
    for row, slot in got:
        receive(group, row, slot)
        remember(group, row)  # refers to no event
    alive = np.zeros(SLOTS, np.int32)
    mark_events(group.arrays, alive)
    expected = {slot for _, slot in (*by_quota, *by_quiet, *got)}
    assert {*np.flatnonzero(alive).tolist()} == expected
    assert {*alive.tolist()} <= {0, 1}


def test_events_of_a_released_row_are_not_marked() -> None:
    group = rule_group(RULES)
    used(group, 0)
    release_rules(group.arrays, 0)
    alive = np.zeros(SLOTS, np.int32)
    mark_events(group.arrays, alive)
    assert not alive.any()
    assert not group.rows.rings[:, SIZE].any()


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from([-1, 0, 3, -2, -5, -9]))))
def test_sets_of_held_events_are_copied_and_found_again(held: list[tuple[int, int]]) -> None:
    """A set is its length and its members, and its handle the complement of where it starts."""
    old = np.array([0, 2, 11, 12, 3, 21, 22, 23, 1, 31], np.int32)
    members = {-2: [11, 12], -5: [21, 22, 23], -9: [31]}
    held = [(line, handle) for line, handle in held if line % PLACES]  # the first holds nothing
    group = rule_group(RULES)
    for line, handle in held:
        hold(group, line, 0, handle)
    new = np.full(400, -7, np.int32)
    end = copy_held_sets(group.arrays, old, new, 1)
    sets = [handle for _, handle in held if handle < -1]
    assert end == 1 + sum(len(members[handle]) + 1 for handle in sets)
    assert (new[end:] == -7).all()
    for line in range(9):
        cells = [list_cell(group.arrays, line, n) for n in range(int(group.rows.lists[line, HELD]))]
        handles = [int(group.rows.held_cell[cell, HANDLE]) for cell in cells]
        expected = [handle for each, handle in held if each == line]
        for handle, before in zip(handles, expected, strict=True):
            if before >= -1:
                assert handle == before
                continue
            start = ~handle
            found = new[start + 1 : start + 1 + new[start]].tolist()
            assert found == members[before]
