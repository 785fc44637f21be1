"""Lists of held events against a sorted Python list."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import EVENTS, put, rule_group

from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.held_list import (
    count_above,
    empty_list,
    insert_cell,
    list_cell,
    list_position,
    reserve_cells,
)
from tidings.feed.columnar.rules.kernels.layout import ARRIVAL, EVENT, HELD, SLAB, SLAB_CLASS

VALUES = (0.0, 0.25, 0.5, 0.5, 1.0)
LINES = 3


class Entry(NamedTuple):
    """What is known of a held event."""

    value: float
    slot: int
    arrival: int


def best_first(entry: Entry) -> tuple[float, int, str]:
    event = EVENTS[entry.slot]
    return (-entry.value, -event.published_us, event.id)


def group_of_lists() -> RuleGroup:
    return rule_group([{"name": "quota", "n": 2}])


def held(group: RuleGroup, line: int) -> list[Entry]:
    """Return a list as the kernels read it, which is how Python reads it."""
    arrays, rows = group.arrays, group.rows
    cells = [list_cell(arrays, line, place) for place in range(int(rows.lists[line, HELD]))]
    assert rows.held_cells(np.array([line])).tolist() == cells
    start = int(rows.lists[line, SLAB])
    values = rows.held_value[start : start + len(cells)].tolist()
    return [
        Entry(value, int(rows.held_cell[cell, EVENT]), int(rows.held_cell[cell, ARRIVAL]))
        for value, cell in zip(values, cells, strict=True)
    ]


inserts = st.tuples(st.integers(0, LINES - 1), st.sampled_from(VALUES), st.integers(0, 31))
removals = st.tuples(st.integers(0, LINES - 1), st.just(-1.0), st.integers(0, 1))


@given(st.lists(st.one_of(inserts, inserts, inserts, removals), max_size=50))
def test_lists_are_sorted_by_value_then_time_then_id(
    steps: list[tuple[int, float, int]],
) -> None:
    group, expected, arrived = group_of_lists(), [list[Entry]() for _ in range(LINES)], 0
    arrays = group.arrays
    for line, value, number in steps:
        if value < 0:
            if number and expected[line]:
                group.rows.lists[line, HELD] -= 1  # as `drop_worst` does
                expected[line].pop()
            elif not number:
                empty_list(arrays, line)
                expected[line] = []
                assert group.rows.lists[line].tolist() == [0, 0, -1]
            continue
        entry = Entry(value, number, arrived + 1)
        ahead = sum(best_first(each) < best_first(entry) for each in expected[line])
        if expected[line]:
            assert list_position(arrays, line, value, number) == ahead
            above = sum(each.value > value for each in expected[line])
            assert count_above(arrays, line, value) == above
        put(arrays, 0, number, 7, value, value / 2)
        assert reserve_cells(arrays, line, len(expected[line]) + 1)
        insert_cell(arrays, line, ahead, 0, value)
        expected[line].insert(ahead, entry)
        arrived += 1
    assert [held(group, line) for line in range(LINES)] == expected


def test_an_inserted_cell_is_a_whole_copy() -> None:
    group = group_of_lists()
    arrays = group.arrays
    arrays.held.cell[0], arrays.held.rank[0], arrays.held.score[0] = np.arange(8) + 20, 0.3, 0.7
    assert reserve_cells(arrays, 1, 1)
    insert_cell(arrays, 1, 0, 0, 0.9)
    cell = list_cell(arrays, 1, 0)
    assert cell > 0
    assert group.rows.held_cell[cell].tolist() == [*range(20, 20 + ARRIVAL), 1]
    assert (group.rows.held_rank[cell], group.rows.held_score[cell]) == (0.3, 0.7)


def test_a_longer_list_moves_and_leaves_its_slab_to_others() -> None:
    group = group_of_lists()
    arrays, rows = group.arrays, group.rows
    for slot in range(2):
        put(arrays, 0, slot, 0, 0.5, 0.5)
        assert reserve_cells(arrays, 0, slot + 1)
        insert_cell(arrays, 0, slot, 0, 0.5)
    start, size_class = int(rows.lists[0, SLAB]), int(rows.lists[0, SLAB_CLASS])
    assert rows.held.slabs.capacity[size_class] == 2
    assert reserve_cells(arrays, 0, 3)
    assert rows.lists[0, SLAB] != start
    assert [entry.slot for entry in held(group, 0)] == [0, 1]
    assert reserve_cells(arrays, 2, 1)
    assert rows.lists[2, SLAB] == start


def test_a_list_without_room_in_the_pool_stays_as_it_is() -> None:
    group = group_of_lists()
    arrays, rows = group.arrays, group.rows
    put(arrays, 0, 5, 0, 0.5, 0.5)
    assert reserve_cells(arrays, 0, 2)
    insert_cell(arrays, 0, 0, 0, 0.5)
    before, used = rows.lists.copy(), int(rows.held.slabs.used[0])
    rows.held.slabs.used[0] = len(rows.held_value)
    assert not reserve_cells(arrays, 0, 3)
    assert not reserve_cells(arrays, 1, 1)
    assert (rows.lists == before).all()
    assert [entry.slot for entry in held(group, 0)] == [5]
    rows.held.slabs.used[0] = used
    assert reserve_cells(arrays, 0, 2)
    assert (rows.lists == before).all()  # there was room for two


def test_an_empty_list_has_no_slab_to_release() -> None:
    group = group_of_lists()
    free = group.rows.held.slabs.free.copy()
    empty_list(group.arrays, 0)
    empty_list(group.arrays, 0)
    assert (group.rows.held.slabs.free == free).all()


def test_ties_go_to_the_newer_event_and_then_to_the_smaller_id() -> None:
    group = group_of_lists()
    arrays = group.arrays
    assert reserve_cells(arrays, 0, 5)
    for slot in (5, 2, 6, 4, 1):  # of the seconds 1, 0, 1, 1 and 0
        put(arrays, 0, slot, 0, 0.5, 0.5)
        insert_cell(arrays, 0, list_position(arrays, 0, 0.5, slot), 0, 0.5)
    assert [entry.slot for entry in held(group, 0)] == [4, 5, 6, 1, 2]
    assert [list_position(arrays, 0, 0.5, slot) for slot in (8, 7, 0, 3)] == [0, 3, 3, 5]
