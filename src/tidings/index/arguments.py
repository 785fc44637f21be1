"""Checks of what users give to indexes of numbers, whose kernels check nothing."""

import operator
from collections.abc import Callable, Collection
from inspect import Parameter, signature
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError, described, shown

CELLS: Final = 1 << 25
"""The most answers, rows times k, that one call makes room for."""
_INT64: Final = np.iinfo(np.int64)


def numbers(what: str, given: Any) -> Float64s:
    """Return an array of float64 in C order; refuse what cannot be one.

    An array that is one already is not copied.
    """
    if type(given) is np.ndarray and given.dtype == np.float64:
        return np.ascontiguousarray(given)
    try:
        found = np.asarray(given)
        if found.dtype.kind in "biufOUS":
            return np.ascontiguousarray(found, np.float64)
    except Exception as error:  # noqa: BLE001 - numpy, or the methods of a foreign class
        raise TidingsError(f"{what}: expected an array of numbers; {described(error)}") from None
    raise TidingsError(f"{what}: expected an array of numbers, not of {shown(found.dtype)}")


def points(what: str, given: Any) -> Float64s:
    """Return an array of one dimension."""
    found = numbers(what, given)
    if found.ndim != 1:
        raise TidingsError(
            f"{what}: expected an array of one dimension, not of shape {found.shape}"
        )
    return found


def number(what: str, given: Any) -> float:
    """Return one number, which may be infinite or NaN."""
    try:
        return float(given)
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        raise TidingsError(f"{what}: expected a number, not {shown(given)}") from None


def count(what: str, given: Any, low: int = 0) -> int:
    """Return a whole number of at least `low`."""
    try:
        found = int.__int__(given) if isinstance(given, int) else operator.index(given)
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        raise TidingsError(f"{what}: expected a whole number, not {shown(given)}") from None
    if found < low:
        raise TidingsError(f"{what} = {shown(found)} is below {low}")
    return found


def width(k: Any, rows: int) -> int:
    """Return k for so many rows of answers; refuse more than the memory can hold."""
    found = count("k", k)
    if found * max(rows, 1) > CELLS:
        raise TidingsError(
            f"k = {shown(found)} for {rows:,} queries: one call answers with at most "
            f"{CELLS:,} ids; ask for fewer at once"
        )
    return found


def id_of(what: str, given: Any) -> int:
    """Return an id; one that no index has ever given is refused."""
    found = count(f"the id of {what}", given, low=int(_INT64.min))
    if not 0 <= found <= _INT64.max:
        raise TidingsError(f"there is no {what} {shown(found)}")
    return found


def ids_of(what: str, given: Any) -> Int64s:
    """Return ids as an array of one dimension; any negative one, which no index gives, as -1."""
    try:
        found = np.asarray(given)
        if found.ndim == 1 and found.dtype.kind not in "iu":
            return np.array([id_of(what, each) for each in found.tolist()], np.int64)
        if found.ndim == 1 and (found.dtype != np.uint64 or (found <= _INT64.max).all()):
            # Kernels add to ids; with the least integers that would overflow.
            return np.maximum(np.ascontiguousarray(found, np.int64), -1)
    except TidingsError:
        raise
    except Exception as error:  # noqa: BLE001 - numpy, or the methods of a foreign class
        raise TidingsError(f"ids: expected an array of numbers; {described(error)}") from None
    raise TidingsError(f"ids: expected an array of whole numbers, not {shown(given)}")


def known(what: str, name: Any, names: Collection[str]) -> str:
    """Return a name, if it is one of these."""
    if not isinstance(name, str) or name not in names:
        raise TidingsError(f"{shown(name)} is no {what}; there are {', '.join(names)}")
    return name


def built(name: str, make: Callable[..., Any], given: Any, options: dict[str, Any]) -> Any:
    """Return the index that `make` builds; refuse options that it does not take."""
    taken = signature(make).parameters
    open_ended = any(each.kind is Parameter.VAR_KEYWORD for each in taken.values())
    unknown = options.keys() - {*list(taken)[1:]}
    if unknown and not open_ended:
        listed = ", ".join(list(taken)[1:]) or "none"
        raise TidingsError(
            f"index {name}: unknown option {shown(min(unknown))}; expected one of: {listed}"
        )
    return make(given, **options)
