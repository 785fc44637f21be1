"""Changes of many intervals at once, checked."""

from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.index import arguments

KEPT: Final = np.nan
"""In place of a bound: it stays as it is."""


def kept_bounds(scores: Any) -> Float64s:
    """Give rows (low, high, score) that change nothing but the scores."""
    new = arguments.numbers("scores", scores)
    if new.ndim != 1:
        raise TidingsError(f"scores are an array of one dimension, not of shape {new.shape}")
    if (bad := ~((new >= 0) & (new < np.inf))).any():
        raise TidingsError(f"score {new[bad][0]} is not a finite number >= 0")
    return np.stack([np.full(len(new), KEPT), np.full(len(new), KEPT), new])


def one_each(ids: Any, rows: Float64s) -> Int64s:
    """Give ids, if they are as many as the rows and all different."""
    wanted = arguments.ids_of("interval", ids)
    if wanted.shape != rows.shape[1:]:
        raise TidingsError(f"{wanted.shape} ids and {rows.shape[1:]} changes are not as many")
    if len(np.unique(wanted)) < len(wanted):
        raise TidingsError("an id is given twice; a change takes each once")
    return wanted
