"""How far apart candidates are, as kernels want it: a matrix, or lists that give its rows."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import measure
from tidings.diversify.event_tokens import Rows, hashed, known
from tidings.diversify.kernels.distances import Source, counted_matrix, weighed_matrix
from tidings.diversify.kernels.token_rows import (
    Lists,
    list_rows,
    mask_rows,
    number_hashes,
    sort_rows,
)
from tidings.diversify.memory_limits import check_dense
from tidings.diversify.protocol import Distance
from tidings.model.records import Event

_NONE: Final = np.empty(0, np.int64)
_NO_LISTS: Final[Lists] = (_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, np.empty((0, 0), np.int64))
_NO_MATRIX: Final = np.empty((0, 0))


class Among(NamedTuple):
    """Some rows of a larger matrix of distances: what a window keeps, without copying it."""

    matrix: Float64s
    members: Int64s


Apart = Float64s | Among


def among(apart: Apart) -> Among:
    """Give a matrix of distances as all of its rows."""
    if isinstance(apart, Among):
        return apart
    matrix = np.ascontiguousarray(apart, np.float64)
    return Among(matrix, np.arange(len(matrix)))


def from_matrix(apart: Apart) -> Source:
    """Give the distances of a matrix, which lie between 0 and 1."""
    matrix, members = among(apart)
    return (matrix, members, _NO_LISTS)


def from_events(events: Sequence[Event], distance: Distance) -> Source:
    """Give the distances between events without writing all of them down."""
    rows = hashed(events, distance)
    if len(rows.weights):
        check_dense("a distance with weights", len(events))
        return from_matrix(_weighted(rows))
    return (_NO_MATRIX, _NONE, _lists(rows))


def distances(events: Sequence[Event], distance: Distance) -> Float64s:
    """Give the distance of every pair: n² numbers; ones that kernels do not know one by one."""
    if not known(distance):
        return _asked(events, distance)
    return matrix_of(hashed(events, distance))


def matrix_of(rows: Rows) -> Float64s:
    """Give the distance of every pair of rows."""
    if len(rows.weights):
        return _weighted(rows)
    count = len(rows.starts) - 1
    found = np.empty((count, count))
    counted_matrix(_lists(rows), found)
    return found


def _asked(events: Sequence[Event], distance: Distance) -> Float64s:
    found = np.zeros((len(events), len(events)))
    for i, j in combinations(range(len(events)), 2):
        found[i, j] = found[j, i] = measure(distance, events[i], events[j])
    return found


def _weighted(rows: Rows) -> Float64s:
    sort_rows(*rows)
    starts, keys, marks, weights = rows
    count = len(starts) - 1
    found = np.empty((count, count))
    whole = (starts[:-1].copy(), starts[1:].copy(), keys, marks, weights)
    weighed_matrix(whole, found)
    return found


def _lists(rows: Rows) -> Lists:
    """Give which rows hold each mark, and the keys of each row as bits."""
    starts, keys, marks, _ = rows
    numbers = np.empty(len(marks), np.int64)
    begins, places, ends, lists = (np.empty(len(marks), np.int64) for _ in range(4))
    list_rows(starts, numbers, number_hashes(marks, numbers), (begins, places, ends, lists))
    words = 0
    if keys is not marks:
        words = (number_hashes(keys, numbers) + 63) // 64
    masks = np.zeros((len(starts) - 1, words), np.int64)
    if words:
        mask_rows(starts, numbers, masks)
    return (starts, begins, places, ends, lists, np.diff(starts), masks)
