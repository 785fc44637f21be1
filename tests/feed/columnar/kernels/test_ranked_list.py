"""Ranked lists, compared with sorted Python lists."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.windows import ID_ORDER, US, ranked_cohort

from tidings.feed.columnar import policy_codes
from tidings.feed.columnar.kernels.compaction import release_row
from tidings.feed.columnar.kernels.layout import MARK, SLAB, SLAB_CLASS, SLOT
from tidings.feed.columnar.kernels.ranked_list import (
    RankedEntry,
    count_beaten,
    find_entry,
    insert_entry,
    rank_position,
    remove_entry,
    reserve_entry,
)
from tidings.feed.columnar.ranked_cohort import RankedCohort
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
            cohort.compact(cohort.list_slabs, SLAB, ("key", "score", "entry"))
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
