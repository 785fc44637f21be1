"""Zipf's law: ranks are as probable as a power of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.lab.workloads.zipf import zipf_weights


@given(st.integers(1, 200), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]))
def test_probabilities_fall_with_a_power_of_the_rank(count: int, exponent: float) -> None:
    weights = zipf_weights(count, exponent)
    assert weights.shape == (count,)
    assert weights.sum() == pytest.approx(1.0)
    ranks = np.arange(1, count + 1)
    assert weights == pytest.approx(weights[0] / ranks**exponent)


def test_a_whole_exponent_is_a_number_as_any_other() -> None:
    assert zipf_weights(3, 2).tolist() == zipf_weights(3, 2.0).tolist()
    assert zipf_weights(3).tolist() == zipf_weights(3, 1.0).tolist()
    assert zipf_weights(1, 9).tolist() == [1.0]
