"""Distances of candidates in the forms that kernels read: a matrix, or lists that give its rows."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import checked_distance
from tidings.diversify.event_tokens import HashRows, has_kernel, hash_events
from tidings.diversify.kernels.distances import (
    DistanceSource,
    SortedRows,
    listed_matrix,
    weighted_matrix,
)
from tidings.diversify.kernels.token_rows import (
    InvertedLists,
    list_rows,
    mask_rows,
    number_hashes,
    sort_rows,
)
from tidings.diversify.memory_limits import check_dense
from tidings.diversify.protocol import Distance
from tidings.model.records import Event

_NONE: Final = np.empty(0, np.int64)
_NO_LISTS: Final = InvertedLists(
    starts=_NONE,
    numbers=np.empty(0, np.int32),
    heads=_NONE,
    positions=np.empty(0, np.int32),
    rows=np.empty(0, np.uint32),
    sizes=_NONE,
    masks=np.empty((0, 0), np.int64),
)
_NO_MATRIX: Final = np.empty((0, 0))


class Submatrix(NamedTuple):
    """Some rows and columns of a larger matrix of distances, without a copy."""

    matrix: Float64s
    members: Int64s


DistanceMatrix = Float64s | Submatrix


def as_submatrix(matrix: DistanceMatrix) -> Submatrix:
    """Return a matrix as a submatrix of all its rows."""
    if isinstance(matrix, Submatrix):
        return matrix
    whole = np.ascontiguousarray(matrix, np.float64)
    return Submatrix(whole, np.arange(len(whole)))


def from_matrix(matrix: DistanceMatrix) -> DistanceSource:
    """Return the source of distances that reads a matrix; they lie between 0 and 1."""
    whole, members = as_submatrix(matrix)
    return DistanceSource(whole, members, _NO_LISTS)


def from_events(events: Sequence[Event], distance: Distance) -> DistanceSource:
    """Return the source of distances between events; without weights, no matrix is written."""
    rows = hash_events(events, distance)
    if len(rows.weights):
        check_dense("a distance with weights", len(events))
        return from_matrix(_weighted_matrix(rows))
    return DistanceSource(_NO_MATRIX, _NONE, inverted_lists(rows))


def distances(events: Sequence[Event], distance: Distance) -> Float64s:
    """Return the n x n distances of events; a user-defined distance is called pair by pair."""
    if not has_kernel(distance):
        return _called_matrix(events, distance)
    return matrix_of(hash_events(events, distance))


def matrix_of(rows: HashRows) -> Float64s:
    """Return the distance of every pair of rows."""
    if len(rows.weights):
        return _weighted_matrix(rows)
    count = len(rows.starts) - 1
    matrix = np.empty((count, count))
    listed_matrix((*inverted_lists(rows),), matrix)
    return matrix


def _called_matrix(events: Sequence[Event], distance: Distance) -> Float64s:
    matrix = np.zeros((len(events), len(events)))
    for i, j in combinations(range(len(events)), 2):
        matrix[i, j] = matrix[j, i] = checked_distance(distance, events[i], events[j])
    return matrix


def _weighted_matrix(rows: HashRows) -> Float64s:
    sort_rows(*rows)
    starts, keys, marks, weights = rows
    count = len(starts) - 1
    matrix = np.empty((count, count))
    masks = np.zeros((count, 0), np.int64)
    spans = (starts[:-1].copy(), starts[1:].copy())
    weighted_matrix(SortedRows(*spans, keys, marks, weights, masks), matrix)
    return matrix


def inverted_lists(rows: HashRows) -> InvertedLists:
    """Build the lists of rows that hold each mark, and the keys of each row as bits."""
    starts, keys, marks, _ = rows
    numbers, positions = (np.empty(len(marks), np.int32) for _ in range(2))
    holders = np.empty(len(marks), np.uint32)
    heads = np.empty(number_hashes(marks, numbers) + 1, np.int64)
    list_rows(starts, numbers, heads, positions, holders)
    key_numbers = np.empty(0 if keys is marks else len(keys), np.int32)
    words = 0 if keys is marks else (number_hashes(keys, key_numbers) + 63) // 64
    masks = np.zeros((len(starts) - 1, words), np.int64)
    if words:
        mask_rows(starts, key_numbers, masks)
    return InvertedLists(starts, numbers, heads, positions, holders, np.diff(starts), masks)
