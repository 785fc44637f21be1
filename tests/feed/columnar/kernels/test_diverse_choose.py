"""Choices of diverse windows from scratch equal the plain choice from the same matches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, best_first
from tests.feed.columnar.kernels.diverse import EVENTS, PARTS, choice_of, diverse_cohort
from tests.feed.columnar.kernels.windows import ID_ORDER, US

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import kernel
from tidings.diversify.distance import Overlap
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels import diverse_buffer, diverse_choose
from tidings.feed.columnar.kernels.diverse_choose import stable_order
from tidings.feed.columnar.kernels.layout import (
    DONE,
    FAR,
    Arrival,
    AxisRange,
    DiverseWindows,
    FeatureColumns,
    SearchCodes,
)

FITTING: list[Any] = [*PARTS, "maxavg", "maxdivrel", {"name": "disc", "alpha": 0.5}]
every_part = pytest.mark.parametrize("part", FITTING, ids=str)


@kernel
def enter(windows: DiverseWindows, row: int, match: Arrival) -> int:
    diverse_buffer.reserve_place(windows.buffer, row)
    return diverse_buffer.add_match(windows.buffer, row, match)


@kernel
def choose(
    windows: DiverseWindows, within: AxisRange, least: int, search: SearchCodes | None
) -> int:
    return diverse_choose.choose_range(windows, 0, within, 20, least, search)


@kernel
def prepare(windows: DiverseWindows, row: int, within: AxisRange) -> Int64s:
    size = diverse_choose.prepare_range(windows, row, within, 20)
    return diverse_choose.copy_candidates(windows, row, size).slot


@kernel
def matrix(features: FeatureColumns, rows: Int64s, partials: Float64s) -> Float64s:
    return diverse_choose.distance_matrix(features, rows, partials)


def filled(batch: list[Offered], **policy: Any) -> DiverseCohort:
    window = {"name": "sliding", "length": "1d"}
    cohort = diverse_cohort(**{"window": window, **policy})
    for _, slot, score in batch:
        enter(cohort.windows, 0, Arrival(slot, score, 0, slot))
    return cohort


def chosen(cohort: DiverseCohort, low: int = -FAR, high: int = FAR, least: int = 1) -> list[int]:
    within = AxisRange(cohort.codes.axis, low, high)
    size = choose(cohort.windows, within, least, cohort.search)
    slots: list[int] = cohort.window(0, "slot")[cohort._scratch.chosen[:size]].tolist()
    return slots


@every_part
@settings(max_examples=40)
@given(batch=batches(rows=1, max_size=12), k=st.integers(1, 4), low=st.integers(0, 8))
def test_a_choice_from_a_range_is_the_plain_one(
    part: Any, batch: list[Offered], k: int, low: int
) -> None:
    cohort = filled(batch, k=k, diversify=part)
    inside = [(slot, score) for _, slot, score in batch if low <= US[slot] < 12]
    expected = choice_of(cohort.policy.diversify)(inside, k) if inside else []
    assert chosen(cohort, low, 12) == expected


@every_part
def test_fewer_candidates_than_the_least_are_not_chosen_from(part: Any) -> None:
    cohort = filled([(0, 4, 0.5), (0, 9, 0.75)], k=3, diversify=part)
    assert chosen(cohort, least=3) == []
    assert sorted(chosen(cohort, least=2)) == [4, 9]
    assert chosen(filled([], diversify=part)) == []


def test_delivered_matches_are_no_candidates_where_they_leave() -> None:
    batch = [(0, 4, 0.5), (0, 9, 0.75), (0, 14, 0.25)]
    for delivered, expected in (("keep", [14, 9, 4]), ("leave", [14, 4])):
        window = {"name": "sliding", "length": "1d", "delivered": delivered}
        cohort = filled(batch, window=window)
        cohort.window(0, "mark")[1] |= DONE
        everything = AxisRange(cohort.codes.axis, -FAR, FAR)
        assert prepare(cohort.windows, 0, everything).tolist() == expected


@given(batches(rows=1))
def test_candidates_are_copied_newest_first_then_by_id(batch: list[Offered]) -> None:
    cohort = filled(batch)
    everything = AxisRange(cohort.codes.axis, -FAR, FAR)
    slots = [slot for _, slot, _ in batch]
    slots.sort(key=lambda slot: (-US[slot], ID_ORDER[slot]))
    assert prepare(cohort.windows, 0, everything).tolist() == slots


def test_one_is_chosen_by_rank_alone() -> None:
    batch = [(0, 4, 0.5), (0, 9, 0.75), (0, 10, 0.75)]
    best = min(batch, key=lambda match: best_first(*match[1:]))[1]
    assert chosen(filled(batch, k=1)) == [best] == [10]


def test_a_matrix_has_the_distances_of_the_events() -> None:
    cohort, slots = filled([]), np.arange(12)
    rows = cohort.features.columns.row[slots]
    made = matrix(cohort.windows.features, rows, cohort._scratch.partials)
    between = Overlap().between
    assert made.tolist() == [[between(EVENTS[a], EVENTS[b]) for b in slots] for a in slots]


@given(st.lists(st.integers(-3, 3)), st.sampled_from([np.int64, np.float64]))
def test_the_order_is_the_stable_one(keys: list[int], kind: type) -> None:
    order = stable_order(np.array(keys, kind))
    assert order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)
