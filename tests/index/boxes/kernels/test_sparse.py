"""Sparse tiles: predicates by attribute, codes that bound scores, and the best of the living."""

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

from tidings.index.boxes.kernels.memtable import MAX, SUM
from tidings.index.boxes.kernels.quantize import Liveness
from tidings.index.boxes.kernels.sparse import (
    PREDICATES,
    TILE,
    WEIGHED,
    SparseTask,
    add_codes,
    row_total,
    sparse_many,
    sparse_score,
    sparse_totals,
    tile_scale,
)
from tidings.index.boxes.protocol import Boxes, events_of
from tidings.index.boxes.search_base import ALL_ALIVE, coded_events, cuts_of
from tidings.index.boxes.sparse import predicates_of, sparse_layout

both_aggregates = pytest.mark.parametrize("scoring", [SUM, MAX], ids=["sum", "max"])


def answers(boxes, events, k, scoring, stamps=None, version=0):
    """Search with the kernels alone; return the answers and the counters."""
    cuts, counters = cuts_of(boxes), np.zeros(2, np.int64)
    order, layout = sparse_layout(boxes, cuts, scoring == MAX, np.arange(len(boxes)))
    liveness = ALL_ALIVE if stamps is None else Liveness(stamps[order], version)

    def search(coded, best, liveness):
        sparse_many(SparseTask(layout, coded, liveness, best, counters))

    return searched(search, coded_events(cuts, events), k, liveness), counters


@both_aggregates
@given(
    boxes=boxes_strategy(),
    events=events_strategy(),
    k=st.integers(0, 6),
    died=st.lists(st.integers(0, 4), min_size=12, max_size=12),
)
def test_the_k_best_of_the_living_boxes_are_found(scoring, boxes, events, k, died):
    stamps = np.array(died[: len(boxes)], np.int32)
    expected = plain_answers(boxes, events, scoring, k, lambda id: died[id] > 2)
    assert answers(boxes, events, k, scoring, stamps, 2)[0] == expected


@both_aggregates
@pytest.mark.parametrize("size", [63, 64, 65, TILE + 1])
def test_sizes_around_blocks_and_tiles(scoring, size):
    boxes, events = random_boxes(size, 2, size), random_events(2, 2, size)
    expected = plain_answers(boxes, events, scoring, 9, lambda id: True)
    assert answers(boxes, events, 9, scoring)[0] == expected


@both_aggregates
@given(boxes=boxes_strategy(), events=events_strategy())
def test_a_box_has_the_score_of_its_predicates(scoring, boxes, events):
    rows, coded = predicates_of(boxes, np.arange(len(boxes))), coded_events(cuts_of(boxes), events)
    totals = np.empty(len(boxes))
    sparse_totals(rows, scoring == MAX, totals)
    for id in range(len(boxes)):
        constrained = boxes.constrained()[id]
        held = boxes.worth[id][constrained].tolist() or [0.0]
        total = max(held) if scoring == MAX else sum(held)
        assert row_total(rows, id, scoring == MAX) == total
        assert totals[id] == round(total, 12)
        for event in range(len(events)):
            expected = plain_score(boxes, id, events, event, scoring)
            assert sparse_score(rows, id, coded, event, scoring == MAX) == expected


@both_aggregates
@given(boxes=boxes_strategy(), events=events_strategy())
def test_sums_of_codes_bound_the_scores(scoring, boxes, events):
    cuts = cuts_of(boxes)
    _, layout = sparse_layout(boxes, cuts, scoring == MAX, np.arange(len(boxes)))
    coded = coded_events(cuts, events)
    for event in range(len(events) if len(boxes) else 0):
        sums = np.zeros(TILE, np.uint16)
        compared = add_codes(layout, 0, coded, event, sums)
        present = ~np.isnan(events.below[event])
        assert compared == boxes.constrained()[:, present].sum()
        scale = tile_scale(layout.rows, 0, len(boxes), scoring == MAX)
        for place, id in enumerate(layout.tiles.ids.tolist()):
            score = plain_score(boxes, id, events, event, scoring)
            assert score < 0 or sums[place] >= max(1, score * scale - 1e-6)


def test_predicates_of_a_tile_are_sorted_by_attribute():
    boxes = random_boxes(300, 4, 5)
    cuts = cuts_of(boxes)
    order, layout = sparse_layout(boxes, cuts, False, np.arange(300))
    places, constrained = layout.tiles.places, boxes.constrained()[order]
    for attribute in range(4):
        own = slice(places[attribute], places[attribute + 1])
        assert (
            layout.tiles.positions[own].tolist()
            == np.flatnonzero(constrained[:, attribute]).tolist()
        )
    assert places[4] == constrained.sum()


def test_an_attribute_that_an_event_lacks_is_not_compared():
    boxes = random_boxes(200, 3, 2)
    found, counters = answers(boxes, events_of(3, [[np.nan, 4.0, np.nan]]), 200, SUM)
    assert counters[PREDICATES] == boxes.constrained()[:, 1].sum()
    assert counters[WEIGHED] >= len(found[0]) > 0


def test_a_tile_that_cannot_reach_the_kth_best_is_skipped():
    size = 2 * TILE
    low = np.zeros((size, 1))
    boxes = Boxes(low, low + 1, np.repeat([[2.0], [1.0]], TILE, axis=0))
    found, counters = answers(boxes, events_of(1, [[0.5]]), 3, SUM)
    assert found == [[(-2.0, 0), (-2.0, 1), (-2.0, 2)]]
    assert counters[PREDICATES] == TILE
