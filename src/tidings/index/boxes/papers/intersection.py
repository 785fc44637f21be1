"""Exact matching by intersection (RPS 1): one interval index per attribute, iterated by score.

The paper leaves the algorithm open. All iterators have the same order, so the one that is behind
the farthest advances, until all are at the same subscription.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.index import arguments
from tidings.index.boxes.protocol import (
    BoxAnswer,
    BoxAnswers,
    Boxes,
    NumericEvents,
    event_of,
    events_of,
    one_by_one,
)
from tidings.index.boxes.scan import ExactBoxScan
from tidings.index.intervals import interval_index


class Intersection:
    """Iterators over d interval indexes, intersected; `sorted` counts the ids that they yield.

    Events with ranges are scanned: the iterators stab with points.
    """

    name: ClassVar[str] = "intersection"

    def __init__(self, boxes: Boxes, over: str = "sopt-r") -> None:
        self._boxes = boxes
        self._over = over
        self._scan = ExactBoxScan(boxes)
        order = np.argsort(-boxes.worth, kind="stable")
        self._order: Int64s = order
        self._rank = np.empty(len(boxes), np.int64)
        self._rank[order] = np.arange(len(boxes))
        self._indexes = [
            interval_index(over, low, high, boxes.worth)
            for low, high in zip(boxes.low.T, boxes.high.T, strict=True)
        ]
        free = ~boxes.constrained()
        self._free: list[Int64s] = [order[column[order]] for column in free.T]
        self._sorted = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the boxes, of the indexes and of the lists of free boxes."""
        lists = 2 * self._rank.nbytes + sum(free.nbytes for free in self._free)
        return self._boxes.nbytes + lists + sum(index.nbytes for index in self._indexes)

    def top(self, row: Any, k: int) -> BoxAnswer:
        """Return the first k ids that all iterators have in common."""
        count = arguments.count("k", k)
        self._sorted = 0
        event = event_of(self._boxes.attributes, row)
        if event.ranged:
            return self._scan.top(event, count)
        iterators = [
            self._iterate(attribute, value) for attribute, value in enumerate(event.below[0])
        ]
        common = islice(self._common(iterators), min(count, len(self._boxes)))
        ids = np.array(list(common), np.int64)
        return BoxAnswer(ids, self._boxes.worth[ids])

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Answer the events one by one."""
        accesses = 0

        def counted(event: NumericEvents, k: int) -> BoxAnswer:
            nonlocal accesses
            answer = self.top(event, k)
            accesses += self._sorted
            return answer

        answers = one_by_one(counted, events_of(self._boxes.attributes, rows), k)
        self._sorted = accesses
        return answers

    def counters(self) -> dict[str, int]:
        """Return how many ids the iterators yielded."""
        return {"sorted": self._sorted}

    def describe(self) -> str:
        return f"intersection: {self._boxes.describe()}; {self._over} iterators, intersected."

    def _iterate(self, attribute: int, value: float) -> Iterator[int]:
        """Yield the ids that match in one attribute; for NaN, those that leave it free."""
        if np.isnan(value):
            return iter(self._free[attribute].tolist())
        return self._indexes[attribute].iterate(float(value))

    def _common(self, iterators: list[Iterator[int]]) -> Iterator[int]:
        """Yield the ids that all iterators have in common, in order."""
        ranks = [-1] * len(iterators)
        target, agreed, turn = 0, 0, 0
        while True:
            while ranks[turn] < target:
                id = next(iterators[turn], -1)
                if id < 0:
                    return
                self._sorted += 1
                ranks[turn] = int(self._rank[id])
            if ranks[turn] > target:
                target, agreed = ranks[turn], 0
            agreed += 1
            if agreed == len(iterators):
                yield int(self._order[target])
                target, agreed = target + 1, 0
            turn = (turn + 1) % len(iterators)
