"""Diverse histories in arrays, compared with a list of members; and lists on demand."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import (
    Offered,
    batches,
    best_first,
    offer_all,
    offers_of,
    output_of,
)
from tests.feed.columnar.kernels.diverse import choice_of, diverse_cohort, parts, rank_of
from tests.feed.columnar.kernels.models import Histories, best, deliveries
from tests.feed.columnar.kernels.windows import US

from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels.diverse_choose import peek
from tidings.feed.columnar.kernels.diverse_windows import (
    offer_diverse_history,
    offer_diverse_sliding,
)
from tidings.feed.columnar.kernels.layout import HELD, NEXT, OUT, SEEN, AxisRange

LENGTHS: dict[str, Any] = {
    "matching": {"length": 5},
    "published": {"length": 12, "count": "published"},
    "time": {"length": "4us"},
}
SIZES = {"matching": 5, "published": 12, "time": 4}


run = partial(offer_all, offer_diverse_history)


def peeked(
    cohort: DiverseCohort, low: int, high: int, least: int = 1
) -> tuple[list[int], list[int]]:
    """Return the slots that are chosen from a range, and its measures."""
    within = AxisRange(cohort.codes.axis, low, high)
    size, *measured = peek(cohort.windows, 0, within, 20, least, cohort.search)
    slots = cohort.window(0, "slot")[cohort._scratch.chosen[:size]]
    return slots.tolist(), measured


@pytest.mark.parametrize("axis", LENGTHS)
@settings(max_examples=80)
@given(batches(), st.integers(1, 3), parts, st.booleans(), st.booleans())
def test_a_match_is_delivered_if_it_has_a_place_or_a_swap(
    axis: str, batch: list[Offered], k: int, part: Any, wait: bool, strict: bool
) -> None:
    window = {"name": "history", "wait": wait, "strict": strict, **LENGTHS[axis]}
    cohort = diverse_cohort(k=k, window=window, diversify=part)
    kind: Any = {"axis": axis, "length": SIZES[axis], "strict": strict}
    kind["divrank"] = rank_of(cohort.policy.diversify)
    sent, ranks = run(cohort, batch)
    assert sent == deliveries(lambda: Histories(best, k, wait, **kind), batch)
    scores = {slot: score for _, slot, score in batch}
    assert ranks == [scores[delivery.event] for delivery in sent]


def test_a_swap_for_distance_is_made_at_the_cost_of_rank() -> None:
    """The pair of slots 6 and 12 has .5 * .75; with slot 19, 1 apart, it is .5 * .5 + .5."""
    batch = [(0, 6, 0.75), (0, 12, 0.75), (0, 19, 0.25)]
    sent, _ = run(diverse_cohort(k=2, window={"name": "history", "length": 5}), batch)
    assert [(delivery.order, delivery.event, delivery.position) for delivery in sent] == [
        (0, 6, 1),
        (1, 12, 1),
        (2, 19, 2),
    ]


@given(batches(max_size=24), st.integers(5, 8), parts)
def test_a_full_output_stops_before_the_offer_that_needs_room(
    batch: list[Offered], room: int, part: Any
) -> None:
    window = {"name": "history", "length": 6}
    whole = diverse_cohort(window=window, diversify=part)
    pieces = diverse_cohort(window=window, diversify=part)
    assert run(whole, batch) == run(pieces, batch, room)
    assert (whole.head[:, [SEEN, HELD]] == pieces.head[:, [SEEN, HELD]]).all()


def test_an_offer_without_room_changes_nothing() -> None:
    cohort, output = diverse_cohort(window={"name": "history", "length": 4}), output_of(1)
    offers = offers_of([(0, 1, 0.5), (0, 2, 0.5)])
    for _ in range(2):
        offer_diverse_history(cohort.windows, output, offers, None)
        assert output.progress[[NEXT, OUT]].tolist() == [1, 1]
        assert cohort.head[0, [SEEN, HELD]].tolist() == [1, 1]


@given(batches(rows=1), st.integers(0, 16), st.integers(0, 16), parts, st.integers(1, 4))
def test_a_list_on_demand_is_the_choice_from_a_range(
    batch: list[Offered], low: int, high: int, part: Any, least: int
) -> None:
    cohort = diverse_cohort(k=2, window={"name": "sliding", "length": "1d"}, diversify=part)
    offer_all(offer_diverse_sliding, cohort, batch)
    before = cohort.head.copy(), cohort.mark.copy()
    inside = [(slot, score) for _, slot, score in batch if low <= US[slot] < high]
    times = [int(US[slot]) for slot, _ in inside]
    chosen, measured = peeked(cohort, low, high, least)
    assert measured == ([min(times), max(times), len(times)] if times else [0, 0, 0])
    enough = inside and len(inside) >= least
    assert chosen == (choice_of(cohort.policy.diversify)(inside, 2) if enough else [])
    assert (cohort.head == before[0]).all()
    assert (cohort.mark == before[1]).all()


def test_the_members_of_a_history_are_listed_by_rank() -> None:
    cohort = diverse_cohort(k=3, window={"name": "history", "length": "1d"})
    batch = [(0, 4, 0.25), (0, 9, 0.75), (0, 10, 0.75)]
    run(cohort, batch)
    ranked = sorted([(4, 0.25), (9, 0.75), (10, 0.75)], key=lambda match: best_first(*match))
    assert peeked(cohort, 0, 99) == ([slot for slot, _ in ranked], [1, 2, 3])
    assert peeked(cohort, 2, 99) == ([10, 9], [2, 2, 2])
    assert peeked(cohort, 50, 99) == ([], [0, 0, 0])
