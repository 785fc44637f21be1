"""Rows of answers."""

from tidings.compiled.array_types import Int64s
from tidings.compiled.jit import kernel


@kernel
def fill_rest(out: Int64s, counts: Int64s) -> None:
    """Write -1 behind the last answer of each row."""
    for row in range(len(counts)):
        for column in range(counts[row], out.shape[1]):
            out[row, column] = -1
