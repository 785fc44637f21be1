"""Relaxed matching (RPS) at fan-out: what the predicates that hold weigh, for each subscription."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded

PART: Final = np.dtype(
    [("weight", np.float64), ("group", np.int32), ("attribute", np.int32)], align=True
)


class Held(NamedTuple):
    """What an index found: of each event the touched subscriptions, of each the parts that hold."""

    starts: Int64s
    numbers: Int32s
    part_starts: Int64s
    parts: Int32s


class Pool(NamedTuple):
    """Something for each part of a subscription, which begins at the first of its number."""

    firsts: Int64s  # -1 where there is nothing
    parts: npt.NDArray[Any]


@inner
def group_weight(
    pool: Pool, held: Held, sure: Float64s, hit: int, group: int, sums: Float64s
) -> float:
    """Give what the parts of one group that hold weigh together, rounded."""
    first, size = pool.firsts[held.numbers[hit]], 0
    for at in range(held.part_starts[hit], held.part_starts[hit + 1]):
        part = pool.parts[first + held.parts[at]]
        if part["group"] == group:
            weight = part["weight"] * sure[at] if len(sure) > 0 else part["weight"]
            size = sum_add(sums, size, weight)
    return rounded(sum_total(sums, size))


@inner
def weigh_hits(pool: Pool, held: Held, sure: Float64s, sums: Float64s, out: Float64s) -> None:
    """Write what each touched subscription is worth: its heaviest group.

    `sure` are the probabilities of the parts that hold; nothing, if all are 1.
    """
    for hit in range(len(held.numbers)):
        out[hit] = 0.0
        first, last = pool.firsts[held.numbers[hit]], -1
        if first < 0:
            continue
        for at in range(held.part_starts[hit], held.part_starts[hit + 1]):
            group = pool.parts[first + held.parts[at]]["group"]
            if group != last:
                out[hit] = max(out[hit], group_weight(pool, held, sure, hit, group, sums))
                last = group
