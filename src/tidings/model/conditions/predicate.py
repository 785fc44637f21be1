"""Predicates on one attribute, and conditions in DNF (PREF 2, TKS Def. 3.1.2).

All bounds on numbers and times are stored as intervals: `x >= 3`, `x = 3` and
`x between 3 and 5` are all `x in [low, high]`; a strict bound becomes the neighbouring float64.
Case-insensitive patterns (`ilike`) compare case-folded texts, and store a case-folded operand.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tidings.errors import InvalidCondition, shown
from tidings.model import validate
from tidings.model.conditions.case_folding import is_caseless
from tidings.model.limits import Limits
from tidings.model.values import Family, Key, Range, Token, format_time, key_us, scalar, token

Interval = tuple[float, float]
TokenMap = Mapping[str, frozenset[Token]]
PredicateFamily = Family | Literal["any"]

BOUNDS: Final = ("=", "<", "<=", ">", ">=", "between")
PATTERNS: Final = ("prefix", "suffix", "substring")
LIMITS: Final[dict[str, Interval]] = {
    "number": (-sys.float_info.max, sys.float_info.max),
    "time": (-62_135_596_800.0, 253_402_300_799.999999),  # the years 1 to 9999
}
REPEATED: Final = 4
"""The average number of times that a predicate may occur in a normal form."""
FOLDED: Final = {
    "iequal": "=",
    "iprefix": "prefix",
    "isuffix": "suffix",
    "isubstring": "substring",
}
"""The case-insensitive operators, and what they ask of the case-folded text."""
NEGATIONS: Final = {
    f"not {operator}": operator for operator in (*PATTERNS, *FOLDED, "between", "in")
}
"""The negations that are not operators of their own: some value does not satisfy the operator."""
PRESENCE: Final = ("is null", "is not null", "true")
"""The operators without an operand; only these apply to every family of values."""
OPERATORS: Final = (*BOUNDS, "!=", *PATTERNS, "in", *FOLDED, *NEGATIONS, *PRESENCE)
NO_ATTRIBUTE: Final = ""
"""The attribute of `true`, which no event has."""

_HOLDS: Final[dict[str, Callable[..., bool]]] = {
    "=": lambda value, operand: value == operand,
    "!=": lambda value, operand: value != operand,
    "<": lambda value, operand: value < operand,
    "<=": lambda value, operand: value <= operand,
    ">": lambda value, operand: value > operand,
    ">=": lambda value, operand: value >= operand,
    "between": lambda value, operand: operand[0] <= value <= operand[1],
    "prefix": lambda value, operand: value.startswith(operand),
    "suffix": lambda value, operand: value.endswith(operand),
    "substring": lambda value, operand: operand in value,
    "in": lambda value, operand: value in operand,
    "iequal": lambda value, operand: value.casefold() == operand,
    "iprefix": lambda value, operand: value.casefold().startswith(operand),
    "isuffix": lambda value, operand: value.casefold().endswith(operand),
    "isubstring": lambda value, operand: operand in value.casefold(),
}


@dataclass(frozen=True)
class Predicate:
    """One constraint on one attribute; created by `predicate()`, which checks and normalizes.

    `operand` is a key of `family`, an interval for `between`, a frozenset for `in`; the operators
    of `PRESENCE` have none, and the family "any".
    """

    attribute: str
    operator: str
    family: PredicateFamily
    operand: Any

    def holds(self, tokens: TokenMap) -> bool:
        """Return whether *some* value of the attribute satisfies this (PREF Def. 1).

        A missing attribute, which has no value, and a value of another family do not, negations
        included; only `is null` holds for a missing attribute, and `true` for every event.
        """
        if self.family == "any":
            return bool(tokens.get(self.attribute)) == (self.operator == "is not null")
        for family, key in tokens.get(self.attribute, ()):  # half the time of a generator
            if family == self.family and self._satisfied_by(key):
                return True
        return False

    def size_bound(self) -> int:
        """Return an upper bound on the bytes of the printed predicate."""
        operand = self.operand
        members = operand if isinstance(operand, tuple | frozenset) else (operand or "",)
        # A character takes up to 4 bytes, a quote 2, and a number or time less than 48.
        size = sum(4 * len(key) + 8 if isinstance(key, str) else 48 for key in members)
        return 2 * (4 * len(self.attribute) + 16) + size

    def _satisfied_by(self, key: Key) -> bool:
        if isinstance(key, Range):
            return key.satisfies(self.operator, self.operand)
        if (positive := NEGATIONS.get(self.operator)) is not None:
            return not _HOLDS[positive](key, self.operand)
        return _HOLDS[self.operator](key, self.operand)


TRUE: Final = Predicate(NO_ATTRIBUTE, "true", "any", None)
"""The predicate that every event satisfies."""


def predicate(attribute: object, operator: str, operand: object = None) -> Predicate:
    """Return a valid predicate; bounds on numbers and times become intervals.

    `true` needs no attribute and, as `is null` and `is not null`, no operand.

    >>> predicate("year", ">=", 2003).operand
    (2003.0, inf)
    >>> predicate("year", "between", (7, 3))
    Traceback (most recent call last):
    tidings.errors.InvalidCondition: year: low 7 is above high 3, so nothing can satisfy it
    """
    if operator not in OPERATORS:
        raise InvalidCondition(
            f"unknown operator {shown(operator)}; expected one of: {', '.join(OPERATORS)}"
        )
    if operator == "true":
        return TRUE
    attribute = validate.name("an attribute's name", attribute, InvalidCondition)
    if operator in PRESENCE:
        return Predicate(attribute, operator, "any", None)
    if operator in NEGATIONS:
        return _negation(predicate(attribute, NEGATIONS[operator], operand))
    if operator == "in":
        family, keys = _members(attribute, operand)
        return Predicate(attribute, "in", family, keys)
    if operator == "between":
        return _between(attribute, operand)
    return _comparison(attribute, operator, operand)


def _comparison(attribute: str, operator: str, operand: object) -> Predicate:
    family, key = _token(attribute, operand)
    if operator in PATTERNS or operator in FOLDED:
        if family != "string":
            raise InvalidCondition(f"{attribute}: {operator} needs a string, not {shown(operand)}")
        return _pattern(attribute, operator, key)
    if family == "boolean" and operator not in ("=", "!="):
        raise InvalidCondition(f"{attribute}: booleans have no order; use = or !=")
    if family in ("number", "time") and operator in BOUNDS:
        return _bounded(attribute, operator, family, float(key))
    return Predicate(attribute, operator, family, key)


def _pattern(attribute: str, operator: str, text: str) -> Predicate:
    """Return a pattern; a case-insensitive one of texts without case is a plain one."""
    folded = text.casefold()
    if operator not in FOLDED:
        folded = text
    elif is_caseless(folded):
        operator = FOLDED[operator]
    return Predicate(attribute, operator, "string", folded)


def _negation(part: Predicate) -> Predicate:
    """Return `not in`, `not between` or `not like`; one that excludes a single value is `!=`."""
    attribute, operator, family, operand = part.attribute, part.operator, part.family, part.operand
    members = operand if operator in ("in", "between") else (operand,) if operator == "=" else ()
    if len(set(members)) == 1:
        return Predicate(attribute, "!=", family, next(iter(members)))
    if not (members or operand) or (family == "boolean" and members):
        raise InvalidCondition(
            f"{attribute}: every {family} is excluded, so nothing can satisfy `not {operator}`"
        )
    return Predicate(attribute, f"not {operator}", family, operand)


def _bounded(attribute: str, operator: str, family: Family, bound: float) -> Predicate:
    low, high = _interval(operator, bound)
    first, last = LIMITS[family]
    if low > last or high < first:
        raise InvalidCondition(
            f"{attribute}: no {family} is {operator} {_show(family, bound)}, "
            "so nothing can satisfy it"
        )
    return Predicate(attribute, "between", family, (low, high))


def _interval(operator: str, bound: float) -> Interval:
    match operator:
        case "=":
            return (bound, bound)
        case "<":
            return (-math.inf, math.nextafter(bound, -math.inf))
        case "<=":
            return (-math.inf, bound)
        case ">":
            return (math.nextafter(bound, math.inf), math.inf)
        case _:
            return (bound, math.inf)


def _between(attribute: str, operand: object) -> Predicate:
    if not isinstance(operand, tuple | list) or len(operand) != 2:
        raise InvalidCondition(f"{attribute}: between needs two bounds, not {shown(operand)}")
    (family, low), (other, high) = (_token(attribute, bound) for bound in operand)
    if family != other or family == "boolean":
        raise InvalidCondition(
            f"{attribute}: between needs two numbers, strings or times, not {shown(operand)}"
        )
    if low > high:
        raise _empty(attribute, family, low, high)
    return Predicate(attribute, "between", family, (low, high))


def _token(attribute: str, value: object) -> tuple[Family, Any]:
    operand = scalar(value)
    if isinstance(operand, Range):
        raise InvalidCondition(
            f"{attribute}: {shown(value)} is for events; write `between` in a condition"
        )
    return token(operand)


def _members(attribute: str, operand: object) -> tuple[Family, frozenset[Key]]:
    if not isinstance(operand, tuple | list | set | frozenset) or not operand:
        raise InvalidCondition(f"{attribute}: in needs a list of values, not {shown(operand)}")
    members = {_token(attribute, member) for member in operand}
    families = {family for family, _ in members}
    if len(families) > 1:
        raise InvalidCondition(
            f"{attribute}: the values of one `in` must be of one family, not "
            + " and ".join(sorted(families))
        )
    return families.pop(), frozenset(key for _, key in members)


def _empty(attribute: str, family: str, low: Key, high: Key) -> InvalidCondition:
    bounds = [_show(family, bound) for bound in (low, high)]
    strict = " (a bound is strict)" if bounds[0] == bounds[1] else ""
    return InvalidCondition(
        f"{attribute}: low {bounds[0]} is above high {bounds[1]}{strict}, so nothing can satisfy it"
    )


def _show(family: str, bound: Any) -> str:
    if isinstance(bound, str):
        return shown(bound)
    return format_time(key_us(bound)) if family == "time" else f"{bound:.12g}"


def fold(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    """Fold a conjunction: all bounds on one number or time become one interval (semantics §2).

    Predicates keep the order of their first appearance and duplicates are dropped. An empty
    interval is refused, and an attribute that must be missing and have a value.
    """
    folded: dict[object, Predicate] = {}
    for part in predicates:
        bounds = part.operator == "between" and part.family in ("number", "time")
        slot = (part.attribute, part.family) if bounds else part
        folded[slot] = _intersect(folded[slot], part) if slot in folded else part
    parts = tuple(folded.values())
    missing = {part.attribute for part in parts if part.operator == "is null"}
    for part in parts:
        if part.attribute in missing and part.operator != "is null":
            raise InvalidCondition(
                f"{part.attribute}: `is null` excludes every other predicate on it, so nothing can "
                "satisfy them together"
            )
    return parts


def _intersect(one: Predicate, other: Predicate) -> Predicate:
    if one == other:
        return one
    (low, high), (low2, high2) = one.operand, other.operand
    low, high = max(low, low2), min(high, high2)
    if low > high:
        raise _empty(one.attribute, one.family, low, high)
    return Predicate(one.attribute, "between", one.family, (low, high))


@dataclass(frozen=True)
class Condition:
    """A disjunction of conjunctions of predicates (DNF); it matches once, however many hold."""

    conjunctions: tuple[tuple[Predicate, ...], ...]

    def __post_init__(self) -> None:
        if not self.conjunctions or not all(self.conjunctions):
            raise InvalidCondition("a condition needs at least one predicate")
        folded = dict.fromkeys(fold(conjunction) for conjunction in self.conjunctions)
        object.__setattr__(self, "conjunctions", tuple(folded))

    def holds(self, tokens: TokenMap) -> bool:
        """Return whether every predicate of some conjunction holds."""
        return any(
            all(part.holds(tokens) for part in conjunction) for conjunction in self.conjunctions
        )

    def check(self, limits: Limits) -> None:
        """Refuse a condition with more predicates, or more values of one, than the limits allow."""
        check, conjunctions = limits.check, self.conjunctions
        check("conjunctions", len(conjunctions), "the number of conjunctions", InvalidCondition)
        total = 0
        for conjunction in conjunctions:
            size = len(conjunction)
            what = "the number of predicates of one conjunction"
            check("conjunction_predicates", size, what, InvalidCondition)
            total += size
            for part in conjunction:
                if part.operator in ("in", "not in"):
                    what = "the number of values of one `in`"
                    check("in_values", len(part.operand), what, InvalidCondition)
        if total > limits.predicates:
            # A normal form repeats predicates; only distinct ones count.
            distinct = max(len(set(self.predicates)), -(-total // REPEATED))
            check("predicates", distinct, "the number of predicates", InvalidCondition)

    def size_bound(self) -> int:
        """Return an upper bound on the bytes of the printed condition."""
        return sum(part.size_bound() for conjunction in self.conjunctions for part in conjunction)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The distinct predicates, in written order."""
        return tuple(dict.fromkeys(part for conj in self.conjunctions for part in conj))
