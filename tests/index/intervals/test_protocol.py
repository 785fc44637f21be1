"""Checks of intervals before an index is built, and the order that all indexes share."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.index.intervals.protocol import (
    checked_bounds,
    checked_columns,
    checked_score,
    padded_rows,
    rank_intervals,
    score_keys,
)

INF, NAN = float("inf"), float("nan")
scores = st.sampled_from([0.0, -0.0, 1e-300, 0.5, 1.0, 1.0 + 2**-52, 1e300])


def refusal(check: Any, *arguments: Any) -> str:
    with pytest.raises(TidingsError) as error:
        check(*arguments)
    return str(error.value)


def test_columns_become_float64() -> None:
    columns = checked_columns([0, -INF], [3, INF], [1, 0])
    assert [column.dtype for column in columns] == [np.float64] * 3
    assert [column.tolist() for column in columns] == [[0.0, -INF], [3.0, INF], [1.0, 0.0]]
    assert [len(column) for column in checked_columns([], [], [])] == [0, 0, 0]


def test_columns_that_are_right_are_not_copied() -> None:
    low = np.array([1.0, 2.0])
    assert checked_columns(low, low, low)[0] is low


@pytest.mark.parametrize(
    ("low", "high", "score", "message"),
    [
        (
            [0],
            [1, 2],
            [1],
            "low, high and score must be arrays of one length, not (1,), (2,), (1,)",
        ),
        (
            [[0]],
            [[1]],
            [[1]],
            "low, high and score must be arrays of one length, not (1, 1), (1, 1), (1, 1)",
        ),
        ([0, 0], [1, 1], [1, -0.5], "interval 1: score -0.5 is not a finite number >= 0"),
        ([0, 0], [1, 1], [INF, 1], "interval 0: score inf is not a finite number >= 0"),
        ([0, 0], [1, 1], [1, NAN], "interval 1: score nan is not a finite number >= 0"),
        ([0, 2], [1, 1], [1, 1], "interval 1: low 2.0 is above high 1.0"),
        ([0, NAN], [1, 1], [1, 1], "interval 1: low nan is above high 1.0"),
        ([0, 0], [NAN, 1], [1, 1], "interval 0: low 0.0 is above high nan"),
    ],
)
def test_wrong_columns_are_refused_by_position(
    low: Any, high: Any, score: Any, message: str
) -> None:
    assert refusal(checked_columns, low, high, score) == message


@pytest.mark.parametrize("value", [0, 0.5, 1e300, True])
def test_a_score_is_a_finite_number(value: Any) -> None:
    assert checked_score(value) == float(value)


@pytest.mark.parametrize("value", [-1, -1e-300, INF, -INF, NAN])
def test_other_scores_are_refused(value: float) -> None:
    assert refusal(checked_score, value) == f"score {value!r} is not a finite number >= 0"


def test_a_score_that_is_no_number_is_refused() -> None:
    assert refusal(checked_score, None) == "the score: expected a number, not None"


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-INF, INF), (1, 2)])
def test_an_interval_may_be_a_point(low: float, high: float) -> None:
    assert checked_bounds("interval 7", low, high) == (low, high)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (2, 1, "interval 7: low 2 is above high 1"),
        (NAN, 1, "interval 7: low nan is above high 1"),
        ("a", 1, "interval 7: low: expected a number, not 'a'"),
        (1, None, "interval 7: high: expected a number, not None"),
    ],
)
def test_empty_intervals_are_refused(low: Any, high: Any, message: str) -> None:
    assert refusal(checked_bounds, "interval 7", low, high) == message


@given(st.lists(scores, max_size=12))
def test_keys_ascend_as_scores_fall(drawn: list[float]) -> None:
    keys = score_keys(np.array(drawn))
    assert keys.dtype == np.int64
    for score, key in zip(drawn, keys.tolist(), strict=True):
        for other, other_key in zip(drawn, keys.tolist(), strict=True):
            assert (key < other_key) == (score > other)
            assert (key == other_key) == (score == other)


@given(st.lists(scores, max_size=12))
def test_intervals_are_ranked_by_score_and_ties_by_id(drawn: list[float]) -> None:
    lows = [float(number) for number in range(len(drawn))]
    ranked = rank_intervals(lows, [low + 1 for low in lows], drawn)
    expected = sorted(range(len(drawn)), key=lambda number: (-drawn[number], number))
    assert ranked.ids.tolist() == expected
    assert ranked.low.tolist() == [lows[number] for number in expected]
    assert ranked.high.tolist() == [lows[number] + 1 for number in expected]
    assert ranked.score.tolist() == [drawn[number] for number in expected]
    assert len(ranked) == len(drawn)


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5), st.integers(4, 6))
def test_rows_are_padded_to_one_width(rows: list[list[int]], k: int) -> None:
    ids, counts = padded_rows([np.array(row, np.int64) for row in rows], k)
    assert ids.shape == (len(rows), k)
    assert counts.tolist() == [len(row) for row in rows]
    assert ids.tolist() == [row + [-1] * (k - len(row)) for row in rows]
