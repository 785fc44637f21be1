"""Orders of candidates as arrays: by ties and by rank."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.model.records import Event


def order_of(events: Sequence[Event]) -> TieOrder:
    """Return the order of ties between events; O(n log n)."""
    ids = [event.id for event in events]
    times = _times(events)
    names = inverse(np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64))
    return TieOrder(inverse(np.lexsort((names, -times))), times, names)


def newest_first(events: Sequence[Event]) -> Int64s:
    """Return `newest` of `order_of`, without sorting ids where times ascend, as in a window."""
    times = _times(events)
    if (times[1:] > times[:-1]).all():
        return np.arange(len(times) - 1, -1, -1)
    return order_of(events).newest


def _times(events: Sequence[Event]) -> Int64s:
    return np.fromiter(map(attrgetter("published_us"), events), np.int64, len(events))


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
    count = len(candidates)
    ranks = np.fromiter(map(attrgetter("rank"), candidates), np.float64, count)
    return ranks, np.fromiter(map(attrgetter("key"), candidates), np.float64, count)
