"""Regions: the sets of values that predicates allow, and an index of the regions of one attribute.

Equivalent predicates have one region. A region is found by the regions that it contains, or that
contain it.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np

from tidings.compiled.array_types import Bools
from tidings.compiled.arrays import grown
from tidings.index.operand_lists import OPERANDS, OperandList, list_kind, list_operand
from tidings.model.conditions.implication import Span, implies, one_value, spans, value, within
from tidings.model.conditions.predicate import NEGATIONS, NO_ATTRIBUTE, Predicate

T = TypeVar("T")
Slot = tuple[str, str]
"""An attribute and a family of values, or "any" for predicates that apply to all families."""
EVERY_EVENT: Final[Slot] = (NO_ATTRIBUTE, "any")
"""The slot of `true`."""


def wider_slots(slot: Slot) -> tuple[Slot, ...]:
    """Return the slots that may have regions around one of this slot, its own first."""
    return tuple(dict.fromkeys((slot, (slot[0], "any"), EVERY_EVENT)))


@dataclass(eq=False, slots=True)
class Region:
    """The set of values that a predicate allows.

    `predicate` is one of those that define it. `spans` is None for a pattern, which is not a union
    of spans, and for `is null`, `is not null` and `true`; `only` is the span if there is just one,
    and `single` says whether that is one value. Equivalent predicates have equal keys. `bits` is
    a signature of the attribute and, above 64, of the single value. `conjunctions` are those that
    ask for the region, `posted` those of them that are found by it.
    """

    predicate: Predicate
    spans: tuple[Span, ...] | None
    key: Hashable
    slot: Slot
    only: Span | None
    single: bool
    bits: int
    conjunctions: list[Any] = field(default_factory=list)
    posted: list[Any] = field(default_factory=list)

    def within(self, other: "Region") -> bool:
        """Return whether every value of this region is in another one of a comparable slot."""
        if self.only is not None and other.only is not None:
            (low, high), (least, most) = self.only, other.only
            return bool(least <= low and high <= most)
        if self.spans is None or other.spans is None:
            return self is other or implies(self.predicate, other.predicate)
        return within(self.spans, other.spans)

    def witness(self) -> Any:
        """Return a value of a region that is not empty; an empty text has no pattern."""
        if self.spans is None:
            return "" if self.predicate.operator in NEGATIONS else self.predicate.operand
        return value(self.spans[0][0])

    def is_comparable(self, other: "Region") -> bool:
        """Return whether this region may lie within another one, by their slots."""
        return self.slot == other.slot or other.slot in wider_slots(self.slot)

    def keys(self) -> list[Any] | None:
        """Return the lower ends of all values, if they can be listed."""
        if self.spans is None or not all(one_value(span, self.slot[1]) for span in self.spans):
            return None
        return [low for low, _ in self.spans]


def region_of(predicate: Predicate) -> Region:
    """Return the region of a predicate."""
    covered, slot = spans(predicate), (predicate.attribute, predicate.family)
    only = covered[0] if covered is not None and len(covered) == 1 else None
    single = only is not None and one_value(only, predicate.family)
    form = (predicate.operator, predicate.operand) if covered is None else covered
    bits = 1 << (hash(slot[0]) & 63) if slot != EVERY_EVENT else 0
    bits |= 1 << (64 + (hash((slot, form)) & 63)) if single else 0
    return Region(predicate, covered, (slot, form), slot, only, single, bits)


def narrowest(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Return the regions that have no other one within them."""
    candidates = tuple(regions)
    attributes = {region.slot[0] for region in candidates}
    if len(attributes) == len(candidates) and NO_ATTRIBUTE not in attributes:
        return candidates
    return tuple(
        wide
        for wide in candidates
        if not any(
            other is not wide and other.is_comparable(wide) and other.within(wide)
            for other in candidates
        )
    )


def in_one_order(objects: Iterable[T]) -> tuple[T, ...]:
    """Return objects in an order that is the same for the same ones; smaller than a frozenset."""
    return tuple(sorted(objects, key=id))


