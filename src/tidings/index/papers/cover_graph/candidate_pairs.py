"""Which conjunctions cover which, among many, without comparing all pairs.

If one conjunction covers another, each of its regions has one of the other's within it. So those
over a conjunction are found by a region over one of its own; each is posted under one region only,
that which the fewest share. Those below it are found among the conjunctions that ask for something
within its rarest region.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable

from tidings.index.papers.cover_graph.attribute_region import (
    Region,
    Row,
    Slot,
    conjunction,
    in_one_order,
    made,
    narrowest,
)
from tidings.index.papers.cover_graph.region_index import Shelf
from tidings.model.conditions.predicate import Predicate


class Rows:
    """Conjunctions in their one form, each once; `compared` counts the pairs that were compared."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Region, ...], Row] = {}
        self._regions: dict[Hashable, Region] = {}
        self._present: dict[Slot, Shelf] = defaultdict(Shelf)
        self._doors: dict[Slot, Shelf] = defaultdict(Shelf)
        self._crowd: dict[Slot, int] = defaultdict(int)
        self.compared = 0

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, parts: Iterable[Predicate]) -> Row:
        """Give the conjunction of some predicates, which is put in if it is new."""
        wanted = {each.key: self._regions.get(each.key, each) for each in map(made, parts)}
        regions = narrowest(wanted.values())
        key = in_one_order(regions)
        if key not in self._rows:
            self._rows[key] = self._post(conjunction(sorted(regions, key=self._rows_within)))
        return self._rows[key]

    def drop(self, row: Row) -> None:
        """Take out a conjunction that no node has."""
        if row.nodes:
            return
        del self._rows[in_one_order(row.regions)]
        row.door.posted.remove(row)
        if not row.door.posted:
            self._doors[row.door.slot].remove(row.door)
        for region in row.regions:
            region.rows.remove(row)
            self._crowd[region.slot] -= 1
            if not region.rows:
                self._present[region.slot].remove(region)
                del self._regions[region.key]
            self._forget(region.slot)

    def over(self, row: Row) -> list[Row]:
        """Give the conjunctions that cover one that is here, itself too."""
        lacks = ~row.has
        found: dict[Row, None] = {}
        for region in row.regions:
            if region.slot not in self._doors:
                continue
            for door in self._doors[region.slot].over(region):
                self.compared += len(door.posted)
                for each in door.posted:
                    if not each.needs & lacks and each.covers(row):
                        found[each] = None
        return list(found)

    def under(self, row: Row) -> list[Row]:
        """Give the conjunctions that one that is here covers, itself too."""
        rarest = min(row.regions, key=self._rows_within)
        needs = row.needs
        found: dict[Row, None] = {}
        for region in self._present[rarest.slot].under(rarest):
            self.compared += len(region.rows)
            for each in region.rows:
                if not needs & ~each.has and row.covers(each):
                    found[each] = None
        return list(found)

    def _post(self, row: Row) -> Row:
        if not row.door.posted:
            self._doors[row.door.slot].add(row.door)
        row.door.posted.append(row)
        for region in row.regions:
            if not region.rows:
                self._regions[region.key] = region
                self._present[region.slot].add(region)
            region.rows.append(row)
            self._crowd[region.slot] += 1
        return row

    def _rows_within(self, region: Region) -> int:
        """Guess how many conjunctions ask for something within a region; more for an open one."""
        return len(region.rows) if region.single else self._crowd[region.slot]

    def _forget(self, slot: Slot) -> None:
        """Give back what an attribute took that nobody asks for."""
        if not self._crowd[slot]:
            del self._crowd[slot]
            del self._present[slot]
            self._doors.pop(slot, None)
