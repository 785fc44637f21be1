"""Monotone aggregates of the weights that hold (RPS 1, footnote 2).

An aggregate takes rows of what each attribute contributes, its weight where the predicate holds and
0 elsewhere, and gives a score >= 0 a row. It must be monotone: no contribution that grows may lower
the score. `scan` and `threshold` take any; the compiled indexes know `sum` and `max` by name.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.errors import TidingsError, described, shown

Aggregate = Callable[[Float64s], Float64s]


def total(contributions: Float64s) -> Float64s:
    """Add attribute by attribute, so that every index adds in the same order."""
    result = np.zeros(len(contributions))
    for column in contributions.T:
        result += column
    return result


def greatest(contributions: Float64s) -> Float64s:
    """Take the greatest contribution."""
    result: Float64s = contributions.max(axis=1)
    return result


AGGREGATES: Final[dict[str, Aggregate]] = {"sum": total, "max": greatest}


def aggregate_of(wanted: Any) -> Aggregate:
    """Give the aggregate of a name, or the one that was given."""
    if callable(wanted):
        return partial(_checked, wanted)
    if not isinstance(wanted, str) or wanted not in AGGREGATES:
        known = ", ".join(AGGREGATES)
        raise TidingsError(
            f"{shown(wanted)} is no aggregate; there are {known}, or pass a function"
        )
    return AGGREGATES[wanted]


def _checked(function: Aggregate, contributions: Float64s) -> Float64s:
    """Return what a function of a user gives; refuse what is not a number for each row."""
    try:
        found = np.asarray(function(contributions), np.float64)
    except Exception as error:
        raise TidingsError(f"the aggregate failed: {described(error)}") from error
    if found.shape != (len(contributions),) or np.isnan(found).any():
        raise TidingsError("the aggregate did not give a number for each row of contributions")
    return found


def named_aggregate(wanted: str | Aggregate, index: str) -> str:
    """Give the name of an aggregate for an index that has kernels for those only."""
    if not isinstance(wanted, str) or wanted not in AGGREGATES:
        known = " and ".join(AGGREGATES)
        raise TidingsError(f"{index} aggregates by {known}; scan and threshold by any function")
    return wanted
