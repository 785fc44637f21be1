"""Exact blocks: hulls contain their boxes, and a search finds the best of the living ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.boxes.kernels.plain import (
    boxes_strategy,
    events_strategy,
    plain_answers,
    plain_score,
    random_boxes,
    random_events,
    searched,
)

from tidings.index.boxes.exact_blocks import exact_layout
from tidings.index.boxes.kernels.exact_blocks import (
    BLOCKS,
    CHECKED,
    DIRECTORIES,
    ExactTask,
    RankHeaps,
    contains_event,
    exact_many,
    offer_ranks,
    stab_block,
)
from tidings.index.boxes.kernels.memtable import EXACT
from tidings.index.boxes.kernels.quantize import BoxBounds, Liveness
from tidings.index.boxes.protocol import Boxes, events_of
from tidings.index.boxes.search_base import ALL_ALIVE, coded_events, cuts_of


def scored(boxes: Boxes) -> Boxes:
    return Boxes(boxes.low, boxes.high, boxes.worth[:, 0].copy())


def answers(boxes, events, k, liveness):
    """Search with the kernels alone; return the answers and the counters."""
    exact = scored(boxes)
    cuts, counters = cuts_of(exact), np.zeros(3, np.int64)
    layout = exact_layout(exact, cuts)

    def search(coded, best, liveness):
        width, rows = min(k, len(boxes)), len(events)
        ranks = RankHeaps(np.empty((rows, width), np.int64), np.zeros(rows, np.int64))
        bounds = BoxBounds(exact.low, exact.high)
        exact_many(ExactTask(layout, bounds, liveness, coded, counters), ranks)
        for row in range(rows):
            found = ranks.ranks[row, : ranks.sizes[row]].tolist()
            assert found == sorted(found)
        offer_ranks(ranks, layout.ids, exact.worth, np.arange(len(boxes)), best)

    return searched(search, coded_events(cuts, events), k, liveness), counters


@given(
    boxes_strategy(),
    events_strategy(),
    st.integers(0, 6),
    st.lists(st.integers(0, 4), min_size=12, max_size=12),
)
def test_the_k_best_of_the_living_boxes_are_found(boxes, events, k, died):
    liveness = Liveness(np.array(died[: len(boxes)], np.int32), 2)
    expected = plain_answers(boxes, events, EXACT, k, lambda id: died[id] > 2)
    assert answers(boxes, events, k, liveness)[0] == expected


@pytest.mark.parametrize("size", [63, 64, 65, 4097])
def test_sizes_around_blocks_and_directories(size):
    boxes, events = random_boxes(size, 2, size), random_events(3, 2, size)
    expected = plain_answers(boxes, events, EXACT, 9, lambda id: True)
    found, counters = answers(boxes, events, 9, ALL_ALIVE)
    assert found == expected
    assert counters[CHECKED] >= 9
    assert counters[DIRECTORIES] <= 3 * 2


def test_worse_directories_are_not_searched():
    size = 3 * 4096
    low = np.zeros((size, 1))
    boxes = Boxes(low, low + 1, np.linspace(1, 0, size)[:, None])
    found, counters = answers(boxes, events_of(1, [[0.5]]), 5, ALL_ALIVE)
    assert [id for _, id in found[0]] == [0, 1, 2, 3, 4]
    assert counters[[DIRECTORIES, BLOCKS]].tolist() == [1, 1]


@given(boxes_strategy(), events_strategy())
def test_codes_lose_no_match(boxes, events):
    """A box that contains an event is among the lanes of its block, and its block in the hull."""
    exact = scored(boxes)
    cuts = cuts_of(exact)
    layout, coded = exact_layout(exact, cuts), coded_events(cuts, events)
    bounds = BoxBounds(exact.low, exact.high)
    for event in range(len(events)):
        for place, rank in enumerate(layout.ranks):
            id = int(layout.ids[rank])
            matches = plain_score(boxes, id, events, event, EXACT) >= 0
            assert contains_event(bounds, id, coded, event) == matches
            if matches:
                assert stab_block(layout.directories, 0, coded, event) & 1
                assert stab_block(layout.blocks, 0, coded, event) >> place & 1


@pytest.mark.parametrize("size", [1, 64, 130])
def test_unused_lanes_contain_no_event(size):
    boxes = Boxes(np.zeros((size, 1)), np.full((size, 1), 9.0), np.ones(size))
    cuts = cuts_of(boxes)
    layout, coded = exact_layout(boxes, cuts), coded_events(cuts, events_of(1, [[5.0]]))
    last, used = divmod(size - 1, 64)
    mask = int(stab_block(layout.blocks, last, coded, 0)) & 0xFFFFFFFFFFFFFFFF
    assert mask == (1 << used + 1) - 1
    assert stab_block(layout.blocks, last + 1, coded, 0) == 0
    assert stab_block(layout.directories, 0, coded, 0) == (1 << last + 1) - 1


def test_best_ranks_bound_each_block_and_all_that_follows():
    boxes = scored(random_boxes(4096 + 200, 2, 1))
    layout = exact_layout(boxes, cuts_of(boxes))
    for block in range(-(-len(boxes) // 64)):
        assert layout.best_in_block[block] == layout.ranks[64 * block : 64 * block + 64].min()
    assert layout.best_onwards.tolist() == [0, 4096]
    assert sorted(layout.ranks.tolist()) == list(range(len(boxes)))
