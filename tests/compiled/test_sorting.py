"""The stable sort of kernels, compared with Python's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.sorting import stable_order


@given(st.lists(st.integers(-3, 3)), st.sampled_from([np.int64, np.float64]))
def test_the_order_is_the_stable_one(keys: list[int], kind: type) -> None:
    order = stable_order(np.array(keys, kind))
    assert order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)
