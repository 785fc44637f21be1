"""Answers one by one, fetched by the chunk: a compiled call costs more than an answer does."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s

FIRST: Final = 64
"""The first chunk; each is twice as long as the one before, but not longer than the index."""


def in_chunks(fetch: Callable[[Int64s], int], size: int) -> Iterator[int]:
    """Give ids one by one; `fetch` writes the next ones and says how many there were."""
    chunk = FIRST
    while True:
        out = np.empty(chunk, np.int64)
        count = fetch(out)
        yield from out[:count].tolist()
        if count < chunk:
            return
        chunk = max(FIRST, min(2 * chunk, size))
