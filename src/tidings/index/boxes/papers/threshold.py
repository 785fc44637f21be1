"""Relaxed matching by Fagin's Threshold Algorithm (RPS 1 and 4) over d scored interval indexes."""

import heapq
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index import arguments
from tidings.index.boxes.aggregate import Aggregate, aggregate_of
from tidings.index.boxes.protocol import (
    Answer,
    Answers,
    Boxes,
    Events,
    event_of,
    events_of,
    one_by_one,
)
from tidings.index.boxes.scan import RelaxedScan
from tidings.index.intervals import interval_index

Entry = tuple[float, int]
"""Score and minus id: of two entries, the smaller is the worse."""


class Threshold:
    """Iterators in order of weight, in turn; each new subscription is weighed in all attributes.

    Ends when the k-th best is above what the last weights of all iterators come to: nothing that
    was not seen can be better. `sorted` counts what the iterators gave, `random` the look-ups in
    other attributes. Takes any monotone aggregate. Events with ranges or probabilities are scanned:
    the iterators stab with points, in order of whole weights.
    """

    name: ClassVar[str] = "threshold"

    def __init__(
        self, boxes: Boxes, aggregate: str | Aggregate = "sum", over: str = "sopt-r"
    ) -> None:
        self._boxes = boxes
        self._over = over
        self._aggregate = aggregate_of(aggregate)
        self._scan = RelaxedScan(boxes, aggregate)
        self._constrained = boxes.constrained()
        self._ids: list[Int64s] = [np.flatnonzero(each) for each in self._constrained.T]
        self._indexes = [
            interval_index(over, boxes.low[ids, at], boxes.high[ids, at], boxes.worth[ids, at])
            for at, ids in enumerate(self._ids)
        ]
        self._accesses = {"sorted": 0, "random": 0}

    @property
    def nbytes(self) -> int:
        """The bytes of the boxes and of the indexes."""
        lists = self._constrained.nbytes + sum(each.nbytes for each in self._ids)
        return self._boxes.nbytes + lists + sum(each.nbytes for each in self._indexes)

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best, from a heap of the k best so far."""
        self._accesses = {"sorted": 0, "random": 0}
        asked = event_of(self._boxes.attributes, row)
        most = arguments.count("k", k)
        if not asked.plain:
            return self._scan.top(asked, most)
        best = self._search(asked.below[0], most) if most > 0 else []
        best.sort(reverse=True)
        ids = np.array([-minus for _, minus in best], np.int64)
        return ids, np.array([score for score, _ in best], np.float64)

    def _search(self, event: Float64s, k: int) -> list[Entry]:
        """Go round the iterators until the threshold is below the k-th best."""
        best: list[Entry] = []
        seen: set[int] = set()
        iterators = self._iterators(event)
        last = np.zeros(len(event))
        for attribute in iterators:
            last[attribute] = np.inf
        while iterators:
            for attribute, iterator in list(iterators.items()):
                id = next(iterator, -1)
                if id < 0:
                    last[attribute] = 0.0
                    del iterators[attribute]
                    continue
                self._accesses["sorted"] += 1
                last[attribute] = self._boxes.worth[id, attribute]
                if id not in seen:
                    seen.add(id)
                    keep(best, (self._score(event, id), -id), k)
            if len(best) == k and best[0][0] > self._rounded(last):
                break
        return best

    def _iterators(self, event: Float64s) -> dict[int, Iterator[int]]:
        """Give ids in order of weight for each attribute that the event has."""
        return {
            at: map(self._ids[at].__getitem__, self._indexes[at].iterate(float(event[at])))
            for at in np.flatnonzero(~np.isnan(event)).tolist()
        }

    def _score(self, event: Float64s, id: int) -> float:
        """Weigh a subscription in all attributes."""
        boxes = self._boxes
        self._accesses["random"] += len(event) - 1
        holds = (boxes.low[id] <= event) & (event <= boxes.high[id]) & self._constrained[id]
        return self._rounded(np.where(holds, boxes.worth[id], 0.0))

    def _rounded(self, contributions: Float64s) -> float:
        return round(float(self._aggregate(contributions[None, :])[0]), 12)

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer one event after the other."""
        accesses = {"sorted": 0, "random": 0}

        def counted(event: Events, k: int) -> Answer:
            answer = self.top(event, k)
            for kind, count in self._accesses.items():
                accesses[kind] += count
            return answer

        answers = one_by_one(counted, events_of(self._boxes.attributes, rows), k)
        self._accesses = accesses
        return answers

    def counters(self) -> dict[str, int]:
        """Give how many intervals the iterators gave, and the look-ups in other attributes."""
        return dict(self._accesses)

    def describe(self) -> str:
        """Tell what it is."""
        return f"threshold: {self._boxes.describe()}; {self._over} iterators, Fagin's TA."


def keep(best: list[Entry], entry: Entry, k: int) -> None:
    """Keep an entry if it is among the k best so far."""
    if len(best) < k:
        heapq.heappush(best, entry)
    elif entry > best[0]:
        heapq.heapreplace(best, entry)
