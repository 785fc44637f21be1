"""Aligned arrays begin on a cache line."""

import numpy as np
import pytest

from tidings.compiled.aligned import LINE, aligned


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_first_number_is_at_a_cache_line(size: int, dtype: type) -> None:
    array = aligned(size, dtype)
    assert array.dtype == dtype
    assert array.shape == (size,)
    assert array.ctypes.data % LINE == 0
