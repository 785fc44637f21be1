"""Means as the plain form compares them: the sum is exact, the mean rounded to 12 decimals.

`math.fsum` to the last bit, so equal sets have equal means whatever the order of their members.
"""

import numpy as np
import numpy.typing as npt

from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded

Floats = npt.NDArray[np.float64]


@inner
def mean_without(ranks: Floats, count: int, left_out: int, partials: Floats) -> float:
    """Give the rounded mean of all ranks but one (-1: of all)."""
    partial, members = 0, 0
    for at in range(count):
        if at != left_out:
            partial = sum_add(partials, partial, ranks[at])
            members += 1
    return rounded(sum_total(partials, partial) / members)
