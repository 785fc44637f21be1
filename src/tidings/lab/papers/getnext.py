"""How often Fagin's Threshold Algorithm calls getnext() (RPS 4), and what these calls cost."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index.intervals import interval_index
from tidings.index.intervals.protocol import IntervalIndex
from tidings.lab.stopwatch import least_times
from tidings.lab.workloads.rps import WeightedBoxes

LABELS: Final = {
    "interval": "Interval",
    "r": "R",
    "segment": "Segment",
    "ir": "IR",
    "sopt-r": "SOPT-R",
}
"""The five scored indexes of the paper, by their names in the registry."""
ANSWER_CELLS: Final = 4_000_000
"""The most ids that one call returns."""
_DIGITS: Final = 12


class GetnextCalls(NamedTuple):
    """Per event and dimension, the calls of getnext() and the intervals that the event stabs."""

    calls: Int64s
    stabbed: Int64s


def getnext_calls(work: WeightedBoxes, k: int) -> GetnextCalls:
    """Return how many intervals the algorithm takes from each index before it may stop.

    It takes one from each dimension in turn. After round r it has seen the best r intervals of each
    dimension, and stops when the k-th best sum of weights among their subscriptions is above the
    sum of the last weights. The first such round is found by bisection: sums among the seen grow
    from round to round, and the last weights fall.
    """
    counts = [_calls_of(work, event, k) for event in work.events]
    return GetnextCalls(*(np.array(column) for column in zip(*counts, strict=True)))


def _calls_of(work: WeightedBoxes, event: Float64s, k: int) -> tuple[Int64s, Int64s]:
    stabs = (work.low <= event) & (event <= work.high)
    sums = np.where(stabs, work.weight, 0.0).sum(axis=1).round(_DIGITS)
    size, dimensions = work.low.shape
    stabbed = stabs.sum(axis=0)
    last_weights, seen_in = [], np.full(size, size + 1)
    for dimension in range(dimensions):
        members = np.flatnonzero(stabs[:, dimension])
        order = members[np.argsort(-work.weight[members, dimension], kind="stable")]
        seen_in[order] = np.minimum(seen_in[order], np.arange(1, len(order) + 1))
        last_weights.append(work.weight[order, dimension])

    def stops(rounds: int) -> bool:
        scores = sums[seen_in <= rounds]
        if len(scores) < k:
            return False
        last = sum(column[rounds - 1] for column in last_weights if rounds <= len(column))
        return bool(np.partition(scores, -k)[-k] > round(float(last), _DIGITS))

    low, high = 1, int(stabbed.max()) + 1  # in the round after the longest, all are exhausted
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if stops(middle) else (middle + 1, high)
    return np.minimum(low, stabbed), stabbed


class QueryCost(NamedTuple):
    """Microseconds per event, and what it visits: means, and the most leaves of one event."""

    microseconds: float
    nodes: float
    leaves: float
    intervals: float
    most_leaves: float


def query_cost(
    index: IntervalIndex, points: Float64s, calls: int, rounds: int, counted: int = 20
) -> QueryCost:
    """Return the cost of the same number of getnext() calls for each point.

    The first `counted` points are
    asked for one by one, because the counters are those of the last query.
    """
    visited = []
    for point in points[:counted]:
        index.top(float(point), calls)
        counters = index.counters()
        visited.append([counters[name] for name in ("nodes", "leaves", "intervals")])
    some = points[: max(1, ANSWER_CELLS // max(1, calls))]
    spent = least_microseconds(lambda: index.top_many(some, calls), rounds)
    nodes, leaves, intervals = np.mean(visited, axis=0).tolist()
    most_leaves = float(max(visit[1] for visit in visited))
    return QueryCost(spent / len(some), nodes, leaves, intervals, most_leaves)


def least_microseconds(call: Callable[[], object], rounds: int) -> float:
    """Return the processor time of a call, the least of several rounds."""
    return least_times({"": call}, rounds)[""] * 1e3


class EventCost(NamedTuple):
    """The cost of an event in the indexes of all dimensions, and the bytes of these."""

    query: QueryCost
    nbytes: int


def event_cost(name: str, work: WeightedBoxes, calls: Sequence[int], rounds: int) -> EventCost:
    """Return the cost of an event over all dimensions, each with its number of calls."""
    costs, nbytes = [], 0
    for dimension, count in enumerate(calls):
        index = index_of(name, work, dimension)
        nbytes += index.nbytes
        costs.append(query_cost(index, points_of(work, dimension), count, rounds))
    return EventCost(QueryCost(*np.sum(costs, axis=0).tolist()), nbytes)


def look_up_cost(work: WeightedBoxes, calls: Sequence[int], rounds: int, events: int = 20) -> float:
    """Return the microseconds per event to look up what getnext() returned in all dimensions.

    The look-ups are the same whichever index returns the ids. Over one dimension there are none.
    """
    if len(calls) == 1:
        return 0.0
    indexes = [index_of("sopt-r", work, dimension) for dimension in range(len(calls))]
    spent = 0.0
    for event in work.events[:events]:
        answers = [
            index.top(float(point), count)
            for index, point, count in zip(indexes, event, calls, strict=True)
        ]
        ids = np.concatenate(answers)
        spent += least_microseconds(partial(_sums, work, ids, event), rounds)
    return spent / len(work.events[:events])


def _sums(work: WeightedBoxes, ids: Int64s, event: Float64s) -> Float64s:
    holds = (work.low[ids] <= event) & (event <= work.high[ids])
    sums: Float64s = np.where(holds, work.weight[ids], 0.0).sum(axis=1)
    return sums


def index_of(name: str, work: WeightedBoxes, dimension: int) -> IntervalIndex:
    """Build the index of one dimension."""
    low, high, weight = (column[:, dimension] for column in (work.low, work.high, work.weight))
    return interval_index(name, low, high, weight)


def points_of(work: WeightedBoxes, dimension: int) -> Float64s:
    """Return the values of all events in one dimension."""
    return np.ascontiguousarray(work.events[:, dimension])


def mean_calls(counts: GetnextCalls) -> list[int]:
    """Return the mean number of calls per dimension, at least one."""
    return [max(1, round(mean)) for mean in counts.calls.mean(axis=0).tolist()]