class RegionIndex:
    """The regions of one slot, found by the regions that they contain or lie within.

    Intervals of numbers are found by comparing arrays, and single strings by hash. Others (ranges
    of strings, `in`, `!=`, patterns) that contain a region are found by a value of it, as an event
    would find them; those within it are tested one by one.
    """

    def __init__(self) -> None:
        self._intervals = IntervalColumns()
        self._points: dict[Any, Region] = {}
        self._others: dict[Region, None] = {}
        self._lists: dict[str, OperandList[Region]] = {}
        self._presence: dict[Region, None] = {}  # of slots of "any", which have nothing else
        self._empty: Region | None = None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Region]:
        empty = () if self._empty is None else (self._empty,)
        return chain(empty, self._intervals, self._points.values(), self._others, self._presence)

    def add(self, region: Region) -> None:
        """Add a region that is not in the index."""
        if region.slot[1] == "any":
            self._presence[region] = None
        elif region.spans == ():
            self._empty = region
        elif _is_interval(region):
            self._intervals.add(region)
        elif region.single:
            self._points[_point(region)] = region
        else:
            self._others[region] = None
            kind = list_kind(region.predicate)
            operands = self._lists.setdefault(kind, OPERANDS[kind]())
            operands.add(list_operand(region.predicate), region)

    def remove(self, region: Region) -> None:
        """Remove a region."""
        if region.slot[1] == "any":
            del self._presence[region]
        elif region.spans == ():
            self._empty = None
        elif _is_interval(region):
            self._intervals.remove(region)
        elif region.single:
            del self._points[_point(region)]
        else:
            del self._others[region]
            self._lists[list_kind(region.predicate)].remove(list_operand(region.predicate))

    def containing(self, region: Region) -> list[Region]:
        """Return the regions that contain all of `region`, including itself."""
        if self._presence:
            return [wide for wide in self._presence if region.within(wide)]
        if region.spans == ():
            return list(self)
        regions: list[Region] = []
        if region.spans and len(self._intervals):
            regions += self._intervals.containing(region.spans[0][0], region.spans[-1][1])
        if region.single and _point(region) in self._points:
            regions.append(self._points[_point(region)])
        if self._others:
            witness = region.witness()
            candidates = chain.from_iterable(
                operands.holding(witness) for operands in self._lists.values()
            )
            regions += [wide for wide in candidates if region.within(wide)]
        return regions

    def contained(self, region: Region) -> list[Region]:
        """Return the regions that lie within `region`, including itself."""
        if region.slot[1] == "any":
            return _within(self, region)
        regions = [] if self._empty is None else [self._empty]
        if region.spans == ():
            return regions
        if region.spans and len(self._intervals):
            inner = self._intervals.contained(region.spans[0][0], region.spans[-1][1])
            regions += inner if len(region.spans) == 1 else _within(inner, region)
        keys = region.keys() if self._points else []
        if keys is None:
            regions += _within(self._points.values(), region)
        else:
            regions += [self._points[key] for key in keys if key in self._points]
        return regions + ([] if region.single else _within(self._others, region))


class IntervalColumns:
    """Intervals of numbers or times, their ends in arrays that are compared at once."""

    def __init__(self) -> None:
        self._low = np.empty(4)
        self._high = np.empty(4)
        self._regions: list[Region] = []
        self._position: dict[Region, int] = {}

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    def add(self, region: Region) -> None:
        """Add a region of one span."""
        position = self._position[region] = len(self._regions)
        self._low = grown(self._low, position + 1)
        self._high = grown(self._high, position + 1)
        self._regions.append(region)
        self._write(region, position)

    def remove(self, region: Region) -> None:
        """Remove a region; the last one moves to its position."""
        position, last = self._position.pop(region), self._regions.pop()
        if last is not region:
            self._regions[position], self._position[last] = last, position
            self._write(last, position)

    def containing(self, low: float, high: float) -> list[Region]:
        """Return the regions that contain the span."""
        size = len(self._regions)
        return self._select((self._low[:size] <= low) & (self._high[:size] >= high))

    def contained(self, low: float, high: float) -> list[Region]:
        """Return the regions within the span."""
        size = len(self._regions)
        return self._select((self._low[:size] >= low) & (self._high[:size] <= high))

    def _write(self, region: Region, position: int) -> None:
        if region.only is not None:
            self._low[position], self._high[position] = region.only

    def _select(self, mask: Bools) -> list[Region]:
        return [self._regions[position] for position in np.flatnonzero(mask).tolist()]


def _within(regions: Iterable[Region], outer: Region) -> list[Region]:
    return [region for region in regions if region.within(outer)]


def _is_interval(region: Region) -> bool:
    return region.only is not None and region.slot[1] in ("number", "time")


def _point(region: Region) -> Any:
    return region.only and region.only[0]
