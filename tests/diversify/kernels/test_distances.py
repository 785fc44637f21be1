"""Distances between rows of hashes, by merging and by inverted lists, equal the definition."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.arrays import offsets
from tidings.compiled.simd import WORDS
from tidings.diversify.distance import Overlap
from tidings.diversify.hashed_distances import from_events, from_matrix
from tidings.diversify.kernels.distances import (
    DistanceSource,
    SortedRows,
    distances_to,
    fill_row,
    weighted_matrix,
    write_masks,
)
from tidings.model.records import Event

KEYS = st.sampled_from([0, 1, 2, 3, 62, 63, 64, 65, 127, 130])
ROWS = st.lists(st.dictionaries(KEYS, st.integers(0, 2), max_size=6), min_size=1, max_size=8)
WEIGHTS = [0.1, 0.2, 0.7, 3.0, 0.0, 1e-9, 1 / 3, 2.5, 1.0, 7.0]


def weight(key: int) -> float:
    return WEIGHTS[key % 10]


def sorted_rows(rows: list[dict[int, int]], weighted: bool, words: int = 0) -> SortedRows:
    keys = [key for row in rows for key in sorted(row)]
    marks = [3 * key + row[key] for row in rows for key in sorted(row)]
    starts = offsets([len(row) for row in rows])
    result = SortedRows(
        starts[:-1].copy(),
        starts[1:].copy(),
        np.array(keys, np.uint64),
        np.array([*marks, *[0] * WORDS], np.uint64),
        np.array([weight(key) for key in keys] if weighted else [], np.float64),
        np.zeros((len(rows), words), np.int64),
    )
    if words:
        write_masks(result, np.arange(len(rows)))
    return result


def distance(one: dict[int, int], other: dict[int, int], weighted: bool) -> float:
    """The overlap distance (PREF Def. 7)."""

    def total(keys: set[int]) -> float:
        return math.fsum(weight(key) if weighted else 1.0 for key in keys)

    either = one.keys() | other.keys()
    unequal = {key for key in either if one.get(key) != other.get(key)}
    return total(unequal) / total(either) if total(either) else 0.0


@given(ROWS, st.sampled_from([(True, 0), (False, 0), (False, 3)]))
def test_merging_two_rows_or_their_masks_gives_their_distance(
    rows: list[dict[int, int]], kind: tuple[bool, int]
) -> None:
    weighted, words = kind
    out = np.empty(len(rows))
    distances_to(sorted_rows(rows, weighted, words), 0, np.arange(len(rows)), out)
    assert out.tolist() == [distance(rows[0], row, weighted) for row in rows]


@given(ROWS)
def test_a_weighted_matrix_is_symmetric_and_exact(rows: list[dict[int, int]]) -> None:
    matrix = np.empty((len(rows), len(rows)))
    weighted_matrix(sorted_rows(rows, weighted=True), matrix)
    expected = [
        [distance(row, other, True) if row is not other else 0.0 for other in rows] for row in rows
    ]
    assert matrix.tolist() == expected


@given(ROWS, st.data())
def test_both_sources_fill_any_span_of_a_row(
    rows: list[dict[int, int]], data: st.DataObject
) -> None:
    events = [
        Event(f"e{i}", {f"k{key}": value for key, value in row.items()}, 0)
        for i, row in enumerate(rows)
    ]
    count = len(rows)
    matrix = np.array([[distance(row, other, False) for other in rows] for row in rows])
    row = data.draw(st.integers(0, count - 1))
    low = data.draw(st.integers(0, count))
    high = data.draw(st.integers(low, count))
    sources: list[DistanceSource] = [from_events(events, Overlap()), from_matrix(matrix)]
    for source in sources:
        out = np.full(count, -1.0)
        fill_row(source, row, (low, high), np.zeros(count, np.int64), out)
        assert out[low:high].tolist() == matrix[row, low:high].tolist()
        assert (out[:low] == -1).all()
        assert (out[high:] == -1).all()
