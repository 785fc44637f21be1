"""Aggregates of contributions: by name, or by a function whose results are checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.index.boxes.aggregate import aggregate_of, greatest, named_aggregate, total

ROWS = np.array([[0.5, 0.0, 2.0], [0.0, 0.0, 0.0]])
weights = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1e16, 1.0])


def test_names_give_the_sum_and_the_greatest_contribution():
    assert aggregate_of("sum")(ROWS).tolist() == [2.5, 0.0]
    assert aggregate_of("max")(ROWS).tolist() == [2.0, 0.0]


@given(st.lists(st.tuples(weights, weights, weights), max_size=5))
def test_sums_are_added_attribute_by_attribute(rows):
    """In this order and no other: pairwise sums differ in the last bit."""
    contributions = np.array(rows).reshape(-1, 3)
    assert total(contributions).tolist() == [0.0 + a + b + c for a, b, c in rows]
    assert greatest(contributions).tolist() == [max(row) for row in rows]


def test_a_function_is_called_with_all_rows():
    second = aggregate_of(lambda rows: np.sort(rows, axis=1)[:, -2])
    assert second(ROWS).tolist() == [0.5, 0.0]
    assert second(ROWS).dtype == np.float64
    counted = aggregate_of(lambda rows: [int((row > 0).sum()) for row in rows])
    assert counted(ROWS).tolist() == [2.0, 0.0]


@pytest.mark.parametrize(
    "result", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]], [1.0, float("nan")]]
)
def test_a_function_must_return_a_number_for_each_row(result):
    aggregate = aggregate_of(lambda _rows: result)
    with pytest.raises(TidingsError, match="did not return a number for each row"):
        aggregate(ROWS)


def test_the_error_of_a_function_is_named():
    def fails(_rows):
        raise ValueError("no such column")

    with pytest.raises(TidingsError, match=r"the aggregate failed: .*no such column"):
        aggregate_of(fails)(ROWS)
    with pytest.raises(TidingsError, match="the aggregate failed"):
        aggregate_of(lambda _rows: ["one", "two"])(ROWS)


@pytest.mark.parametrize("aggregate", ["mean", "", None, 3, ["sum"]])
def test_an_unknown_aggregate_is_refused(aggregate):
    with pytest.raises(TidingsError, match="expected a function or one of: sum, max"):
        aggregate_of(aggregate)


def test_compiled_indexes_take_names_only():
    assert named_aggregate("max", "blocks") == "max"
    for aggregate in ("mean", total):
        with pytest.raises(TidingsError, match="blocks aggregates by sum and max; scan and"):
            named_aggregate(aggregate, "blocks")
