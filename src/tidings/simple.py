"""Conditions of the simplest form, read without a parser: comparisons and ranges joined by `and`.

Most conditions are like that, and a million of them are read in the time that the parser takes for
some ten thousand. What is not of this form, or is refused, is left to `tidings.language`, which
reads everything and says what is wrong; of what both can read, both give the same.
"""

import re
from collections.abc import Callable
from typing import Final

from tidings.errors import TidingsError
from tidings.predicate import Condition, Predicate, predicate

_VALUE: Final = r"('[^'\\]*'|-?[0-9]+(?:\.[0-9]+)?|true|false)(?=\s|$)"
_TERM: Final = re.compile(
    rf"\s*([a-z_][a-z0-9_]*)(?:\s*(<=|>=|!=|<>|=|<|>)\s*{_VALUE}"
    rf"|\s+between\s+{_VALUE}\s+and\s+{_VALUE})\s*(and\s|$)",
    re.ASCII | re.IGNORECASE,
)
_DIGITS: Final = 320
_BOOLEANS: Final = {"true": True, "false": False}


def read_simple(text: str, plain_name: Callable[[str], bool]) -> Condition | None:
    """Read a condition of the simplest form; None if it is none, or cannot hold.

    `plain_name` tells whether a name stands for an attribute wherever one may.

    >>> found = read_simple("genre = 'drama' and year between 2001 and 2003", str.isidentifier)
    >>> [part.attribute for part in found.conjunctions[0]]
    ['genre', 'year']
    >>> read_simple("year > 2000 or good", str.isidentifier)
    """
    parts, at, more = list[Predicate](), 0, True
    try:
        while more:
            term = _TERM.match(text, at)
            if term is None or not plain_name(term[1]):
                return None
            parts.append(_predicate(term))
            at, more = term.end(), bool(term[6])
        return Condition((tuple(parts),))
    except TidingsError:
        return None


def _predicate(term: re.Match[str]) -> Predicate:
    if term[2] is None:
        return predicate(term[1], "between", (_value(term[4]), _value(term[5])))
    operator = "!=" if term[2] == "<>" else term[2]
    return predicate(term[1], operator, _value(term[3]))


def _value(text: str) -> object:
    if text[0] == "'":
        return text[1:-1]
    if (known := _BOOLEANS.get(text.lower())) is not None:
        return known
    return number(text)


def number(text: str) -> int | float:
    """Read a number; one of more digits than any finite number has becomes infinite."""
    if len(text) > _DIGITS or not text.lstrip("-").isdecimal():
        return float(text)
    return int(text)
