"""Ranked lists, compared with sorted Python lists."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.windows import ID_ORDER, SEQUENCE, US, ranked_cohort

from tidings.feed.columnar import policy_codes
from tidings.feed.columnar.kernels.compaction import release_row
from tidings.feed.columnar.kernels.layout import (
    HELD,
    MARK,
    RING_CLASS,
    SEEN,
    SIZE,
    SLAB,
    SLAB_CLASS,
    SLOT,
    RankedWindows,
)
from tidings.feed.columnar.kernels.ranked_buffer import (
    RankedEntry,
    count_beaten,
    expire_ring,
    find_entry,
    insert_entry,
    newest_us,
    oldest_us,
    push_ring,
    rank_position,
    release_ring,
    remove_entry,
    reserve_cell,
    reserve_entry,
)
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.feed.columnar.slab_pools import compact
from tidings.policy import Policy

Entry = tuple[float, int, int]

actions = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 63), st.integers(0, 63)),
    max_size=60,
)


def entries(cohort: RankedCohort, row: int) -> list[Entry]:
    """Return the entries of a row as (key, slot, mark)."""
    cells = cohort.entries(np.array([row]))
    columns = (cohort.key[cells], cohort.entry[cells, SLOT], cohort.entry[cells, MARK])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def best_first(entry: Entry) -> tuple[float, int, int]:
    key, slot, _ = entry
    return (-key, -int(US[slot]), int(ID_ORDER[slot]))


@given(actions)
def test_lists_stay_sorted_through_insertions_and_removals(
    steps: list[tuple[int, int, int, int]],
) -> None:
    cohort, model = ranked_cohort(), {row: list[Entry]() for row in range(3)}
    windows = cohort.windows
    for row, key, slot, number in steps:
        expected = model[row]
        if slot in [entry[1] for entry in expected]:
            position = find_entry(windows, row, slot, len(expected))
            assert expected[position][1] == slot
            remove_entry(windows, row, position)
            del expected[position]
        else:
            assert reserve_entry(windows, row)
            position = rank_position(windows, row, float(key), slot)
            new = RankedEntry(float(key), float(key), slot, number, 2 * number)
            insert_entry(windows, row, position, new)
            expected.append((float(key), slot, 2 * number))
            expected.sort(key=best_first)
            assert expected[position][1] == slot
        if number == 63:
            compact(cohort, cohort.lists)
        for other, listed in model.items():
            assert entries(cohort, other) == listed


@given(st.lists(st.integers(0, 4), max_size=10), st.integers(0, 10), st.integers(1, 4))
def test_entries_beaten_k_times_are_dropped(marks: list[int], position: int, k: int) -> None:
    cohort = ranked_cohort(k=k)
    windows = cohort.windows
    for slot, mark in enumerate(marks):
        assert reserve_entry(windows, 0)
        insert_entry(windows, 0, slot, RankedEntry(1.0, 1.0, slot, 0, 2 * mark))
    count_beaten(windows, 0, min(position, len(marks)), k)
    counted = [(slot, mark + (slot >= position)) for slot, mark in enumerate(marks)]
    kept = [(slot, 2 * mark) for slot, mark in counted if slot < position or mark < k]
    assert [entry[1:] for entry in entries(cohort, 0)] == kept


def test_an_entry_is_searched_among_the_first_only() -> None:
    windows = ranked_cohort().windows
    for slot in range(5):
        assert reserve_entry(windows, 0)
        insert_entry(windows, 0, slot, RankedEntry(1.0, 1.0, slot, 0, 0))
    assert [find_entry(windows, 0, 3, limit) for limit in (0, 3, 4, 9)] == [-1, -1, 3, 3]


def test_a_list_takes_the_slab_that_another_released() -> None:
    cohort = ranked_cohort(cells=4)
    windows = cohort.windows
    assert reserve_entry(windows, 0)
    assert reserve_entry(windows, 1)
    assert not reserve_entry(windows, 2)
    assert cohort.head[2, SLAB_CLASS] == -1
    release_row(windows, 0)
    assert reserve_entry(windows, 2)
    assert cohort.head[2, SLAB] == 0


@pytest.mark.parametrize(
    ("window", "lists", "rings"),
    [
        ({"name": "sliding", "length": 100}, 100 + 14 + 2, 101),
        ({"name": "jumping", "length": 100, "step": 20}, 120 + 17 + 2, 121),
        ({"name": "history", "length": 100}, 5 + 2, 6),
        ({"name": "periodic", "length": "1h"}, 5 + 2, 6),
        ("continuous", 5 + 2, 6),
    ],
    ids=str,
)
def test_slabs_grow_up_to_the_size_of_the_window(window: Any, lists: int, rings: int) -> None:
    codes = policy_codes.policy_codes(Policy(k=5, window=window))
    pools = (policy_codes.list_slabs(codes), lists), (policy_codes.ring_slabs(codes), rings)
    for slabs, most in pools:
        sizes = slabs.capacity.tolist()
        assert sizes[0] <= 2
        assert sizes[-1] == most
        assert all(a < b <= a + max(1, a // 4) for a, b in pairwise(sizes))


WINDOWS: dict[str, Any] = {
    "time": {"name": "sliding", "length": "1d"},
    "published": {"name": "sliding", "length": 99, "count": "published"},
    "matching": {"name": "sliding", "length": 99},
}
POSITIONS = {"time": US, "published": SEQUENCE - 1}

steps = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 63), st.integers(0, 4)), max_size=60)


def push(windows: RankedWindows, row: int, slot: int) -> bool:
    """Add a match to the ring and to the end of the list."""
    assert reserve_cell(windows, row)
    assert reserve_entry(windows, row)
    windows.head[row, SEEN] += 1
    last = push_ring(windows, row, slot)
    position = int(windows.head[row, SIZE])
    insert_entry(windows, row, position, RankedEntry(1.0, 1.0, slot, 0, 0))
    return last


def ring(cohort: RankedCohort, row: int) -> list[int]:
    slots: list[int] = cohort.ring[cohort.cells(np.array([row]))].tolist()
    return slots


def listed(cohort: RankedCohort, row: int) -> list[int]:
    return sorted(cohort.entry[cohort.entries(np.array([row])), SLOT].tolist())


@pytest.mark.parametrize("axis", WINDOWS)
@given(steps)
def test_a_ring_holds_the_window_in_order(axis: str, drawn: list[tuple[int, int, int]]) -> None:
    cohort = ranked_cohort(k=99, window=WINDOWS[axis])
    cohort.codes = cohort.codes._replace(prune=False)
    windows, model, seen = cohort.windows, [list[int](), list[int]()], [0, 0]
    if axis != "published":  # events arrive in order of time, but not of sequences
        drawn = sorted(drawn, key=lambda step: step[1] // 4)
    for row, slot, expired in drawn:
        expected = model[row]
        if slot in expected:
            continue
        last = push(windows, row, slot)
        seen[row] += 1
        expected.append(slot)
        if axis == "published":
            expected.sort()
        assert last == (expected[-1] == slot)
        gone = expected[:expired]
        if gone:
            oldest_kept = expected[expired] if expired < len(expected) else None
            if axis == "matching":
                start = seen[row] - len(expected) + len(gone)
            elif oldest_kept is None:
                start = 10**9
            else:
                start = int(POSITIONS[axis][oldest_kept])
            expire_ring(windows, row, start)
            positions = POSITIONS.get(axis)
            if positions is None:
                del expected[:expired]
            else:
                expected[:] = [s for s in expected if positions[s] >= start]
        assert ring(cohort, row) == expected
        assert listed(cohort, row) == sorted(expected)
        if expected:
            assert oldest_us(windows, row) == min(US[expected])
            assert newest_us(windows, row) == max(US[expected])


def test_compaction_keeps_the_rings() -> None:
    cohort = ranked_cohort(k=99)
    windows = cohort.windows
    for slot in range(40):
        push(windows, slot % 3, slot)
        expire_ring(windows, slot % 3, (slot - 20) // 4)
    release_ring(windows, 1)
    cohort.head[1, [RING_CLASS, HELD]] = -1, 0
    before = [ring(cohort, row) for row in (0, 2)]
    used = int(cohort.rings.slabs.used[0])
    compact(cohort, cohort.rings)
    assert [ring(cohort, row) for row in (0, 2)] == before
    assert cohort.rings.slabs.used[0] < used
    assert (cohort.rings.slabs.free == -1).all()


def test_a_full_pool_is_reported() -> None:
    cohort = ranked_cohort()
    cohort.ring = np.zeros(3, np.int32)
    windows = cohort.windows
    assert reserve_cell(windows, 0)
    assert not reserve_cell(windows, 1)
    assert cohort.head[1, RING_CLASS] == -1
