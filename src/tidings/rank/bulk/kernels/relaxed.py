"""Relaxed matching (RPS) in bulk: the weight of the predicates that hold, per subscription.

A subscription is worth its heaviest group: the sum of weight * probability over the predicates of
the group that hold, rounded to 12 decimals.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded
from tidings.index.access.kernels.partial_match import Hits

# 16 bytes: four parts a cache line.
PART: Final = np.dtype(
    [("weight", np.float64), ("group", np.int32), ("attribute", np.int32)], align=True
)


class Spans(NamedTuple):
    """A span of values per number: it starts at firsts[number], or is absent (-1)."""

    firsts: Int64s
    values: AnyArray


@inner
def group_weight(
    spans: Spans, hits: Hits, probabilities: Float64s, hit: int, group: int, sums: Float64s
) -> float:
    """Return the weight of the predicates of one group that hold."""
    first, size = spans.firsts[hits.numbers[hit]], 0
    for position in range(hits.part_starts[hit], hits.part_starts[hit + 1]):
        part = spans.values[first + hits.parts[position]]
        if part["group"] == group:
            certain = len(probabilities) == 0
            weight = part["weight"] if certain else part["weight"] * probabilities[position]
            size = sum_add(sums, size, weight)
    return rounded(sum_total(sums, size))


@inner
def weigh_hits(
    spans: Spans, hits: Hits, probabilities: Float64s, sums: Float64s, out: Float64s
) -> None:
    """Write the weight of each hit: that of its heaviest group.

    `probabilities` are those of the parts that hold; empty if all are 1. Parts that hold come
    mostly group by group; a group that comes again is weighed again, with the same result.
    """
    for hit in range(len(hits.numbers)):
        out[hit] = 0.0
        first, last = spans.firsts[hits.numbers[hit]], -1
        if first < 0:
            continue
        for position in range(hits.part_starts[hit], hits.part_starts[hit + 1]):
            group = spans.values[first + hits.parts[position]]["group"]
            if group != last:
                out[hit] = max(out[hit], group_weight(spans, hits, probabilities, hit, group, sums))
                last = group
