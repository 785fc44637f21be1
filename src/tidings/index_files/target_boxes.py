"""Boxes over the subscriptions of an index file, made from its columns without an object for each.

They answer if every condition is a conjunction of numeric ranges; boxes have the numbers of their
subscriptions, which are in order of id.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.index.access.encoding import EncodedSubscriptions
from tidings.index.access.kernels.records import BETWEEN, NEVER
from tidings.index.access.segment import Segment
from tidings.index.access.vocabulary import Vocabulary, unordered
from tidings.index.arguments import MAX_RESULTS
from tidings.index.boxes.protocol import BoxAnswers
from tidings.model.records import Event
from tidings.rank.target_index import (
    ASKED,
    MOST_CELLS,
    SAMPLE,
    LiveTargets,
    NumericRows,
    RangeColumns,
    least_seconds,
    live_targets,
)

REPAID: Final = 32
"""Boxes are built once queries have reached one event for 32 subscriptions.

A box takes 2 us to build, and an event 40 us less if boxes answer it.
"""


class EncodedRanges(NamedTuple):
    """The ranges of all subscriptions, and the names of their attributes."""

    ranges: RangeColumns
    attributes: list[str]


def encoded_ranges(encoded: EncodedSubscriptions, vocabulary: Vocabulary) -> EncodedRanges | None:
    """Return the ranges of subscriptions that are all boxes; else None."""
    if len(encoded.owner) != len(encoded) or not len(encoded):
        return None  # some have several conjunctions, or none that can hold
    names = [name for name, families in vocabulary.attributes.items() if "number" in families]
    of_slot, of_term = np.full(vocabulary.slots, -1), np.full(vocabulary.terms, -1)
    equal_to = np.zeros(vocabulary.terms)
    for attribute, name in enumerate(names):
        family = vocabulary.attributes[name]["number"]
        if family.slot >= 0:
            of_slot[family.slot] = attribute
        terms = np.fromiter(family.equal.values(), np.int64, len(family.equal))
        of_term[terms] = attribute
        equal_to[terms] = np.fromiter(family.equal, np.float64, len(family.equal))
    is_term = encoded.term >= 0
    between = ~is_term & (encoded.slot >= 0) & (encoded.kind == BETWEEN)
    if not (is_term | between).all():
        return None
    attributes = np.empty(len(encoded.term), np.int64)
    attributes[is_term] = of_term[encoded.term[is_term]]
    attributes[between] = of_slot[encoded.slot[between]]
    low, high = unordered(encoded.low), unordered(encoded.high)
    low[is_term] = high[is_term] = equal_to[encoded.term[is_term]]
    boxes = np.repeat(encoded.numbers[encoded.owner].astype(np.int64), encoded.size)
    if (attributes < 0).any() or len(encoded) * len(names) > MOST_CELLS:
        return None
    seen = np.zeros(len(encoded) * len(names), np.bool_)
    seen[boxes * len(names) + attributes] = True
    if np.count_nonzero(seen) < len(boxes):
        return None  # two ranges of a condition on one attribute
    weights = encoded.weight if len(encoded.weight) else np.ones(len(boxes))
    return EncodedRanges(RangeColumns(boxes, attributes, low, high, weights), names)


class NumberTargets:
    """The k best subscriptions of events by number, through boxes once these pay. For one thread.

    They are built after queries for many events, and used if they are faster.
    """

    def __init__(self, segment: Segment, vocabulary: Vocabulary, exact: bool) -> None:
        self._segment, self._vocabulary, self._exact = segment, vocabulary, exact
        self._build_after = max(ASKED, len(segment) // REPAID)
        self._asked = 0
        self._boxes: LiveTargets | None = None

    def top_many(
        self, events: Sequence[Event], k: int, by_access: Callable[[Sequence[Event]], Any]
    ) -> BoxAnswers | None:
        """Return numbers and scores, or None if `by_access` is to answer."""
        if self._asked < self._build_after:
            self._asked += len(events)
            if self._asked >= self._build_after:
                self._build(events[:SAMPLE], k, by_access)
        if self._boxes is None or (rows := self._rows.of(events)) is None:
            return None
        return self.top_rows(rows, k)

    @property
    def attributes(self) -> list[str] | None:
        """The attributes of rows of numbers; None while there are no boxes."""
        return self._rows.names if self._boxes is not None else None

    def top_rows(self, rows: Float64s, k: int) -> BoxAnswers | None:
        """Return numbers and scores for rows of numbers, or None if there are no boxes for them."""
        if self._boxes is None or k * len(rows) > MAX_RESULTS:
            return None
        return self._boxes.top_many(rows, k)

    def drop(self, numbers: Int32s) -> None:
        """Leave subscriptions out from now on."""
        if self._boxes is not None:
            self._boxes.delete_many(numbers)

    def _build(
        self, sample: Sequence[Event], k: int, by_access: Callable[[Sequence[Event]], Any]
    ) -> None:
        segment = self._segment
        encoded = segment.picked(np.arange(len(segment)))
        source = encoded_ranges(encoded, self._vocabulary)
        if source is None:
            return
        size, rows = len(encoded), NumericRows(source.attributes)
        scores: Float64s | None = None
        if self._exact:
            scores = np.empty(size)
            scores[encoded.numbers] = encoded.scores
        boxes = live_targets(source.ranges.boxes(scores, size, len(source.attributes)))
        boxes.delete_many(segment.numbers[segment.tombstones < NEVER])

        def by_boxes() -> None:
            if (numbers := rows.of(sample)) is not None:
                boxes.top_many(numbers, k)

        if least_seconds(by_boxes) < least_seconds(lambda: by_access(sample)):
            self._rows, self._boxes = rows, boxes
