"""Orders of candidates as arrays: by ties and by rank."""

from collections.abc import Sequence

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.model.records import Event


def order_of(events: Sequence[Event]) -> TieOrder:
    """Return the order of ties between events; O(n log n)."""
    ids = [event.id for event in events]
    times = np.array([event.published_us for event in events], np.int64)
    names = inverse(np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64))
    return TieOrder(inverse(np.lexsort((names, -times))), times, names)


def inverse(permutation: Int64s) -> Int64s:
    """Return the inverse of a permutation: the place of each member."""
    places = np.empty(len(permutation), np.int64)
    places[permutation] = np.arange(len(permutation))
    return places


def by_rank(keys: Float64s, newest: Int64s) -> Int64s:
    """Return all candidates, best rank first: higher key, then newer, then smaller id."""
    return np.lexsort((newest, -keys))


def rank_places(keys: Float64s, newest: Int64s) -> Int64s:
    """Return the place of each candidate in the order of `by_rank`."""
    return inverse(by_rank(keys, newest))


def ranks_and_keys(candidates: Sequence[Candidate]) -> tuple[Float64s, Float64s]:
    """Return the ranks and the keys of candidates as arrays."""
    ranks = np.array([candidate.rank for candidate in candidates], np.float64)
    return ranks, np.array([candidate.key for candidate in candidates], np.float64)
