"""Relaxed blocks: both searches find the best of the living, and skip only the hopeless."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.boxes.kernels.plain import (
    boxes_strategy,
    events_strategy,
    plain_answers,
    random_boxes,
    random_events,
    searched,
)

from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.memtable import MAX, SUM
from tidings.index.boxes.kernels.quantize import Liveness
from tidings.index.boxes.kernels.relaxed_blocks import (
    BINS,
    BLOCKS,
    WEIGHED,
    RelaxedTask,
    bin_step,
    event_group,
    relaxed_near,
    relaxed_wide,
    score_waiting,
)
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import Boxes, events_of
from tidings.index.boxes.relaxed_blocks import relaxed_layout
from tidings.index.boxes.search_base import (
    ALL_ALIVE,
    coded_events,
    cuts_of,
    empty_heaps,
    sorted_answers,
)

both_aggregates = pytest.mark.parametrize("scoring", [SUM, MAX], ids=["sum", "max"])
both_searches = pytest.mark.parametrize("tile", [None, 1, 7], ids=["near", "wide-1", "wide-7"])


def task_of(boxes, scoring, coded, best, stamps=None, version=0):
    order, layout = relaxed_layout(boxes, cuts_of(boxes), scoring == MAX, np.arange(len(boxes)))
    liveness = ALL_ALIVE if stamps is None else Liveness(stamps[order], version)
    shape = len(best.sizes), max(4 * LANES, 4 * best.scores.shape[1])
    waiting = TopkHeaps(np.empty(shape), np.empty(shape, np.int64), np.zeros(shape[0], np.int64))
    return RelaxedTask(layout, coded, liveness, waiting, best, np.zeros(3, np.int64))


def answers(boxes, events, k, scoring, tile, *, stamps=None, version=0):
    """Search with the kernels alone: near without a tile, else wide."""
    counters = np.zeros(3, np.int64)

    def search(coded, best, _liveness):
        task = task_of(boxes, scoring, coded, best, stamps, version)
        if tile is None:
            relaxed_near(task)
        else:
            relaxed_wide(task, tile)
        counters[:] = task.counters

    return searched(search, coded_events(cuts_of(boxes), events), k, ALL_ALIVE), counters


@both_searches
@both_aggregates
@given(
    boxes=boxes_strategy(),
    events=events_strategy(),
    k=st.integers(0, 6),
    died=st.lists(st.integers(0, 4), min_size=12, max_size=12),
)
def test_the_k_best_of_the_living_boxes_are_found(tile, scoring, boxes, events, k, died):
    stamps = np.array(died[: len(boxes)], np.int32)
    expected = plain_answers(boxes, events, scoring, k, lambda id: died[id] > 2)
    assert answers(boxes, events, k, scoring, tile, stamps=stamps, version=2)[0] == expected


@both_searches
@both_aggregates
@pytest.mark.parametrize("size", [63, 64, 65, 700])
def test_sizes_around_blocks(tile, scoring, size):
    """Nine events: two groups of four, and one that is left over."""
    boxes, events = random_boxes(size, 3, size), random_events(9, 3, size)
    expected = plain_answers(boxes, events, scoring, 5, lambda id: True)
    assert answers(boxes, events, 5, scoring, tile)[0] == expected


@both_searches
def test_blocks_that_cannot_reach_the_kth_best_are_not_scored(tile):
    size = 40 * LANES
    low = np.zeros((size, 1))
    boxes = Boxes(low, low + 1, np.linspace(1, 0.01, size)[:, None])
    found, counters = answers(boxes, events_of(1, [[0.5]]), 3, SUM, tile)
    assert [id for _, id in found[0]] == [0, 1, 2]
    assert counters[WEIGHED] < size / 4
    assert counters[BLOCKS] <= 40


def test_waiting_boxes_are_scored_until_none_can_enter():
    """The k-th best is 0.9; of the bounds 1.0, 0.95 and 0.2 only the last is hopeless."""
    low = np.zeros((3, 1))
    boxes = Boxes(low, low + 1, np.array([[0.9], [0.8], [0.1]]))
    best = empty_heaps(1, 1)
    coded = coded_events(cuts_of(boxes), events_of(1, [[0.5]]))
    task = task_of(boxes, SUM, coded, best)
    waiting = task.waiting
    for place, bound in enumerate((1.0, 0.95, 0.2)):
        waiting.scores[0, place], waiting.ids[0, place] = -bound, place
    waiting.sizes[0] = 3
    score_waiting(task, 0)
    assert sorted_answers(best).ids.tolist() == [[0]]
    assert task.counters[WEIGHED] == 2
    assert waiting.sizes[0] == 0


def test_the_greatest_total_fills_all_bins():
    scale, most = 20.0, 3.0
    step = bin_step(scale, most)
    assert int(scale * most * step) >> 32 in (BINS - 1, BINS)
    assert bin_step(0.0, most) == bin_step(scale, 0.0) == 1
    assert bin_step(1e-9, 1e-9) == 2**44


def test_a_group_has_room_for_a_block_of_each_event():
    group = event_group(4)
    assert [len(column) for column in group[:4]] == [4] * 4
    assert len(group.sums) == 4 * LANES
