"""Monotone aggregates of the weights that hold (RPS 1, footnote 2).

An aggregate takes rows of contributions, the weight of each attribute where the predicate holds and
0 elsewhere, and returns a score >= 0 per row. It must be monotone: a contribution that grows never
lowers the score. `scan` and `threshold` take any function; compiled indexes take `sum` and `max`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.errors import TidingsError, described, shown

Aggregate = Callable[[Float64s], Float64s]


def total(contributions: Float64s) -> Float64s:
    """Return the sums, added attribute by attribute: all indexes add in this order."""
    result = np.zeros(len(contributions))
    for column in contributions.T:
        result += column
    return result


def greatest(contributions: Float64s) -> Float64s:
    """Return the greatest contributions."""
    result: Float64s = contributions.max(axis=1)
    return result


AGGREGATES: Final[dict[str, Aggregate]] = {"sum": total, "max": greatest}


def aggregate_of(aggregate: Any) -> Aggregate:
    """Return the aggregate of a name, or a function with its results checked."""
    if callable(aggregate):
        return partial(_checked, aggregate)
    if not isinstance(aggregate, str) or aggregate not in AGGREGATES:
        raise TidingsError(
            f"unknown aggregate {shown(aggregate)}; expected a function or one of: "
            f"{', '.join(AGGREGATES)}"
        )
    return AGGREGATES[aggregate]


def _checked(function: Aggregate, contributions: Float64s) -> Float64s:
    """Return the scores of a user's function; refuse results other than one number per row."""
    try:
        scores = np.asarray(function(contributions), np.float64)
    except Exception as error:
        raise TidingsError(f"the aggregate failed: {described(error)}") from error
    if scores.shape != (len(contributions),) or np.isnan(scores).any():
        raise TidingsError("the aggregate did not return a number for each row of contributions")
    return scores


def named_aggregate(aggregate: str | Aggregate, index: str) -> str:
    """Return the name of an aggregate, for an index that has kernels for those only."""
    if not isinstance(aggregate, str) or aggregate not in AGGREGATES:
        names = " and ".join(AGGREGATES)
        raise TidingsError(f"{index} aggregates by {names}; scan and threshold take any function")
    return aggregate
