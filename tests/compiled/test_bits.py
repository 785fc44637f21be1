"""Bits of a word, compiled and plain."""

import pytest

from tidings.compiled.bits import ones, ones_plain


@pytest.mark.parametrize(
    ("mask", "count"), [(0, 0), (1, 1), (-1, 64), (-(2**63), 1), (0b1011, 3), (2**62 + 2**31, 2)]
)
def test_ones(mask: int, count: int) -> None:
    assert ones(mask) == ones_plain(mask) == count
