"""The rounding of queries to the numbers of a block."""

import numpy as np
import pytest

from tidings.index.intervals.kernels.sopt_r_simd import TreeFrame, round_query


@pytest.mark.parametrize("q", [0.1, -0.1, 0.5, 1e300, -1e300, np.inf, -np.inf, 3.0])
def test_a_query_lies_between_its_roundings(q):
    down, up = round_query(TreeFrame(0.0, 8.0, 0.25), q)
    framed = np.clip(q, -8.0, 8.0) * 0.25 if np.isfinite(q) else q
    assert down <= framed <= up
