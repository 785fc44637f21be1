"""Arrays that begin on a cache line."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

LINE: Final = 64


def aligned(size: int, dtype: Any) -> npt.NDArray[Any]:
    """Make an array of `size` numbers, not filled, whose first lies on a 64-byte line."""
    width = np.dtype(dtype).itemsize
    raw = np.empty(size * width + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size * width].view(dtype)
