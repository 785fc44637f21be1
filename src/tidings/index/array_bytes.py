"""The memory that the arrays of an index take."""

from typing import Any


def total_bytes(*arrays: Any) -> int:
    """Return the bytes of all arrays, also of those in nested tuples; other values count 0.

    >>> import numpy as np
    >>> total_bytes((np.zeros(2), (np.zeros(3, np.int32), 7)), np.zeros(1))
    36
    """
    return sum(
        total_bytes(*item) if isinstance(item, tuple) else int(getattr(item, "nbytes", 0))
        for item in arrays
    )
