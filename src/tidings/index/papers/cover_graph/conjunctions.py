"""Conjunctions as sets of regions, and an index that finds covers without comparing all pairs.

If one conjunction covers another, each of its regions has one of the other's within it. The covers
of a conjunction are thus found by a region that contains one of its own; each conjunction is posted
under one region only, its rarest. The conjunctions that it covers are found among those that ask
for a region within its rarest one. With 20,000 subscriptions 0.28 % of all pairs are compared
(bench/results/covers.md).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, Final

from tidings.index.papers.cover_graph.regions import (
    Region,
    RegionIndex,
    Slot,
    in_one_order,
    narrowest,
    region_of,
    wider_slots,
)
from tidings.model.conditions.predicate import Predicate

_VALUE_BITS: Final = (1 << 128) - (1 << 64)


@dataclass(eq=False, slots=True)
class Conjunction:
    """Regions none of which lies within another, so that equivalent conjunctions are equal.

    The rarest region comes first, since it is the first to fail; the conjunction is posted under
    it. A conjunction that covers another requires no signature bits that the other lacks. `nodes`
    are the nodes of the graph that have it.
    """

    regions: tuple[Region, ...]
    required_bits: int
    bits: int
    nodes: list[Any] = field(default_factory=list)

    @property
    def rarest(self) -> Region:
        """The region under which the conjunction is posted."""
        return self.regions[0]

    def covers(self, other: "Conjunction") -> bool:
        """Return whether each region has one of the other's within it (PREF Def. 4)."""
        if self.required_bits & ~other.bits:
            return False
        for wide in self.regions:
            for narrow in other.regions:
                if narrow is wide or (narrow.is_comparable(wide) and narrow.within(wide)):
                    break
            else:
                return False
        return True


def conjunction_of(regions: Iterable[Region]) -> Conjunction:
    """Return a conjunction of regions, with its signature."""
    ordered = tuple(regions)
    required = reduce(or_, (region.bits for region in ordered))
    # An empty region lies within every value of its slot, so it has all value bits.
    is_empty = any(region.spans == () for region in ordered)
    return Conjunction(ordered, required, required | _VALUE_BITS if is_empty else required)


class ConjunctionIndex:
    """Conjunctions, each stored once; `compared` counts the pairs that were compared."""

    def __init__(self) -> None:
        self._conjunctions: dict[tuple[Region, ...], Conjunction] = {}
        self._regions: dict[Hashable, Region] = {}
        self._asked: dict[Slot, RegionIndex] = defaultdict(RegionIndex)
        self._posted: dict[Slot, RegionIndex] = defaultdict(RegionIndex)
        self._uses: dict[Slot, int] = defaultdict(int)
        self.compared = 0

    def __len__(self) -> int:
        return len(self._conjunctions)

    def intern(self, predicates: Iterable[Predicate]) -> Conjunction:
        """Return the conjunction of some predicates, which is added if it is new."""
        candidates = map(region_of, predicates)
        wanted = {region.key: self._regions.get(region.key, region) for region in candidates}
        regions = narrowest(wanted.values())
        key = in_one_order(regions)
        if key not in self._conjunctions:
            ordered = sorted(regions, key=self._estimated_uses)
            self._conjunctions[key] = self._post(conjunction_of(ordered))
        return self._conjunctions[key]

    def drop(self, conjunction: Conjunction) -> None:
        """Remove a conjunction unless a node has it."""
        if conjunction.nodes:
            return
        del self._conjunctions[in_one_order(conjunction.regions)]
        rarest = conjunction.rarest
        rarest.posted.remove(conjunction)
        if not rarest.posted:
            self._posted[rarest.slot].remove(rarest)
        for region in conjunction.regions:
            region.conjunctions.remove(conjunction)
            self._uses[region.slot] -= 1
            if not region.conjunctions:
                self._asked[region.slot].remove(region)
                del self._regions[region.key]
            self._release(region.slot)

    def covering(self, conjunction: Conjunction) -> list[Conjunction]:
        """Return the conjunctions that cover one of the index, including itself."""
        lacking = ~conjunction.bits
        covering: dict[Conjunction, None] = {}
        for region in conjunction.regions:
            for slot in wider_slots(region.slot):
                for wide in self._posted[slot].containing(region) if slot in self._posted else ():
                    self.compared += len(wide.posted)
                    for other in wide.posted:
                        if not other.required_bits & lacking and other.covers(conjunction):
                            covering[other] = None
        return list(covering)

    def covered(self, conjunction: Conjunction) -> list[Conjunction]:
        """Return the conjunctions that one of the index covers, including itself."""
        rarest = min(conjunction.regions, key=self._estimated_uses)
        required = conjunction.required_bits
        covered: dict[Conjunction, None] = {}
        slots = [rarest.slot]
        if rarest.slot[1] == "any":
            slots = [slot for slot in self._asked if rarest.slot in wider_slots(slot)]
        for region in chain.from_iterable(self._asked[slot].contained(rarest) for slot in slots):
            self.compared += len(region.conjunctions)
            for other in region.conjunctions:
                if not required & ~other.bits and conjunction.covers(other):
                    covered[other] = None
        return list(covered)

    def _post(self, conjunction: Conjunction) -> Conjunction:
        rarest = conjunction.rarest
        if not rarest.posted:
            self._posted[rarest.slot].add(rarest)
        rarest.posted.append(conjunction)
        for region in conjunction.regions:
            if not region.conjunctions:
                self._regions[region.key] = region
                self._asked[region.slot].add(region)
            region.conjunctions.append(conjunction)
            self._uses[region.slot] += 1
        return conjunction

    def _estimated_uses(self, region: Region) -> int:
        """Estimate how many conjunctions ask for a region within this one."""
        if region.slot[1] == "any":
            return sum(self._uses.values())
        return len(region.conjunctions) if region.single else self._uses[region.slot]

    def _release(self, slot: Slot) -> None:
        """Remove the indexes of a slot that is no longer used."""
        if not self._uses[slot]:
            del self._uses[slot]
            del self._asked[slot]
            self._posted.pop(slot, None)
