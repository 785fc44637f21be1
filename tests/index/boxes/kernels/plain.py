"""Boxes on few numbers, so that ties and edges are common, and answers in plain Python."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tidings.index.boxes.kernels.memtable import EXACT, MAX
from tidings.index.boxes.kernels.quantize import CodedEvents, Liveness
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import Boxes, NumericEvents
from tidings.index.boxes.search_base import empty_heaps, sorted_answers

Answer = list[tuple[float, int]]
FREE = (-math.inf, math.inf)
sides = st.one_of(
    st.just(FREE),
    st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda ends: tuple(sorted(ends))),
    st.integers(0, 4).map(lambda low: (low, math.inf)),
)
weights = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0])
values = st.one_of(st.integers(-1, 5).map(float), st.just(math.nan))


def boxes_strategy(attributes: int = 3, most: int = 12) -> st.SearchStrategy[Boxes]:
    """Draw boxes with a weight for each attribute."""
    row = st.lists(st.tuples(sides, weights), min_size=attributes, max_size=attributes)
    return st.lists(row, max_size=most).map(lambda rows: _boxes(rows, attributes))


def _boxes(rows: list[Any], attributes: int) -> Boxes:
    flat = np.array([[(*side, weight) for side, weight in row] for row in rows], float)
    return Boxes(*np.moveaxis(flat.reshape(-1, attributes, 3), 2, 0).copy())


def events_strategy(attributes: int = 3) -> st.SearchStrategy[NumericEvents]:
    """Draw points or overlapping ranges, of which each attribute counts by a share."""
    one = st.tuples(values, st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0]))
    row = st.lists(one, min_size=attributes, max_size=attributes)
    return st.lists(row, min_size=1, max_size=3).map(_events)


def _events(rows: list[Any]) -> NumericEvents:
    above, width, share = np.moveaxis(np.array(rows, float), 2, 0).copy()
    return NumericEvents(above + width if width.any() else above, above, share)


def random_boxes(size: int, attributes: int, seed: int) -> Boxes:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 9, (size, attributes)).astype(float)
    high = low + rng.integers(0, 5, low.shape).astype(float)
    low[rng.random(low.shape) < 0.3] = -np.inf
    high[rng.random(low.shape) < 0.3] = np.inf
    return Boxes(low, high, rng.integers(0, 5, low.shape) / 10)


def random_events(count: int, attributes: int, seed: int) -> NumericEvents:
    rng = np.random.default_rng(seed)
    points = rng.integers(-1, 11, (count, attributes)).astype(float)
    points[rng.random(points.shape) < 0.15] = np.nan
    return NumericEvents(points, points, np.ones(points.shape))


def plain_score(boxes: Boxes, id: int, events: NumericEvents, event: int, scoring: int) -> float:
    """Return the score of a box, or -1 where it does not match."""
    held, failed = [], False
    for attribute in range(boxes.attributes):
        low, high = boxes.low[id, attribute], boxes.high[id, attribute]
        holds = low <= events.below[event, attribute] and events.above[event, attribute] <= high
        if (low, high) != FREE:
            failed |= not holds
            share = 1.0 if scoring == EXACT else events.share[event, attribute]
            held += [float(boxes.worth[id, attribute] * share)] if holds else []
    if scoring == EXACT:
        return -1.0 if failed else float(boxes.worth[id, 0])
    if not held:
        return -1.0
    return round(max(held) if scoring == MAX else sum(held), 12)


def plain_answers(
    boxes: Boxes, events: NumericEvents, scoring: int, k: int, alive: Callable[[int], bool]
) -> list[Answer]:
    """Return the k best (-score, id) for each event."""
    answers = []
    for event in range(len(events)):
        scored = [
            (plain_score(boxes, id, events, event, scoring), id)
            for id in range(len(boxes))
            if alive(id)
        ]
        answers.append(sorted((-score, id) for score, id in scored if score >= 0)[:k])
    return answers


def searched(
    search: Callable[[CodedEvents, TopkHeaps, Liveness], object],
    coded: CodedEvents,
    k: int,
    liveness: Liveness,
) -> list[Answer]:
    """Return the answers that a search puts on its heaps, in the form of `plain_answers`."""
    best = empty_heaps(len(coded.below), k)
    search(coded, best, liveness)
    ids, scores, counts = sorted_answers(best)
    return [
        [(-float(scores[row, place]), int(ids[row, place])) for place in range(count)]
        for row, count in enumerate(counts)
    ]
