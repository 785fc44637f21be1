"""The brute force over intervals, against a plain reading of the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, ends, ranked, rows, stabbed, within

from tidings.errors import TidingsError
from tidings.index.intervals.scan import IntervalScan

EXAMPLE = [(0.0, 5.0, 1.0), (3.0, 9.0, 2.0), (5.0, 5.0, 1.0)]


def test_both_ends_of_an_interval_are_stabbed() -> None:
    scan = IntervalScan(ranked(EXAMPLE))
    assert scan.top(5, 9).tolist() == [1, 0, 2]
    assert scan.top(9, 9).tolist() == [1]
    assert scan.top(9.1, 9).tolist() == []


@given(rows, st.integers(0, 25))
def test_answers_are_ordered_by_score_and_ties_by_id(drawn: list[Row], k: int) -> None:
    scan = IntervalScan(ranked(drawn))
    ids, counts = scan.top_many(np.array(POINTS), k)
    for q, row, count in zip(POINTS, ids.tolist(), counts.tolist(), strict=True):
        expected = stabbed(drawn, q)
        assert row == expected[:k] + [-1] * (k - count)
        assert scan.top(q, k).tolist() == expected[:k]
        assert list(scan.iterate(q)) == expected


@given(rows, st.tuples(ends, ends).map(sorted))
def test_ranges_overlap_or_are_contained(drawn: list[Row], span: list[float]) -> None:
    ranges, (low, high) = IntervalScan(ranked(drawn)).ranges, span
    assert list(ranges.iterate(low, high)) == within(drawn, high, low)
    assert ranges.top(low, high, 3, "contained").tolist() == within(drawn, low, high)[:3]


def test_every_query_tests_every_interval() -> None:
    scan = IntervalScan(ranked(EXAMPLE))
    assert scan.counters() == {"nodes": 0, "leaves": 0, "intervals": 3}
    assert scan.nbytes == 4 * 3 * 8


def test_wrong_queries_are_refused() -> None:
    scan = IntervalScan(ranked(EXAMPLE))
    with pytest.raises(TidingsError, match="k = -1 is below 0"):
        scan.top(1, -1)
    with pytest.raises(TidingsError, match="the query: expected a number"):
        scan.iterate("one")  # type: ignore[arg-type]
