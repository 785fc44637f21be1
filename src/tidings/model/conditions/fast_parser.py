"""Conditions of the simplest form, read without a parser: comparisons, ranges and lists by `and`.

Most conditions are like that, and a million of them are read in the time that the parser takes for
some ten thousand. What is not of this form, or is refused, is left to `parser`, which
reads everything and says what is wrong; of what both can read, both give the same.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tidings.errors import TidingsError
from tidings.model.conditions.predicate import Condition, Predicate, predicate

_LITERAL: Final = r"('[^'\\]*'|-?[0-9]+(?:\.[0-9]+)?|true|false)"
_VALUE: Final = rf"{_LITERAL}(?=\s|$)"
_TERM: Final = re.compile(
    rf"\s*([a-z_][a-z0-9_]*)(?:\s*(<=|>=|!=|<>|=|<|>)\s*{_VALUE}"
    rf"|\s+between\s+{_VALUE}\s+and\s+{_VALUE})\s*(and\s|$)",
    re.ASCII | re.IGNORECASE,
)
_LIST: Final = re.compile(r"\s*([a-z_][a-z0-9_]*)\s+in\s*\(", re.ASCII | re.IGNORECASE)
_MEMBER: Final = re.compile(rf"\s*{_LITERAL}\s*([,)])", re.ASCII | re.IGNORECASE)
_LIST_END: Final = re.compile(r"\s*(and\s|$)", re.ASCII | re.IGNORECASE)
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
            if term is None:
                found = _read_list(text, at, plain_name)
                if found is None:
                    return None
                part, at, more = found
            elif plain_name(term[1]):
                part, at, more = _predicate(term), term.end(), bool(term[6])
            else:
                return None
            parts.append(part)
        return Condition((tuple(parts),))
    except TidingsError:
        return None


class _Term(NamedTuple):
    """A term that was read, where the next one begins, and whether there is one."""

    part: Predicate
    end: int
    more: bool


def _read_list(text: str, at: int, plain_name: Callable[[str], bool]) -> _Term | None:
    """Read `name in (value, ...)`, of which the parser would take some 20 us a value."""
    start = _LIST.match(text, at)
    if start is None or not plain_name(start[1]):
        return None
    at, members = start.end(), list[object]()
    while member := _MEMBER.match(text, at):
        members.append(_value(member[1]))
        at = member.end()
        if member[2] == ")":
            end = _LIST_END.match(text, at)
            part = predicate(start[1], "in", members)
            return _Term(part, end.end(), bool(end[1])) if end else None
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
