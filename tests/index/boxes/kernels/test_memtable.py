"""The memtable: every box is scored, in every way, at one version."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.boxes.kernels.plain import (
    boxes_strategy,
    events_strategy,
    plain_answers,
    plain_score,
    searched,
)

from tidings.index.boxes.kernels.memtable import (
    EXACT,
    MAX,
    SUM,
    MemtableRows,
    all_hold,
    memtable_score,
    search_memtable,
)
from tidings.index.boxes.kernels.quantize import BoxBounds, Liveness
from tidings.index.boxes.kernels.relaxed_layout import pack, total_weights
from tidings.index.boxes.live import no_cuts
from tidings.index.boxes.protocol import Boxes, events_of
from tidings.index.boxes.search_base import ALL_ALIVE, coded_events

every_scoring = pytest.mark.parametrize("scoring", [SUM, MAX, EXACT], ids=["sum", "max", "exact"])


def rows_of(boxes: Boxes, scoring: int) -> MemtableRows:
    """Pack boxes; in exact matching the score is the first weight."""
    size, bounds = len(boxes), BoxBounds(boxes.low, boxes.high)
    packed, most = np.empty((size, 3 * boxes.attributes)), boxes.worth[:, 0].copy()
    weights = boxes.worth if scoring != EXACT else np.zeros(boxes.low.shape)
    pack(bounds, weights, np.arange(size, dtype=np.int32), packed)
    if scoring != EXACT:
        total_weights(bounds, weights, scoring == MAX, most)
    return MemtableRows(packed, most, np.arange(size))


@every_scoring
@given(boxes=boxes_strategy(), events=events_strategy())
def test_scores_are_those_of_the_definition(scoring, boxes, events):
    rows, coded = rows_of(boxes, scoring), coded_events(no_cuts(3), events)
    for event in range(len(events)):
        for place in range(len(boxes)):
            expected = plain_score(boxes, place, events, event, scoring)
            assert memtable_score(rows, place, coded, event, scoring) == expected
            if scoring == EXACT:
                assert all_hold(rows.packed, place, coded, event) == (expected >= 0)


@every_scoring
@given(
    boxes=boxes_strategy(),
    events=events_strategy(),
    k=st.integers(0, 6),
    died=st.lists(st.integers(0, 4), min_size=12, max_size=12),
    size=st.integers(0, 12),
)
def test_the_k_best_of_the_living_rows_are_found(scoring, boxes, events, k, died, size):
    rows, size = rows_of(boxes, scoring), min(size, len(boxes))
    liveness = Liveness(np.array(died, np.int32), 2)

    def search(coded, best, liveness):
        search_memtable(rows, size, coded, liveness, scoring, best)

    found = searched(search, coded_events(no_cuts(3), events), k, liveness)
    expected = plain_answers(
        boxes, events, scoring, k, lambda place: place < size and died[place] > 2
    )
    assert found == expected


def test_ties_go_to_the_smaller_id_wherever_its_row_is():
    boxes = Boxes(np.zeros((3, 1)), np.ones((3, 1)), np.ones((3, 1)))
    rows = rows_of(boxes, SUM)._replace(ids=np.array([7, 2, 5]))

    def search(coded, best, liveness):
        search_memtable(rows, 3, coded, liveness, SUM, best)

    coded = coded_events(no_cuts(1), events_of(1, [[0.5]]))
    assert searched(search, coded, 2, ALL_ALIVE) == [[(-1.0, 2), (-1.0, 5)]]
