"""Means as the plain form compares them: the sum is exact, the mean rounded to 12 decimals.

`math.fsum` to the last bit, so equal sets have equal means whatever the order of their members.
"""

from tidings.compiled.array_types import Float64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded


@inner
def mean_without(ranks: Float64s, count: int, left_out: int, partials: Float64s) -> float:
    """Give the rounded mean of all ranks but one (-1: of all)."""
    partial, members = 0, 0
    for at in range(count):
        if at != left_out:
            partial = sum_add(partials, partial, ranks[at])
            members += 1
    return rounded(sum_total(partials, partial) / members)
