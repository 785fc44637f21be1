"""Exact matching by intersection (RPS 1): an interval index an attribute, iterated in score order.

The paper does not say how: all iterators give the same order, so whichever is behind the farthest
moves on, until all stand at the same subscription.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.index import arguments
from tidings.index.boxes.protocol import (
    Answer,
    Answers,
    Boxes,
    Events,
    event_of,
    events_of,
    one_by_one,
)
from tidings.index.boxes.scan import ExactScan
from tidings.index.intervals import interval_index


class Intersection:
    """Iterators of d interval indexes, intersected; `sorted` counts what they gave.

    Events with ranges are scanned: the iterators stab with points.
    """

    name: ClassVar[str] = "intersection"

    def __init__(self, boxes: Boxes, over: str = "sopt-r") -> None:
        self._boxes = boxes
        self._over = over
        self._scan = ExactScan(boxes)
        order = np.argsort(-boxes.worth, kind="stable")
        self._order: Int64s = order
        self._rank = np.empty(len(boxes), np.int64)
        self._rank[order] = np.arange(len(boxes))
        self._indexes = [
            interval_index(over, low, high, boxes.worth)
            for low, high in zip(boxes.low.T, boxes.high.T, strict=True)
        ]
        free = ~boxes.constrained()
        self._free: list[Int64s] = [order[each[order]] for each in free.T]
        self._sorted = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the boxes, of the indexes and of the lists of the unconstrained."""
        lists = 2 * self._rank.nbytes + sum(each.nbytes for each in self._free)
        return self._boxes.nbytes + lists + sum(each.nbytes for each in self._indexes)

    def top(self, row: Any, k: int) -> Answer:
        """Give the first k that all iterators have in common."""
        most = arguments.count("k", k)
        self._sorted = 0
        event = event_of(self._boxes.attributes, row)
        if event.ranged:
            return self._scan.top(event, most)
        iterators = [self._iterate(at, value) for at, value in enumerate(event.below[0])]
        ids = np.array(list(islice(self._common(iterators), min(most, len(self._boxes)))), np.int64)
        return ids, self._boxes.worth[ids]

    def _iterate(self, attribute: int, value: float) -> Iterator[int]:
        """Give the ids that match in one attribute; with none, those that do not ask for it."""
        if np.isnan(value):
            return iter(self._free[attribute].tolist())
        return self._indexes[attribute].iterate(float(value))

    def _common(self, iterators: list[Iterator[int]]) -> Iterator[int]:
        """Give what all iterators have in common, in order."""
        ranks = [-1] * len(iterators)
        target, agreed, at = 0, 0, 0
        while True:
            while ranks[at] < target:
                id = next(iterators[at], -1)
                if id < 0:
                    return
                self._sorted += 1
                ranks[at] = int(self._rank[id])
            if ranks[at] > target:
                target, agreed = ranks[at], 0
            agreed += 1
            if agreed == len(iterators):
                yield int(self._order[target])
                target, agreed = target + 1, 0
            at = (at + 1) % len(iterators)

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer one event after the other."""
        accesses = 0

        def counted(event: Events, k: int) -> Answer:
            nonlocal accesses
            answer = self.top(event, k)
            accesses += self._sorted
            return answer

        answers = one_by_one(counted, events_of(self._boxes.attributes, rows), k)
        self._sorted = accesses
        return answers

    def counters(self) -> dict[str, int]:
        """Give how many intervals the iterators gave."""
        return {"sorted": self._sorted}

    def describe(self) -> str:
        """Tell what it is."""
        return f"intersection: {self._boxes.describe()}; {self._over} iterators, intersected."
