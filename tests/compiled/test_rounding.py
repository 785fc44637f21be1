"""Compiled rounding against Python's `round`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.rounding import rounded


@given(st.floats(0, 1e300))
def test_rounding_is_that_of_python(score):
    assert rounded(score) == round(score, 12)


@given(st.integers(0, 10**15))
def test_rounding_near_halves_is_that_of_python(halves):
    score = (halves + 0.5) / 1e12
    for near in (np.nextafter(score, 0), score, np.nextafter(score, 1e9)):
        assert rounded(float(near)) == round(float(near), 12)
