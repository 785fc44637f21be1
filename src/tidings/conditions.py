"""Conditions as a public module: parse, print and compare them.

>>> from tidings.conditions import covers, implies, parse, render
>>> render(parse("not (year < 2003 or genre = 'horror')"))
"year >= 2003 and genre != 'horror'"
>>> covers("genre = 'drama'", "genre = 'drama' and year >= 2003")
True
>>> implies("title like 'abc%'", "title like '%b%'")
True
"""

from tidings.model.conditions import implication
from tidings.model.conditions.parser import parse, parse_predicate, render
from tidings.model.conditions.predicate import Condition, Predicate

__all__ = ["Condition", "Predicate", "covers", "implies", "parse", "render"]


def implies(one: Predicate | str, other: Predicate | str) -> bool:
    """Return whether every value that satisfies one predicate satisfies the other."""
    return implication.implies(_predicate(one), _predicate(other))


def covers(general: Condition | str, special: Condition | str) -> bool:
    """Return whether one condition covers another (PREF Def. 4, semantics §2).

    Each predicate of `general` must be implied by a single predicate of `special`; of a
    disjunction, each conjunction of `special` must be covered by one of `general`.
    """
    wide, narrow = _condition(general), _condition(special)
    return implication.covers(wide.conjunctions, narrow.conjunctions)


def _predicate(value: Predicate | str) -> Predicate:
    return value if isinstance(value, Predicate) else parse_predicate(value)


def _condition(value: Condition | str) -> Condition:
    return value if isinstance(value, Condition) else parse(value)
