"""Windows of ranges: overlap and containment as two comparisons."""

import pytest

from tidings.errors import TidingsError
from tidings.index.intervals.ranges import QueryBounds, window_of, windows_of


def test_a_window_turns_a_range_into_two_comparisons():
    assert window_of(2, 5, "overlaps") == QueryBounds(below=5.0, above=2.0)
    assert window_of(2, 5, "contained") == QueryBounds(below=2.0, above=5.0)


@pytest.mark.parametrize("mode", ["overlaps", "contained"])
def test_many_windows_are_those_of_each_range(mode):
    windows = windows_of([2, 0], [5, 0], mode)
    assert [tuple(row) for row in windows] == [window_of(2, 5, mode), window_of(0, 0, mode)]


def test_lows_and_highs_of_different_shapes_are_refused():
    with pytest.raises(TidingsError, match=r"shape \(2,\) do not fit highs of shape \(1,\)"):
        windows_of([1, 2], [3], "overlaps")
