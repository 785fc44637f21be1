"""The regions of one attribute and family, to be found by what they contain or lie within."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from tidings.index.papers.cover_graph.attribute_region import Region
from tidings.index.papers.opindex.operand_lists import OPERANDS, Operands, kind, operand


class Shelf:
    """Finds regions: intervals of numbers by comparing arrays, single strings by hash.

    Of the others (ranges of strings, `in`, `!=`, patterns) those over a region are found by a value
    of it, as an event would find them, and those within it are looked at one by one.
    """

    def __init__(self) -> None:
        self._bounds = Bounds()
        self._points: dict[Any, Region] = {}
        self._others: dict[Region, None] = {}
        self._lists: dict[str, Operands[Region]] = {}
        self._void: Region | None = None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Region]:
        void = () if self._void is None else (self._void,)
        return chain(void, self._bounds, self._points.values(), self._others)

    def add(self, region: Region) -> None:
        """Put in a region that is not there."""
        if region.spans == ():
            self._void = region
        elif _interval(region):
            self._bounds.add(region)
        elif region.single:
            self._points[_key(region)] = region
        else:
            self._others[region] = None
            name = kind(region.part)
            self._lists.setdefault(name, OPERANDS[name]()).add(operand(region.part), region)

    def remove(self, region: Region) -> None:
        """Take out a region."""
        if region.spans == ():
            self._void = None
        elif _interval(region):
            self._bounds.remove(region)
        elif region.single:
            del self._points[_key(region)]
        else:
            del self._others[region]
            self._lists[kind(region.part)].remove(operand(region.part))

    def over(self, region: Region) -> list[Region]:
        """Give the regions that contain all of `region`, itself too if it is there."""
        if region.spans == ():
            return list(self)
        found: list[Region] = []
        if region.spans and len(self._bounds):
            found += self._bounds.over(region.spans[0][0], region.spans[-1][1])
        if region.single and _key(region) in self._points:
            found.append(self._points[_key(region)])
        if self._others:
            witness = region.witness()
            holding = chain.from_iterable(each.holding(witness) for each in self._lists.values())
            found += [each for each in holding if region.within(each)]
        return found

    def under(self, region: Region) -> list[Region]:
        """Give the regions that lie within `region`, itself too if it is there."""
        found = [] if self._void is None else [self._void]
        if region.spans == ():
            return found
        if region.spans and len(self._bounds):
            inner = self._bounds.under(region.spans[0][0], region.spans[-1][1])
            found += inner if len(region.spans) == 1 else filter_within(inner, region)
        keys = region.keys() if self._points else []
        if keys is None:
            found += filter_within(self._points.values(), region)
        else:
            found += [self._points[key] for key in keys if key in self._points]
        return found + ([] if region.single else filter_within(self._others, region))


class Bounds:
    """Intervals of numbers or times: their ends in arrays, compared all at once."""

    def __init__(self) -> None:
        self._low = np.empty(4)
        self._high = np.empty(4)
        self._regions: list[Region] = []
        self._places: dict[Region, int] = {}

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    def add(self, region: Region) -> None:
        """Put in a region of one span."""
        place = self._places[region] = len(self._regions)
        if place == len(self._low):
            self._low = np.resize(self._low, 2 * place)
            self._high = np.resize(self._high, 2 * place)
        self._regions.append(region)
        self._put(region, place)

    def remove(self, region: Region) -> None:
        """Take out a region; the last one takes its place."""
        place, last = self._places.pop(region), self._regions.pop()
        if last is not region:
            self._regions[place], self._places[last] = last, place
            self._put(last, place)

    def over(self, low: float, high: float) -> list[Region]:
        """Give the regions that contain the span."""
        size = len(self._regions)
        return self._at((self._low[:size] <= low) & (self._high[:size] >= high))

    def under(self, low: float, high: float) -> list[Region]:
        """Give the regions within the span."""
        size = len(self._regions)
        return self._at((self._low[:size] >= low) & (self._high[:size] <= high))

    def _put(self, region: Region, place: int) -> None:
        if region.only is not None:
            self._low[place], self._high[place] = region.only

    def _at(self, chosen: Any) -> list[Region]:
        return [self._regions[place] for place in np.flatnonzero(chosen).tolist()]


def filter_within(regions: Any, outer: Region) -> list[Region]:
    """Give those that lie within `outer`."""
    return [each for each in regions if each.within(outer)]


def _interval(region: Region) -> bool:
    return region.only is not None and region.slot[1] in ("number", "time")


def _key(region: Region) -> Any:
    return region.only and region.only[0]
