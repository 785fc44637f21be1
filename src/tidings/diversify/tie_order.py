"""The order of ties as numbers, so that kernels need no strings."""

from collections.abc import Sequence

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.protocol import Candidate, Order
from tidings.model.records import Event


def order_of(events: Sequence[Event]) -> Order:
    """Give the order of ties between events; O(n log n)."""
    ids = [event.id for event in events]
    times = np.array([event.published_us for event in events], np.int64)
    names = places(np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64))
    return Order(places(np.lexsort((names, -times))), times, names)


def places(sequence: Int64s) -> Int64s:
    """Turn the members in order into the place of each member."""
    found = np.empty(len(sequence), np.int64)
    found[sequence] = np.arange(len(sequence))
    return found


def best_places(keys: Float64s, newest: Int64s) -> Int64s:
    """Give the place of each candidate by rank: higher key, then newer, then smaller id."""
    return places(by_rank(keys, newest))


def by_rank(keys: Float64s, newest: Int64s) -> Int64s:
    """Give all candidates, best rank first."""
    return np.lexsort((newest, -keys))


def ranks_and_keys(candidates: Sequence[Candidate]) -> tuple[Float64s, Float64s]:
    """Give the ranks and the keys of candidates as arrays."""
    ranks = np.array([each.rank for each in candidates], np.float64)
    return ranks, np.array([each.key for each in candidates], np.float64)
