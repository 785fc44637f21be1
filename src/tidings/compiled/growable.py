"""Arrays that grow by doubling, so that appending n values costs O(n)."""

from typing import Any

import numpy as np

from tidings.compiled.array_types import AnyArray


def grown(array: AnyArray, size: int, fill: Any = 0) -> AnyArray:
    """Return an array of at least `size` rows: itself, or a copy of twice the rows and more.

    New rows are `fill`.

    >>> grown(np.array([7, 8]), 3, fill=-1)
    array([ 7,  8, -1, -1])
    """
    if size <= len(array):
        return array
    # Not `np.resize`, which repeats the old rows, and not `ndarray.resize`, which views forbid.
    longer = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    longer[: len(array)] = array
    return longer
