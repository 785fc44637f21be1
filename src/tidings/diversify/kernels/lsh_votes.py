"""The votes of a whole window's buckets (BLSH, TKS 5.2.5.2)."""

import numpy as np
import numpy.typing as npt

from tidings.compiled.jit import kernel
from tidings.diversify.kernels.token_rows import table_place

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


@kernel
def count_votes(bands: Hashes, best: Ints, votes: Ints) -> None:
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
