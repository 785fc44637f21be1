"""Relaxed matching by Fagin's Threshold Algorithm (RPS 1 and 4) over d scored interval indexes."""

import heapq
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index import arguments
from tidings.index.boxes.aggregate import Aggregate, aggregate_of
from tidings.index.boxes.protocol import (
    BoxAnswer,
    BoxAnswers,
    Boxes,
    NumericEvents,
    event_of,
    events_of,
    one_by_one,
)
from tidings.index.boxes.scan import RelaxedBoxScan
from tidings.index.intervals import interval_index

ScoredId = tuple[float, int]
"""A score and the negated id: the smaller of two is the worse."""


class Threshold:
    """Iterators in order of weight, in turn; each new subscription is scored in all attributes.

    It ends when the k-th best is above the aggregate of the iterators' last weights: no unseen
    subscription can be better. `sorted` counts the ids that the iterators yield, `random` the
    look-ups in other attributes. It takes any monotone aggregate. Events with ranges or
    probabilities are scanned: the iterators stab with points, in order of whole weights.
    """

    name: ClassVar[str] = "threshold"

    def __init__(
        self, boxes: Boxes, aggregate: str | Aggregate = "sum", over: str = "sopt-r"
    ) -> None:
        self._boxes = boxes
        self._over = over
        self._aggregate = aggregate_of(aggregate)
        self._scan = RelaxedBoxScan(boxes, aggregate)
        self._constrained = boxes.constrained()
        self._ids: list[Int64s] = [np.flatnonzero(column) for column in self._constrained.T]
        self._indexes = [
            interval_index(
                over, boxes.low[ids, column], boxes.high[ids, column], boxes.worth[ids, column]
            )
            for column, ids in enumerate(self._ids)
        ]
        self._accesses = {"sorted": 0, "random": 0}

    @property
    def nbytes(self) -> int:
        """The bytes of the boxes and of the indexes."""
        lists = self._constrained.nbytes + sum(ids.nbytes for ids in self._ids)
        return self._boxes.nbytes + lists + sum(index.nbytes for index in self._indexes)

    def top(self, row: Any, k: int) -> BoxAnswer:
        """Return the k best, from a heap of the k best so far."""
        self._accesses = {"sorted": 0, "random": 0}
        event = event_of(self._boxes.attributes, row)
        count = arguments.count("k", k)
        if not event.plain:
            return self._scan.top(event, count)
        best = self._search(event.below[0], count) if count > 0 else []
        best.sort(reverse=True)
        ids = np.array([-negated for _, negated in best], np.int64)
        return BoxAnswer(ids, np.array([score for score, _ in best], np.float64))

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Answer the events one by one."""
        accesses = {"sorted": 0, "random": 0}

        def counted(event: NumericEvents, k: int) -> BoxAnswer:
            answer = self.top(event, k)
            for kind, count in self._accesses.items():
                accesses[kind] += count
            return answer

        answers = one_by_one(counted, events_of(self._boxes.attributes, rows), k)
        self._accesses = accesses
        return answers

    def counters(self) -> dict[str, int]:
        """Return how many ids the iterators yielded, and the look-ups in other attributes."""
        return dict(self._accesses)

    def describe(self) -> str:
        return f"threshold: {self._boxes.describe()}; {self._over} iterators, Fagin's TA."

    def _search(self, event: Float64s, k: int) -> list[ScoredId]:
        """Advance the iterators in turn until the threshold is below the k-th best."""
        best: list[ScoredId] = []
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
                    offer(best, (self._score(event, id), -id), k)
            if len(best) == k and best[0][0] > self._rounded(last):
                break
        return best

    def _iterators(self, event: Float64s) -> dict[int, Iterator[int]]:
        """Return for each attribute of the event an iterator over ids in order of weight."""
        return {
            column: map(
                self._ids[column].__getitem__, self._indexes[column].iterate(float(event[column]))
            )
            for column in np.flatnonzero(~np.isnan(event)).tolist()
        }

    def _score(self, event: Float64s, id: int) -> float:
        """Return the score of a subscription, by a look-up in all attributes."""
        boxes = self._boxes
        self._accesses["random"] += len(event) - 1
        holds = (boxes.low[id] <= event) & (event <= boxes.high[id]) & self._constrained[id]
        return self._rounded(np.where(holds, boxes.worth[id], 0.0))

    def _rounded(self, contributions: Float64s) -> float:
        return round(float(self._aggregate(contributions[None, :])[0]), 12)


def offer(best: list[ScoredId], entry: ScoredId, k: int) -> None:
    """Keep an entry if it is among the k best so far."""
    if len(best) < k:
        heapq.heappush(best, entry)
    elif entry > best[0]:
        heapq.heapreplace(best, entry)
