"""Ring buffers, compared with Python lists."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.windows import SEQUENCE, US, ranked_cohort

from tidings.feed.columnar.kernels.layout import (
    HELD,
    RING,
    RING_CLASS,
    SEEN,
    SIZE,
    SLOT,
    RankedWindows,
)
from tidings.feed.columnar.kernels.ranked_list import RankedEntry, insert_entry, reserve_entry
from tidings.feed.columnar.kernels.ring_buffer import (
    expire_ring,
    newest_us,
    oldest_us,
    push_ring,
    release_ring,
    reserve_cell,
)
from tidings.feed.columnar.ranked_cohort import RankedCohort

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
    used = int(cohort.ring_slabs.used[0])
    cohort.compact(cohort.ring_slabs, RING, ("ring",))
    assert [ring(cohort, row) for row in (0, 2)] == before
    assert cohort.ring_slabs.used[0] < used
    assert (cohort.ring_slabs.free == -1).all()


def test_a_full_pool_is_reported() -> None:
    cohort = ranked_cohort()
    cohort.ring = np.zeros(3, np.int32)
    windows = cohort.windows
    assert reserve_cell(windows, 0)
    assert not reserve_cell(windows, 1)
    assert cohort.head[1, RING_CLASS] == -1
