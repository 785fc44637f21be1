"""Vector comparisons of the columns of a block against their plain twins."""

from typing import Any

import numpy as np
import pytest

from tidings.compiled.jit import kernel
from tidings.index.access.kernels import simd_blocks
from tidings.index.access.kernels.simd_blocks import BOTH, SIDES, Columns, ColumnSpan


@kernel
def compared(columns: Columns, span: ColumnSpan, mask: int) -> Any:
    inside = simd_blocks.judge(columns, span, mask)
    return inside[0], inside[1], simd_blocks.refine(columns, span, mask)


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_comparisons_equal_their_plain_twins(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    slots = rng.integers(0, 3, count + 2).astype(np.int32)
    codes, fine = (rng.integers(0, 4, len(slots) * BOTH).astype(np.uint8) for _ in range(2))
    codes.reshape(-1, 2, 64)[:, 1] += 2
    event_codes = rng.integers(1, 5, 2 * SIDES * 3).astype(np.uint8)
    columns = Columns(slots, codes, fine, event_codes)
    span = ColumnSpan(1, 1 + count, SIDES * 3, 3)
    for mask in (-1, 0b1011, 1 << 62):
        plain = simd_blocks.judge_plain(columns, span, mask)
        refined = simd_blocks.refine_plain(columns, span, mask)
        assert compared(columns, span, mask) == (*plain, refined)
