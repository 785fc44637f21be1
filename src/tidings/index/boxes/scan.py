"""Brute force over boxes: every box is tested. Judges the other indexes."""

from typing import Any, ClassVar, Final

import numpy as np

from tidings.index import arguments
from tidings.index.boxes.aggregate import Aggregate, aggregate_of
from tidings.index.boxes.protocol import (
    BoxAnswer,
    BoxAnswers,
    Boxes,
    event_of,
    events_of,
    one_by_one,
)

NEAR: Final = 1e-9
"""Rounding to 12 decimals lifts no score that is this far, relatively, below the k-th best."""


class ExactBoxScan:
    """Tests every box for an exact match, as the definition says."""

    name: ClassVar[str] = "scan"

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes

    @property
    def nbytes(self) -> int:
        return self._boxes.nbytes

    def top(self, row: Any, k: int) -> BoxAnswer:
        """Return the k best of the boxes that contain the event wherever they are constrained."""
        boxes, event = self._boxes, event_of(self._boxes.attributes, row)
        matches = np.ones(len(boxes), np.bool_)
        sides = zip(boxes.low.T, boxes.high.T, event.below[0], event.above[0], strict=True)
        for low, high, below, above in sides:
            free = (low == -np.inf) & (high == np.inf)
            matches &= ((low <= below) & (above <= high)) | free
        ids = np.flatnonzero(matches)
        best = ids[np.lexsort((ids, -boxes.worth[ids]))][: arguments.count("k", k)]
        return BoxAnswer(best, boxes.worth[best])

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Answer the events one by one."""
        return one_by_one(self.top, events_of(self._boxes.attributes, rows), k)

    def counters(self) -> dict[str, int]:
        """Return the counters: every event tests every box."""
        return {"boxes": len(self._boxes)}

    def describe(self) -> str:
        return f"scan: {self._boxes.describe()}; every event is compared with every one."


class RelaxedBoxScan:
    """Scores every box for a relaxed match, as the definition says."""

    name: ClassVar[str] = "scan"

    def __init__(self, boxes: Boxes, aggregate: str | Aggregate = "sum") -> None:
        self._boxes = boxes
        self._aggregate = aggregate_of(aggregate)

    @property
    def nbytes(self) -> int:
        return self._boxes.nbytes

    def top(self, row: Any, k: int) -> BoxAnswer:
        """Return the k best of the boxes of which some predicate holds."""
        boxes, event = self._boxes, event_of(self._boxes.attributes, row)
        holds = (boxes.low <= event.below) & (event.above <= boxes.high) & boxes.constrained()
        ids = np.flatnonzero(holds.any(axis=1))
        scores = self._aggregate(np.where(holds[ids], boxes.worth[ids] * event.share, 0.0))
        count = arguments.count("k", k)
        if 0 < count < len(ids):  # rounding in Python is slow: only scores near the best
            worst = np.partition(scores, -count)[-count]
            near = scores >= worst - NEAR * (1 + worst)
            ids, scores = ids[near], scores[near]
        scores = np.array([round(score, 12) for score in scores.tolist()])
        best = np.lexsort((ids, -scores))[:count]
        return BoxAnswer(ids[best], scores[best])

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Answer the events one by one."""
        return one_by_one(self.top, events_of(self._boxes.attributes, rows), k)

    def counters(self) -> dict[str, int]:
        """Return the counters: every event tests every box."""
        return {"boxes": len(self._boxes)}

    def describe(self) -> str:
        return f"scan: {self._boxes.describe()}; every event is compared with every one."
