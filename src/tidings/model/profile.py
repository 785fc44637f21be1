"""The attributes of events with their types and values, and predicates that can never hold.

A condition with a typing error is valid, and matches nothing. A profile of the events distinguishes
such a condition from one that merely has not matched yet.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Final, Literal

from tidings.errors import TidingsError, clipped
from tidings.model.conditions.parser import render_predicate
from tidings.model.conditions.predicate import Predicate, predicate
from tidings.model.records import Event
from tidings.model.values import Family, Key, Range, format_time, key_us, parse_time_us, token

Flaw = Literal["attribute", "type", "value"]
"""Why a predicate holds for no event: its attribute, the type of its operand, or the operand."""

MOST_ATTRIBUTES: Final = 10_000
MOST_VALUES: Final = 1_000
"""Distinct values kept per attribute and type; of more, numbers and times keep their bounds."""
MOST_KEPT: Final = 50_000
"""Distinct values kept in all."""
LONGEST: Final = 100
"""Characters of the longest string that is kept; an attribute with longer ones holds prose."""
FULLY_READ: Final = 1_024
ONE_IN: Final = 16
"""The values of the first events are all read; later, those of one event in `ONE_IN`."""

_PLURAL: Final = {"number": "numbers", "string": "strings", "boolean": "booleans", "time": "times"}
FIELDS: Final = {
    "id": "the id of an event is not an attribute",
    "published_at": "the time of publication is not an attribute",
    "sequence": "the sequence number of an event is not an attribute",
}
_CLOSE: Final = 20
_BOOLEANS: Final = {"true": True, "false": False, 1.0: True, 0.0: False}


@dataclass
class Values:
    """The values of one type that an attribute has had.

    `distinct` is None if there are too many of them, or if some are unknown, as when only the type
    of a column is known.
    """

    distinct: set[Any] | None = field(default_factory=set)
    low: Any = None
    high: Any = None
    _in_order: list[Any] = field(default_factory=list, repr=False, compare=False)

    def add(self, key: Key) -> None:
        """Add one value."""
        if isinstance(key, Range):
            self.distinct = None  # the values of a range cannot be counted
            self._widen(*key.span)
            return
        if self.distinct is not None:
            self.distinct.add(key)
            if len(self.distinct) > MOST_VALUES or (isinstance(key, str) and len(key) > LONGEST):
                self.distinct = None
        self._widen(key, key)

    def add_new(self, keys: set[Any]) -> None:
        """Add several values, none of which is a range; cheapest if all of them are new."""
        if self.distinct is not None:
            self.distinct |= keys
            too_long = any(isinstance(key, str) and len(key) > LONGEST for key in keys)
            if too_long or len(self.distinct) > MOST_VALUES:
                self.distinct = None
        if keys:
            self._widen(min(keys), max(keys))

    def merge(self, other: "Values") -> None:
        """Add all values of another attribute of the same type."""
        if other.distinct is None:
            self.distinct = None
        elif self.distinct is not None:
            self.distinct |= other.distinct
            if len(self.distinct) > MOST_VALUES:
                self.distinct = None
        if other.low is not None:
            self._widen(other.low, other.high)

    def _widen(self, low: Any, high: Any) -> None:
        if isinstance(low, str):
            return  # the extremes of strings are not reported
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def may_satisfy(self, part: Predicate) -> bool:
        """Return False only if none of the values satisfies a predicate of their type."""
        interval = part.operand if part.operator == "between" and self.low is not None else None
        if self.distinct is None:
            return interval is None or bool(interval[0] <= self.high and self.low <= interval[1])
        if interval is not None:
            ordered = self._ordered()
            place = bisect_left(ordered, interval[0])
            return place < len(ordered) and bool(ordered[place] <= interval[1])
        if part.operator == "=":
            return part.operand in self.distinct
        tokens = {part.attribute: frozenset((_family(part), key) for key in self.distinct)}
        return part.holds(tokens)

    def _ordered(self) -> list[Any]:
        if self.distinct is not None and len(self._in_order) != len(self.distinct):
            self._in_order = sorted(self.distinct)
        return self._in_order


class Profile:
    """The attributes of a number of events, with their types and values.

    `attributes` holds the values of each attribute by their types. The size of a profile is
    bounded, however many events are added.

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
        self.attributes: dict[str, dict[Family, Values]] = {}
        self._room = MOST_KEPT

    @classmethod
    def of_types(cls, types: Mapping[str, Family | None]) -> "Profile":
        """Return the profile of a table of which only the types of the columns are known.

        The type of a column may be unknown, too.
        """
        profile = cls()
        for name, family in types.items():
            profile.attributes[name] = {family: Values(distinct=None)} if family else {}
        return profile

    def add(self, event: Event) -> None:
        """Add one event, with all its values."""
        self.events += 1
        for name, value in event.attributes.items():
            self._add_elements(self._families(name), value)

    def add_sample(
        self, events: Iterable[Event], fully_read: int | None = None, one_in: int | None = None
    ) -> None:
        """Add the attributes of all events, and the values of a sample of them.

        That takes about a microsecond for each event beyond the first `FULLY_READ`.
        """
        known, first = self.attributes, FULLY_READ if fully_read is None else fully_read
        step, sample = ONE_IN if one_in is None else one_in, list[Event]()
        for event in events:
            if not known.keys() >= event.attributes.keys():
                for name in event.attributes:
                    self._families(name)
            if self.events < first or not self.events % step:
                sample.append(event)
            self.events += 1
        self._add_columns(sample)

    def _add_columns(self, events: Sequence[Event]) -> None:
        """Add the values of events attribute by attribute; texts and numbers all at once."""
        columns = defaultdict[str, list[Any]](list)
        for event in events:
            for name, value in event.attributes.items():
                columns[name].append(value)
        kinds = {name: {*map(type, column)} for name, column in columns.items()}
        lists = [column for name, column in columns.items() if tuple in kinds[name]]
        elements = sum(len(value) for column in lists for value in column if type(value) is tuple)
        if sum(map(len, columns.values())) + elements > self._room:
            # Near the limit it depends on the order of the values which of them are kept.
            for event in events:
                for name, value in event.attributes.items():
                    self._add_elements(self._families(name), value)
            return
        for name, column in columns.items():
            families = self._families(name)
            if families is not None and kinds[name] == {str}:
                self._add_keys(families, "string", {*column})
            elif families is not None and kinds[name] <= {int, float}:
                self._add_keys(families, "number", {key for _, key in map(token, {*column})})
            else:
                for value in column:
                    self._add_elements(families, value)

    def merge(self, other: "Profile") -> None:
        """Add all events of another profile."""
        self.events += other.events
        for name, theirs in other.attributes.items():
            ours = self._families(name)
            for family, values in theirs.items() if ours is not None else ():
                assert ours is not None
                ours.setdefault(family, Values()).merge(values)

    def _families(self, name: str) -> dict[Family, Values] | None:
        """Return the types of an attribute; None if there are too many attributes."""
        if name not in self.attributes and len(self.attributes) >= MOST_ATTRIBUTES:
            return None
        return self.attributes.setdefault(name, {})

    def _add_elements(self, families: dict[Family, Values] | None, value: Any) -> None:
        """Add a value, or the elements of a list, to the types of an attribute, if it has any."""
        if families is None:
            return
        for element in value if isinstance(value, tuple) else (value,):
            family, key = token(element)
            values = families.get(family)
            if values is None:
                values = families[family] = Values()
            elif values.distinct is not None and key in values.distinct:
                continue  # most values are not new
            self._add_value(values, key)

    def _add_keys(self, families: dict[Family, Values], family: Family, keys: set[Any]) -> None:
        """Add values of one type to an attribute; there is room for all of them."""
        values = families.setdefault(family, Values())
        before = len(values.distinct or ())
        values.add_new(keys - values.distinct if values.distinct is not None else keys)
        self._room -= len(values.distinct or ()) - before

    def _add_value(self, values: Values, key: Key) -> None:
        before = len(values.distinct or ())
        values.add(key)
        self._room -= len(values.distinct or ()) - before
        if self._room < 0 and values.distinct is not None:
            self._room += len(values.distinct)
            values.distinct = None

    def flaw(self, part: Predicate) -> Flaw | None:
        """Return why a predicate holds for none of the events; None if it may hold for some.

        That is exact for the events of which all values were read, as long as no attribute has more
        than MOST_VALUES of them.
        """
        if part.holds({}):  # it asks for an attribute to be missing
            return None
        families = self.attributes.get(part.attribute)
        if families is None:
            known = 0 < len(self.attributes) < MOST_ATTRIBUTES
            return "attribute" if known else None
        if not families or part.family == "any":  # values are unknown, or do not matter
            return None
        if part.family not in families:
            return "type"
        return None if families[part.family].may_satisfy(part) else "value"

    def advice(self, part: Predicate) -> str | None:
        """Return in words why a predicate holds for no event, and the likely correction."""
        flaw = self.flaw(part)
        if flaw is None:
            return None
        if flaw == "attribute":
            return self.absence(part.attribute)
        if flaw == "type":
            held = " and ".join(_PLURAL[family] for family in self.attributes[part.attribute])
            problem = f"{part.attribute} holds {held}, not {_PLURAL[_family(part)]}"
        else:
            problem = "no event has such a value"
        hint = self.hint(part, flaw)
        return clipped(f"{problem}; {hint}" if hint else problem)

    def absence(self, attribute: str) -> str | None:
        """Return in words that no event has an attribute, and a similar one; None if one has it.

        Nothing is said of profiles without attributes, and of those that list only some.
        """
        if attribute in self.attributes or not 0 < len(self.attributes) < MOST_ATTRIBUTES:
            return None
        problem, meant = f"no event has the attribute {attribute}", self._meant(attribute)
        return clipped(f"{problem}; {meant}" if meant else problem)

    def _meant(self, attribute: str) -> str | None:
        close = _closest(attribute, self.attributes)
        return f"did you mean {close}?" if close else FIELDS.get(attribute)

    def hint(self, part: Predicate, flaw: Flaw) -> str | None:
        """Return a suggestion for a predicate with a flaw, or None."""
        families = self.attributes.get(part.attribute, {})
        if flaw == "attribute":
            return self._meant(part.attribute)
        if flaw == "type":
            converted = filter(None, (_converted(part, family) for family in families))
            return next((f"write {render_predicate(predicate)}" for predicate in converted), None)
        return _known_values(part, families[_family(part)])


