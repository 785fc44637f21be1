"""Rows of answers."""

import numpy as np
import numpy.typing as npt

from tidings.compiled.jit import kernel

Ints = npt.NDArray[np.int64]


@kernel
def fill_rest(out: Ints, counts: Ints) -> None:
    """Write -1 behind the last answer of each row."""
    for row in range(len(counts)):
        for column in range(counts[row], out.shape[1]):
            out[row, column] = -1
