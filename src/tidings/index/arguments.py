"""Checks of the arguments of numeric indexes, whose kernels check nothing themselves."""

import operator
from collections.abc import Callable, Collection
from inspect import Parameter, signature
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError, described, shown
from tidings.model.named_parts import LazyPart

MAX_RESULTS: Final = 1 << 25
"""The most results, queries times k, that one call allocates."""
_INT64: Final = np.iinfo(np.int64)


def numbers(label: str, values: Any) -> Float64s:
    """Return an aligned array of float64 in C order; an array that is one is not copied."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.aligned:
        return np.ascontiguousarray(values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufOUS":
            array = np.ascontiguousarray(array, np.float64)
            return array if array.flags.aligned else array.copy()
    except Exception as error:  # noqa: BLE001 - numpy, or the methods of a foreign class
        raise TidingsError(f"{label}: expected an array of numbers; {described(error)}") from None
    raise TidingsError(f"{label}: expected an array of numbers, not of {shown(array.dtype)}")


def points(label: str, values: Any) -> Float64s:
    """Return a one-dimensional array of float64."""
    array = numbers(label, values)
    if array.ndim != 1:
        raise TidingsError(
            f"{label}: expected an array of one dimension, not of shape {array.shape}"
        )
    return array


def number(label: str, value: Any) -> float:
    """Return one number, which may be infinite or NaN."""
    try:
        return float(value)
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        raise TidingsError(f"{label}: expected a number, not {shown(value)}") from None


def count(label: str, value: Any, low: int = 0) -> int:
    """Return an integer of at least `low`."""
    if type(value) is int and value >= low:  # as it nearly always is; a search takes 1.5 us
        return value
    try:
        integer = int.__int__(value) if isinstance(value, int) else operator.index(value)
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        raise TidingsError(f"{label}: expected a whole number, not {shown(value)}") from None
    if integer < low:
        raise TidingsError(f"{label} = {shown(integer)} is below {low}")
    return integer


def result_width(k: Any, queries: int) -> int:
    """Return k as the width of `queries` rows of results; refuse more than memory can hold."""
    width = count("k", k)
    if width * max(queries, 1) > MAX_RESULTS:
        raise TidingsError(
            f"k = {shown(width)} for {queries:,} queries: one call answers with at most "
            f"{MAX_RESULTS:,} ids; ask for fewer at once"
        )
    return width


def checked_id(label: str, value: Any) -> int:
    """Return an id; refuse a number that an index never assigns."""
    integer = count(f"the id of {label}", value, low=int(_INT64.min))
    if not 0 <= integer <= _INT64.max:
        raise TidingsError(f"there is no {label} {shown(integer)}")
    return integer


def checked_ids(label: str, values: Any) -> Int64s:
    """Return ids as a one-dimensional array; negative ids, which never exist, become -1."""
    try:
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind not in "iu":
            return np.array([checked_id(label, value) for value in array.tolist()], np.int64)
        if array.ndim == 1 and (array.dtype != np.uint64 or (array <= _INT64.max).all()):
            # Kernels add to ids, which would overflow for the smallest integers.
            return np.maximum(np.ascontiguousarray(array, np.int64), -1)
    except TidingsError:
        raise
    except Exception as error:  # noqa: BLE001 - numpy, or the methods of a foreign class
        raise TidingsError(f"ids: expected an array of numbers; {described(error)}") from None
    raise TidingsError(f"ids: expected an array of whole numbers, not {shown(values)}")


def distinct_ids(label: str, values: Any) -> Int64s:
    """Return ids as an array; refuse repeated ones."""
    ids = checked_ids(label, values)
    if len(np.unique(ids)) < len(ids):
        raise TidingsError("an id is given twice; a change takes each once")
    return ids


def choice(label: str, name: Any, names: Collection[str]) -> str:
    """Return a name that is one of `names`."""
    if not isinstance(name, str) or name not in names:
        raise TidingsError(f"unknown {label} {shown(name)}; expected one of: {', '.join(names)}")
    return name


def build(name: str, make: Callable[..., Any], data: Any, options: dict[str, Any]) -> Any:
    """Return the index that `make` builds over `data`; refuse options that it does not take."""
    make = make.load() if isinstance(make, LazyPart) else make
    accepted = signature(make).parameters
    open_ended = any(option.kind is Parameter.VAR_KEYWORD for option in accepted.values())
    unknown = options.keys() - {*list(accepted)[1:]}
    if unknown and not open_ended:
        listed = ", ".join(list(accepted)[1:]) or "none"
        raise TidingsError(
            f"index {name}: unknown option {shown(min(unknown))}; expected one of: {listed}"
        )
    return make(data, **options)