def _family(part: Predicate) -> Family:
    """Return the type of values that a predicate compares."""
    assert part.family != "any"  # `is not null` has no flaw but the attribute
    return part.family


def _closest(text: str, known: Iterable[str]) -> str | None:
    """Return the known text that is most similar, whatever its case, or None."""
    folded, sought = {name.casefold(): name for name in sorted(known)}, text.casefold()

    def likeness(candidate: str) -> tuple[bool, float, bool]:
        ratio = SequenceMatcher(None, candidate, sought).ratio()
        return sorted(candidate) == sorted(sought), ratio, candidate[:1] == sought[:1]

    close = get_close_matches(sought, folded, n=_CLOSE)
    return folded[max(close, key=likeness)] if close else None


def _converted(part: Predicate, family: Family) -> Predicate | None:
    """Return a predicate with its operand as another type; None if there is no such predicate."""
    operator, operand = _as_written(part)
    try:
        if isinstance(operand, tuple | frozenset):
            return predicate(part.attribute, operator, [_convert(key, family) for key in operand])
        return predicate(part.attribute, operator, _convert(operand, family))
    except (TidingsError, ValueError, LookupError):
        return None


def _as_written(part: Predicate) -> tuple[str, Any]:
    """Return the operator and operand of a predicate, with one bound where only one is finite."""
    if part.operator != "between" or part.family == "string":
        return part.operator, part.operand
    low, high = part.operand
    # A strict bound is stored as the neighbouring number; printing finds the one that was meant.
    _, operator, bound, *more = render_predicate(replace(part, attribute="a")).split(" ")
    if more or part.family == "time":
        return "between", (low, high)
    return operator, float(bound)


def _convert(key: Any, family: Family) -> Any:
    if family == "number":
        return float(key)
    if family == "string":
        return f"{key:.15g}" if isinstance(key, float) else str(key)
    if family == "time" and isinstance(key, str):
        return {"time": format_time(parse_time_us(key))}
    if family == "boolean":
        return _BOOLEANS[key.lower() if isinstance(key, str) else key]
    raise ValueError(key)


def _known_values(part: Predicate, values: Values) -> str | None:
    """Describe the values that there are: a similar string, or the bounds of numbers and times."""
    if part.family == "string" and values.distinct is not None:
        operands = part.operand if isinstance(part.operand, frozenset) else [part.operand]
        close = (_closest(text, values.distinct) for text in sorted(map(str, operands)))
        return next((f"did you mean {name!r}?" for name in close if name), None)
    if part.family in ("number", "time") and values.low is not None:
        low, high = (_shown_bound(part.family, bound) for bound in (values.low, values.high))
        bounds = f"always {low}" if low == high else f"between {low} and {high}"
        return f"{part.attribute} is {bounds}"
    return None


def _shown_bound(family: Family, bound: float) -> str:
    return format_time(key_us(bound)) if family == "time" else f"{bound:.12g}"
