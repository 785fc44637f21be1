"""The votes of a whole window's buckets (BLSH, TKS 5.2.5.2)."""

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.compiled.jit import kernel
from tidings.diversify.kernels.token_rows import table_place


@kernel
def count_votes(bands: UInt64s, best: Int64s, votes: Int64s) -> None:
    """Count for each row the buckets in which it is the first of `best`, all rows best first.

    A bucket is a key of `bands`; keys of different tables never meet, as tables are salted.
    """
    tables = bands.shape[1]
    size = 16
    while size < 2 * bands.size:
        size *= 2
    table, keys = np.full(size, -1, np.int64), bands.ravel()
    for row in best:
        votes[row] = 0
        for each in range(row * tables, (row + 1) * tables):
            place = table_place(table, keys, keys[each])
            if table[place] < 0:
                table[place] = each
                votes[row] += 1
