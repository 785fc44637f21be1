"""Arrays that begin on a cache line."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

LINE: Final = 64


def aligned(size: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an uninitialized array whose first number is at a 64-byte boundary."""
    width = np.dtype(dtype).itemsize
    # NumPy aligns to 16 bytes: one more line, and the start is moved to the boundary.
    raw = np.empty(size * width + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size * width].view(dtype)
