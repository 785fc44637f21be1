"""Which ranks of a scorer are valid."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from tidings.errors import InvalidPolicy
from tidings.score.protocol import checked_rank


@pytest.mark.parametrize("rank", [None, 0, 0.5, np.float64(2.0), True])
def test_a_valid_rank_is_a_float_or_none(rank: Any) -> None:
    assert checked_rank(rank) == rank
    assert rank is None or type(checked_rank(rank)) is float


@pytest.mark.parametrize("rank", [-1.0, 1e151, inf, nan, "1", [1.0]])
def test_a_rank_that_cannot_be_compared_is_refused(rank: Any) -> None:
    with pytest.raises(InvalidPolicy, match="a rank between 0 and 1e\\+150"):
        checked_rank(rank)
