"""Which attributes events have, of which types and values; and which predicates can never hold.

A condition with a typing error is valid, and matches nothing. A profile of the events tells such a
condition apart from one that merely has not matched yet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from tidings.errors import TidingsError
from tidings.model.conditions.parser import render_predicate
from tidings.model.conditions.predicate import Predicate, predicate
from tidings.model.records import Event
from tidings.model.values import Family, Key, Range, format_time, key_us, parse_time_us

MOST_VALUES: Final = 1_000
"""Distinct values kept per attribute and type; of more, numbers and times keep their bounds."""
MOST_ATTRIBUTES: Final = 10_000
_PLURAL: Final = {"number": "numbers", "string": "strings", "boolean": "booleans", "time": "times"}


@dataclass
class Values:
    """The values of one type that an attribute has had.

    `distinct` is None if their number exceeds MOST_VALUES, or if some are unknown, as when only
    the type of a column is known.
    """

    distinct: set[Any] | None = field(default_factory=set)
    low: Any = None
    high: Any = None

    def add(self, key: Key) -> None:
        """Add one value."""
        if isinstance(key, Range):
            self.distinct = None  # a range stands for values that nobody has counted
            self._widen(key.span[0])
            self._widen(key.span[1])
            return
        if self.distinct is not None:
            self.distinct.add(key)
            if len(self.distinct) > MOST_VALUES:
                self.distinct = None
        self._widen(key)

    def _widen(self, key: Any) -> None:
        self.low = key if self.low is None else min(self.low, key)
        self.high = key if self.high is None else max(self.high, key)

    def may_satisfy(self, part: Predicate) -> bool:
        """Return False only if none of the values satisfies a predicate of their type."""
        if self.distinct is not None:
            tokens = {part.attribute: frozenset((part.family, key) for key in self.distinct)}
            return part.holds(tokens)
        if part.operator == "between" and self.low is not None:
            least, most = part.operand
            return bool(least <= self.high and self.low <= most)
        return True


class Profile:
    """The attributes of a number of events, with their types and values.

    >>> from tidings.model.conditions.parser import parse_predicate
    >>> profile = Profile()
    >>> profile.add(Event("e1", {"dest": "MIA", "distance": 1089}, published_at=0))
    >>> for text in ("dst = 'MIA'", "dest = 5", "distance > '500'", "distance > 500"):
    ...     print(profile.advice(parse_predicate(text)))
    no event has the attribute dst; did you mean dest?
    dest holds strings, not numbers; write dest = '5'
    distance holds numbers, not strings; write distance > 500
    None
    """

    def __init__(self) -> None:
        self.events = 0
        self._attributes: dict[str, dict[Family, Values]] = {}

    @classmethod
    def of_types(cls, types: Mapping[str, Family]) -> "Profile":
        """Return the profile of a table of which only the types of the columns are known."""
        profile = cls()
        for name, family in types.items():
            profile._attributes[name] = {family: Values(distinct=None)}
        return profile

    def add(self, event: Event) -> None:
        """Add one event."""
        self.events += 1
        for name, tokens in event.tokens.items():
            if name not in self._attributes and len(self._attributes) >= MOST_ATTRIBUTES:
                continue
            families = self._attributes.setdefault(name, {})
            for family, key in tokens:
                if family not in families:
                    families[family] = Values()
                families[family].add(key)

    @property
    def attributes(self) -> Iterable[str]:
        """The names of all attributes."""
        return self._attributes.keys()

    def advice(self, part: Predicate) -> str | None:
        """Return why a predicate holds for none of the events, and what may be meant instead.

        Return None if it may hold for some. That is exact unless an attribute has more than
        MOST_VALUES values.
        """
        families = self._attributes.get(part.attribute)
        if families is None:
            if len(self._attributes) >= MOST_ATTRIBUTES:
                return None
            return f"no event has the attribute {part.attribute}{self._similar_name(part)}"
        values = families.get(part.family)
        if values is None:
            return _wrong_type(part, families)
        if values.may_satisfy(part):
            return None
        return f"no event has such a value{_known_values(part, values)}"

    def _similar_name(self, part: Predicate) -> str:
        folded = {name.casefold(): name for name in self._attributes}
        close = get_close_matches(part.attribute.casefold(), folded, n=1)
        return f"; did you mean {folded[close[0]]}?" if close else ""


def _wrong_type(part: Predicate, families: Mapping[Family, Values]) -> str:
    held = " and ".join(_PLURAL[family] for family in families)
    message = f"{part.attribute} holds {held}, not {_PLURAL[part.family]}"
    for family in families:
        converted = _converted(part, family)
        if converted is not None:
            return f"{message}; write {render_predicate(converted)}"
    return message


def _converted(part: Predicate, family: Family) -> Predicate | None:
    """Return a predicate with its operand as another type; None if there is no such predicate."""
    operator, operand = _as_written(part)
    try:
        if isinstance(operand, tuple | frozenset):
            return predicate(part.attribute, operator, [_convert(key, family) for key in operand])
        return predicate(part.attribute, operator, _convert(operand, family))
    except (TidingsError, ValueError):
        return None


def _as_written(part: Predicate) -> tuple[str, Any]:
    """Return the operator and operand of a predicate, with one bound where only one is finite."""
    if part.operator != "between" or part.family == "string":
        return part.operator, part.operand
    text = render_predicate(part).removeprefix(part.attribute).split()
    low, high = part.operand
    if low == high:
        return "=", low
    if low == float("-inf"):
        return text[0], float(text[1]) if part.family == "number" else high
    if high == float("inf"):
        return text[0], float(text[1]) if part.family == "number" else low
    return "between", (low, high)


def _convert(key: Any, family: Family) -> Any:
    if family == "number":
        return float(key)
    if family == "string":
        return f"{key:g}" if isinstance(key, float) else str(key)
    if family == "time" and isinstance(key, str):
        return {"time": format_time(parse_time_us(key))}
    raise ValueError(key)


def _known_values(part: Predicate, values: Values) -> str:
    """Describe the values that there are: a similar one, all of a few, or their bounds."""
    if part.family == "string" and values.distinct is not None:
        texts = sorted(values.distinct)
        operands = part.operand if isinstance(part.operand, frozenset) else [part.operand]
        folded = {text.casefold(): text for text in texts}
        for operand in operands:
            close = get_close_matches(str(operand).casefold(), folded, n=1)
            if close:
                return f"; did you mean {folded[close[0]]!r}?"
        return ""
    if part.family in ("number", "time"):
        low, high = (_shown_bound(part.family, bound) for bound in (values.low, values.high))
        bounds = f"always {low}" if low == high else f"between {low} and {high}"
        return f"; {part.attribute} is {bounds}"
    return ""


def _shown_bound(family: Family, bound: float) -> str:
    return format_time(key_us(bound)) if family == "time" else f"{bound:g}"
