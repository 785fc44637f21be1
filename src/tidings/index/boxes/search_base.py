"""The base of compiled box indexes: quantised bounds and events, and searches into shared heaps."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt8s
from tidings.compiled.jit import TypedKernel
from tidings.index import arguments
from tidings.index.boxes.kernels.quantize import (
    MAX_CUTS,
    CodeCuts,
    CodedEvents,
    Liveness,
    code_rows,
)
from tidings.index.boxes.kernels.topk_heap import TopkHeaps, topk_sort
from tidings.index.boxes.protocol import (
    BoxAnswer,
    BoxAnswers,
    Boxes,
    NumericEvents,
    event_of,
    events_of,
)

CODE_ROWS, TOPK_SORT = TypedKernel(code_rows), TypedKernel(topk_sort)
Answer = Callable[[NumericEvents, int], BoxAnswers]
"""Answers checked events, with at most k boxes each."""
ALL_ALIVE: Final = Liveness(np.empty(0, np.int32), 0)
SAMPLE: Final = 32_768


class CompiledBoxIndex(Protocol):
    """A compiled index over boxes that never change, though some may die."""

    cuts: CodeCuts
    attributes: int

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""

    def search(self, events: CodedEvents, best: TopkHeaps, liveness: Liveness) -> Int64s:
        """Offer to each event's heap the boxes that may be among its k best; return counters."""

    def answers(
        self, events: NumericEvents, width: int, liveness: Liveness = ALL_ALIVE
    ) -> BoxAnswers:
        """Return the best boxes that are alive, at most `width` for each event."""

    def places(self) -> Int32s:
        """Return for each box, in input order, the place of its death stamp."""

    def boxes_at(self, places: Int32s) -> Boxes:
        """Return the boxes at some places; a free attribute has the weight 0."""


def cuts_of(boxes: Boxes) -> CodeCuts:
    """Return cuts for each attribute at quantiles of a sample of its lows and highs.

    Codes are thus finest where bounds are dense. There is one attribute more, without a cut: all
    its codes are 0.
    """
    step = max(1, len(boxes) // SAMPLE)
    sample = np.concatenate([boxes.low[::step], boxes.high[::step]])
    cuts = np.full((boxes.attributes + 1, MAX_CUTS), np.inf)
    counts = np.zeros(boxes.attributes + 1, np.int64)
    for attribute, bounds in enumerate(sample.T):
        numbers = quantiles(bounds[np.isfinite(bounds)])
        cuts[attribute, : len(numbers)] = numbers
        counts[attribute] = len(numbers)
    return CodeCuts(cuts, counts)


def quantiles(bounds: Float64s) -> Float64s:
    """Return at most 254 distinct numbers that split the bounds evenly."""
    distinct = np.unique(bounds)
    if len(distinct) <= MAX_CUTS:
        return distinct
    places = np.linspace(0, len(bounds) - 1, MAX_CUTS).astype(np.int64)
    return np.unique(np.sort(bounds)[places])


def coded_events(cuts: CodeCuts, events: NumericEvents) -> CodedEvents:
    """Return events in the form that kernels take."""
    below = coded(cuts, events.below)
    above = coded(cuts, events.above) if events.ranged else below
    peaks = events.share.max(axis=1)
    return CodedEvents(below, above, events.below, events.above, events.share, peaks, events.ranged)


def coded(cuts: CodeCuts, numbers: Float64s) -> UInt8s:
    """Return the codes of rows of numbers, flat, each row followed by a 0."""
    codes = np.zeros((len(numbers), numbers.shape[1] + 1), np.uint8)
    CODE_ROWS(cuts, numbers, codes)
    return codes.ravel()


def search_all(
    index: CompiledBoxIndex, events: NumericEvents, width: int, liveness: Liveness
) -> tuple[BoxAnswers, Int64s]:
    """Answer all events with one index; return the counters too."""
    best = empty_heaps(len(events), width)
    counters = index.search(coded_events(index.cuts, events), best, liveness)
    return sorted_answers(best), counters


def answer_one(answer: Answer, attributes: int, row: Any, k: int, most: int) -> BoxAnswer:
    """Return the k best of `most` boxes for one event, as a batch of one."""
    width = min(arguments.count("k", k), most)
    return single_answer(answer(event_of(attributes, row), width))


def answer_many(answer: Answer, attributes: int, rows: Any, k: int) -> BoxAnswers:
    """Return the k best for each event."""
    events = events_of(attributes, rows)
    return answer(events, arguments.result_width(k, len(events)))


def single_answer(answers: BoxAnswers) -> BoxAnswer:
    """Return the answer of a batch of one."""
    count = answers.counts[0]
    return BoxAnswer(answers.ids[0, :count], answers.scores[0, :count])


def empty_heaps(events: int, k: int) -> TopkHeaps:
    """Return an empty heap of k for each event."""
    scores, ids = np.full((events, k), np.nan), np.full((events, k), -1, np.int64)
    return TopkHeaps(scores, ids, np.zeros(events, np.int64))


def sorted_answers(best: TopkHeaps) -> BoxAnswers:
    """Sort heaps and return them as answers."""
    TOPK_SORT(best)
    return BoxAnswers(best.ids, best.scores, best.sizes)


def inverse(order: Int32s) -> Int32s:
    """Return the position of each number in an order."""
    positions = np.empty(len(order), np.int32)
    positions[order] = np.arange(len(order), dtype=np.int32)
    return positions


def unpacked(packed: Float64s, places: Any) -> Boxes:
    """Return the boxes of packed rows; free attributes become [-inf, inf] with weight 0."""
    rows = packed[places].reshape(len(places), packed.shape[1] // 3, 3)
    free = rows[:, :, 0] > rows[:, :, 1]
    low, high = np.where(free, -np.inf, rows[:, :, 0]), np.where(free, np.inf, rows[:, :, 1])
    return Boxes(low, high, np.ascontiguousarray(rows[:, :, 2]))
