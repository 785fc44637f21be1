"""The base of compiled box indexes: cuts, codes, heaps and packed rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.boxes.kernels.quantize import MAX_CUTS, NEVER, BoxBounds, CodeCuts
from tidings.index.boxes.kernels.relaxed_layout import pack
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import Boxes, events_of, range_events
from tidings.index.boxes.search_base import (
    coded,
    coded_events,
    cuts_of,
    empty_heaps,
    inverse,
    quantiles,
    single_answer,
    sorted_answers,
    unpacked,
)
from tidings.model.values import Range

CUTS = CodeCuts(np.array([[1.0, 3.0], [5.0, np.inf], [0.0, 0.0]]), np.array([2, 1, 0]))


def test_codes_count_the_cuts_that_are_not_above():
    rows = np.array([[0.9, 5.0], [1.0, 4.0], [3.0, np.inf], [2.0, np.nan]])
    assert coded(CUTS, rows).tolist() == [
        *(0, 1, 0),
        *(1, 0, 0),
        *(2, 1, 0),
        *(1, NEVER, 0),
    ]


def test_points_share_their_codes_and_ranges_have_two():
    points = coded_events(CUTS, events_of(2, [[2.0, 6.0]]))
    assert points.below_codes is points.above_codes
    assert not points.ranged
    ranges = coded_events(CUTS, range_events([[Range(0, 9), 6.0]], [0.25, 0.5]))
    assert (ranges.below_codes.tolist(), ranges.above_codes.tolist()) == ([2, 1, 0], [0, 1, 0])
    assert (ranges.peaks.tolist(), ranges.ranged) == ([0.5], True)


def test_cuts_are_the_finite_bounds_of_each_attribute():
    low = np.array([[0.0, -np.inf], [2.0, -np.inf], [2.0, 7.0]])
    high = np.array([[2.0, np.inf], [3.0, np.inf], [9.0, np.inf]])
    cuts = cuts_of(Boxes(low, high, np.ones(3)))
    assert cuts.counts.tolist() == [4, 1, 0]
    assert cuts.numbers.shape == (3, MAX_CUTS)
    assert cuts.numbers[0, :5].tolist() == [0.0, 2.0, 3.0, 9.0, math.inf]
    assert cuts.numbers[1, :2].tolist() == [7.0, math.inf]


def test_no_boxes_have_no_cuts():
    empty = np.empty((0, 2))
    assert cuts_of(Boxes(empty, empty, empty)).counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [MAX_CUTS, MAX_CUTS + 1, 5000])
def test_at_most_254_cuts_split_the_bounds_evenly(size):
    bounds = np.random.default_rng(size).permutation(size).astype(float)
    cuts = quantiles(bounds)
    assert len(cuts) == MAX_CUTS
    assert (np.diff(cuts) > 0).all()
    assert (cuts[0], cuts[-1]) == (0.0, size - 1)
    assert np.diff(cuts).max() <= size / (MAX_CUTS - 1) + 1


def test_frequent_bounds_are_cut_once():
    assert quantiles(np.repeat([4.0, 2.0], 500)).tolist() == [2.0, 4.0]
    skewed = np.concatenate([np.zeros(5000), np.arange(300.0)])
    cuts = quantiles(skewed)
    assert len(cuts) == len(set(cuts.tolist())) < MAX_CUTS


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), unique=True, max_size=6))
def test_heaps_are_sorted_by_score_and_ties_by_id(entries):
    """A row of a heap that is filled by hand: each entry is worse than those below it."""
    worst_first = sorted(((score, -id) for score, id in entries), key=lambda entry: entry)
    heaps = empty_heaps(1, 6)
    for place, (score, minus) in enumerate(worst_first):
        heaps.scores[0, place], heaps.ids[0, place] = score, -minus
    heaps.sizes[0] = len(entries)
    answer = single_answer(sorted_answers(heaps))
    expected = sorted((-score, id) for score, id in entries)
    assert answer.ids.tolist() == [id for _, id in expected]
    assert answer.scores.tolist() == [-minus for minus, _ in expected]


def test_empty_heaps_are_padded_answers():
    answers = sorted_answers(empty_heaps(2, 3))
    assert answers.ids.tolist() == [[-1] * 3] * 2
    assert np.isnan(answers.scores).all()
    assert answers.counts.tolist() == [0, 0]
    assert single_answer(answers).ids.tolist() == []


def test_entries_behind_the_size_of_a_row_are_not_sorted():
    heaps = TopkHeaps(np.array([[1.0, 9.0]]), np.array([[4, 5]]), np.array([1]))
    assert single_answer(sorted_answers(heaps)).ids.tolist() == [4]


@given(st.permutations(range(6)))
def test_an_inverse_leads_back(order):
    positions = inverse(np.array(order, np.int32))
    assert [order[position] for position in positions] == list(range(6))


def test_unpacked_boxes_are_those_that_were_packed():
    low = np.array([[0.0, -np.inf], [-np.inf, -np.inf], [2.0, 3.0]])
    high = np.array([[1.0, np.inf], [5.0, np.inf], [2.0, np.inf]])
    weight = np.array([[0.5, 0.7], [0.2, 0.1], [1.0, 0.0]])
    packed = np.empty((3, 6))
    pack(BoxBounds(low, high), weight, np.array([2, 0, 1], np.int32), packed)
    boxes = unpacked(packed, np.array([1, 2]))
    assert boxes.low.tolist() == low[:2].tolist()
    assert boxes.high.tolist() == high[:2].tolist()
    assert boxes.worth.tolist() == [[0.5, 0.0], [0.2, 0.0]]
