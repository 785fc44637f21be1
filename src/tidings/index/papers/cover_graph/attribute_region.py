"""What conjunctions ask of one attribute, in a form that all equivalent predicates share."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Final, TypeVar

from tidings.model.conditions.implication import Span, implies, one_value, spans, value, within
from tidings.model.conditions.predicate import Predicate

_VALUES: Final = (1 << 128) - (1 << 64)

T = TypeVar("T")
Slot = tuple[str, str]
"""An attribute and a family of values."""


@dataclass(eq=False, slots=True)
class Region:
    """The set of values that a predicate allows: `part` is one of the predicates that write it.

    `spans` are None for a suffix or substring, which is no union of spans; `only` is the span
    where there is just one, `single` says that it is one value. Equivalent predicates have equal
    keys. `bits` are a signature of the slot and, above 64, of the one value. `rows` are the
    conjunctions that ask for it, `posted` those of them to be found by it.
    """

    part: Predicate
    spans: tuple[Span, ...] | None
    key: Hashable
    slot: Slot
    only: Span | None
    single: bool
    bits: int
    rows: list["Row"] = field(default_factory=list)
    posted: list["Row"] = field(default_factory=list)

    def within(self, other: "Region") -> bool:
        """Tell whether every value in this one, of the same slot, is in the other."""
        if self.only is not None and other.only is not None:
            (low, high), (least, most) = self.only, other.only
            return bool(least <= low and high <= most)
        if self.spans is None or other.spans is None:
            return self is other or implies(self.part, other.part)
        return within(self.spans, other.spans)

    def witness(self) -> Any:
        """Give a value of a region that is not empty."""
        return self.part.operand if self.spans is None else value(self.spans[0][0])

    def keys(self) -> list[Any] | None:
        """Give the lower ends of all values, if they can be listed."""
        if self.spans is None or not all(one_value(each, self.slot[1]) for each in self.spans):
            return None
        return [low for low, _ in self.spans]


@dataclass(eq=False, slots=True)
class Row:
    """A conjunction: regions none of which lies within another, so equivalent ones are equal.

    The rarest region comes first, as it is the first to fail. It is also the `door` by which the
    conjunction is found. A conjunction that covers another needs no bits that the other has not.
    `nodes` are those of the graph that have it.
    """

    regions: tuple[Region, ...]
    needs: int
    has: int
    nodes: list[Any] = field(default_factory=list)

    @property
    def door(self) -> Region:
        """The region under which the conjunction is posted."""
        return self.regions[0]

    def covers(self, other: "Row") -> bool:
        """Tell whether each region has one of the other within it (PREF Def. 4)."""
        if self.needs & ~other.has:
            return False
        for wide in self.regions:
            slot = wide.slot
            for narrow in other.regions:
                if narrow is wide or (narrow.slot == slot and narrow.within(wide)):
                    break
            else:
                return False
        return True


def conjunction(regions: Iterable[Region]) -> Row:
    """Give a conjunction of regions, with its signature."""
    given = tuple(regions)
    needs = reduce(or_, (each.bits for each in given))
    void = any(each.spans == () for each in given)
    return Row(given, needs, needs | _VALUES if void else needs)


def made(part: Predicate) -> Region:
    """Give the region of a predicate."""
    found, slot = spans(part), (part.attribute, part.family)
    only = found[0] if found is not None and len(found) == 1 else None
    single = only is not None and one_value(only, part.family)
    form = (part.operator, part.operand) if found is None else found
    bits = 1 << (hash(slot) & 63)
    bits |= 1 << (64 + (hash((slot, form)) & 63)) if single else 0
    return Region(part, found, (slot, form), slot, only, single, bits)


def in_one_order(things: Iterable[T]) -> tuple[T, ...]:
    """Give objects in an order that is the same for the same ones; smaller to keep than a set."""
    return tuple(sorted(things, key=id))


def narrowest(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Leave out the regions that have another within them."""
    given = tuple(regions)
    if len({each.slot for each in given}) == len(given):
        return given
    return tuple(
        wide
        for wide in given
        if not any(
            each is not wide and each.slot == wide.slot and each.within(wide) for each in given
        )
    )
