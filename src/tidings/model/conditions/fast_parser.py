"""A fast path for the most common conditions: comparisons, patterns and lists, joined by `and`.

Regular expressions read them in about 20 us, where the parser takes 0.3 ms. Everything else, and
everything that is refused, is left to `parser`, which gives the same result for what both can read.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tidings.errors import TidingsError
from tidings.model.conditions.predicate import TRUE, Condition, Predicate, predicate

_LITERAL: Final = r"('[^'\\]*'|-?[0-9]+(?:\.[0-9]+)?|true|false)"
_VALUE: Final = rf"{_LITERAL}(?=\s|$)"
_NAME: Final = r"\s*([a-z_][a-z0-9_]*)"
_NOT: Final = r"\s+(not\s+)?"
_NEXT: Final = r"\s*(and\s|$)"
_FLAGS: Final = re.ASCII | re.IGNORECASE
_TERM: Final = re.compile(
    rf"{_NAME}(?:\s*(<=|>=|!=|<>|=|<|>)\s*{_VALUE}"
    rf"|{_NOT}between\s+{_VALUE}\s+and\s+{_VALUE}){_NEXT}",
    _FLAGS,
)
_PATTERN: Final = re.compile(
    rf"{_NAME}{_NOT}(i?like)\s+'(%?)([^'\\%_]*)(%?)'(?=\s|$){_NEXT}", _FLAGS
)
_PRESENCE: Final = re.compile(rf"{_NAME}\s+(is\s+(?:not\s+)?null){_NEXT}", _FLAGS)
_TRUE: Final = re.compile(rf"\s*(true)(?=\s|$){_NEXT}", _FLAGS)
_LIST: Final = re.compile(rf"{_NAME}{_NOT}in\s*\(", _FLAGS)
_MEMBER: Final = re.compile(rf"\s*{_LITERAL}\s*([,)])", _FLAGS)
_LIST_END: Final = re.compile(_NEXT, _FLAGS)
_DIGITS: Final = 320
_BOOLEANS: Final = {"true": True, "false": False}


def read_simple(text: str, plain_name: Callable[[str], bool]) -> Condition | None:
    """Return a condition of the common form; None for any other, or one that cannot hold.

    `plain_name` returns whether a name is an attribute in every position.

    >>> condition = read_simple("genre = 'drama' and year between 2001 and 2003", str.isidentifier)
    >>> [part.attribute for part in condition.conjunctions[0]]
    ['genre', 'year']
    >>> read_simple("year > 2000 or good", str.isidentifier)
    """
    parts, position, more = list[Predicate](), 0, True
    try:
        while more:
            term = _read_term(text, position, plain_name)
            if term is None:
                return None
            parts.append(term.part)
            position, more = term.end, term.more
        return Condition((tuple(parts),))
    except TidingsError:
        return None


class _Term(NamedTuple):
    """A predicate, the position of the next one, and whether there is one."""

    part: Predicate
    end: int
    more: bool


def _read_term(text: str, position: int, plain_name: Callable[[str], bool]) -> _Term | None:
    for pattern, read in _READERS:
        term = pattern.match(text, position)
        if term is not None and (pattern is _TRUE or plain_name(term[1])):
            return _Term(read(term), term.end(), bool(term[term.re.groups]))
    start = _LIST.match(text, position)
    return _read_list(text, start) if start is not None and plain_name(start[1]) else None


def _read_list(text: str, start: re.Match[str]) -> _Term | None:
    """Read `name in (value, ...)`, for which the parser would take 20 us per value."""
    position, members = start.end(), list[object]()
    while member := _MEMBER.match(text, position):
        members.append(_value(member[1]))
        position = member.end()
        if member[2] == ")":
            end = _LIST_END.match(text, position)
            part = predicate(start[1], "not in" if start[2] else "in", members)
            return _Term(part, end.end(), bool(end[1])) if end else None
    return None


def _comparison(term: re.Match[str]) -> Predicate:
    if term[2] is None:
        operator = "not between" if term[4] else "between"
        return predicate(term[1], operator, (_value(term[5]), _value(term[6])))
    operator = "!=" if term[2] == "<>" else term[2]
    return predicate(term[1], operator, _value(term[3]))


def _pattern(term: re.Match[str]) -> Predicate:
    operator = _SHAPES[bool(term[4]), bool(term[6])]
    if term[3].lower() == "ilike":
        operator = "iequal" if operator == "=" else f"i{operator}"
    if term[2]:
        operator = "!=" if operator == "=" else f"not {operator}"
    return predicate(term[1], operator, term[5])


def _presence(term: re.Match[str]) -> Predicate:
    return predicate(term[1], " ".join(term[2].lower().split()))


def _constant(_: re.Match[str]) -> Predicate:
    return TRUE


_SHAPES: Final = {
    (False, False): "=",
    (False, True): "prefix",
    (True, False): "suffix",
    (True, True): "substring",
}
_READERS: Final = (
    (_TERM, _comparison),
    (_PATTERN, _pattern),
    (_PRESENCE, _presence),
    (_TRUE, _constant),
)


def _value(text: str) -> object:
    if text[0] == "'":
        return text[1:-1]
    if (boolean := _BOOLEANS.get(text.lower())) is not None:
        return boolean
    return number(text)


def number(text: str) -> int | float:
    """Read a number; one with too many digits becomes infinite."""
    if len(text) > _DIGITS or not text.lstrip("-").isdecimal():
        return float(text)
    return int(text)
