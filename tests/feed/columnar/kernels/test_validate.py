"""The validation of restored windows, compared with the invariants in plain Python."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.kernels.validate import (
    RestoredEntries,
    RestoredEvents,
    RestoredRows,
    ValidationScratch,
    first_invalid_row,
)

Window = tuple[list[tuple[int, float, int]], list[int]]
"""The list of a window as (slot, key, mark), and its ring."""

US = np.array([1, 1, 2, 2, 3, 3])
ID_ORDER = np.array([0, 1, 1, 0, 0, 1])

slots = st.integers(0, 5)
entries = st.tuples(slots, st.sampled_from([0.1, 0.5, 0.5, 0.9]), st.integers(0, 5))
windows = st.tuples(st.lists(entries, max_size=4), st.lists(slots, max_size=5))


def valid_windows(window: Window) -> Window:
    """Repair most of a window, so that valid ones are common."""
    listed, ring = window
    ring = sorted({*ring, *(slot for slot, _, _ in listed)})
    unique = {slot: (slot, key, mark) for slot, key, mark in listed}
    order = sorted(unique.values(), key=lambda e: (-e[1], -US[e[0]], ID_ORDER[e[0]]))
    marked = [
        (slot, key, 2 * sum(ring.index(other[0]) > ring.index(slot) for other in order[:nth]))
        for nth, (slot, key, _) in enumerate(order)
    ]
    return marked, ring


def is_valid(window: Window, rings: bool, prune: bool) -> bool:
    listed, ring = window
    order = [(-key, -US[slot], ID_ORDER[slot]) for slot, key, _ in listed]
    if any(a >= b for a, b in pairwise(order)) or len({e[0] for e in listed}) < len(listed):
        return False
    if not rings:
        return True
    if len({*ring}) < len(ring) or any(US[a] > US[b] for a, b in pairwise(ring)):
        return False
    if not {slot for slot, _, _ in listed} <= {*ring}:
        return False
    newer = [
        sum(ring.index(other[0]) > ring.index(slot) for other in listed[:nth])
        for nth, (slot, _, _) in enumerate(listed)
    ]
    marks = [mark >> 1 for _, _, mark in listed]
    return not prune or all(mark >= count for mark, count in zip(marks, newer, strict=True))


def column(values: Sequence[float], kind: type) -> np.ndarray:
    return np.array(values, kind)


@given(
    st.lists(st.one_of(windows, windows.map(valid_windows)), max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_the_first_invalid_row_is_found(drawn: list[Window], rings: bool, prune: bool) -> None:
    prune &= rings
    listed = [entry for window in drawn for entry in window[0]]
    ring = [slot for window in drawn for slot in window[1]] if rings else []
    rows = RestoredRows(
        column([len(window[0]) for window in drawn], np.int64),
        column([len(window[1]) for window in drawn], np.int64),
    )
    row = first_invalid_row(
        rows,
        RestoredEntries(
            column([entry[0] for entry in listed], np.int32),
            column([entry[1] for entry in listed], np.float64),
            column([entry[2] for entry in listed], np.int32),
            column(ring, np.int32),
        ),
        RestoredEvents(US, ID_ORDER, US),
        ValidationScratch(np.full(6, -1), np.full(6, -1), np.zeros(20, np.int64)),
        rings,
        prune,
    )
    expected = [nth for nth, window in enumerate(drawn) if not is_valid(window, rings, prune)]
    assert row == (expected[0] if expected else -1)
