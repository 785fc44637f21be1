"""The hint to the cache: it is emitted, reads nothing, and changes nothing."""

from typing import Any

import numba
import numpy as np
import pytest

from tidings.compiled.jit import COMPILED, kernel
from tidings.compiled.prefetch import prefetch


def _hinted(array: Any, index: int) -> float:
    prefetch(array, index)
    return float(array[0])


hinted = kernel(_hinted)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("index", [0, 2, -1, 10**9])
def test_any_index_may_be_hinted_at(dtype: type, index: int) -> None:
    array: Any = np.array([3, 4, 5], dtype)
    assert hinted(array, index) == 3.0
    assert array.tolist() == [3, 4, 5]


@pytest.mark.skipif(not COMPILED, reason="without compilation there is no hint")
def test_the_hint_is_an_instruction_to_read_and_keep() -> None:
    compiled: Any = numba.njit(_hinted)  # code from a cache cannot be inspected
    compiled(np.array([1.0]), 0)
    code = "\n".join(compiled.inspect_llvm().values())
    assert "llvm.prefetch" in code
    assert "i32 0, i32 3, i32 1)" in code
