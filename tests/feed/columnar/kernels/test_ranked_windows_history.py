"""Histories in arrays, compared with a list of members."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, offer_all, offers_of, output_of
from tests.feed.columnar.kernels.models import Histories, Scored, best, deliveries
from tests.feed.columnar.kernels.windows import ranked_cohort

from tidings.feed.columnar.kernels.layout import NEXT, OUT, SEEN, SIZE, SLOT
from tidings.feed.columnar.kernels.ranked_windows import offer_history
from tidings.model.values import rounded

LENGTHS: dict[str, Any] = {
    "matching": {"length": 4},
    "published": {"length": 9, "count": "published"},
    "time": {"length": "3us"},
}
SIZES = {"matching": 4, "published": 9, "time": 3}


run = partial(offer_all, offer_history)


def events_of(batch: list[Offered], k: int, **options: Any) -> list[tuple[int, int]]:
    """Return which offer delivers which event."""
    window = {"name": "history", "length": 4, **options}
    sent, _ = run(ranked_cohort(k=k, window=window), batch)
    return [(delivery.order, delivery.event) for delivery in sent]


def members_of(batch: list[Offered]) -> list[int]:
    """Return the events in the history of k = 2 after a batch."""
    cohort = ranked_cohort(k=2, window={"name": "history", "length": 9})
    run(cohort, batch)
    return sorted(cohort.entry[cohort.entries(np.array([0])), SLOT].tolist())


def mean_score(matches: list[Scored]) -> float:
    """The divrank of a set where rank alone decides."""
    return rounded(math.fsum(score for _, score in matches) / len(matches))


@pytest.mark.parametrize("axis", LENGTHS)
@settings(max_examples=80)
@given(batches(), st.integers(1, 3), st.booleans(), st.booleans())
def test_a_match_is_delivered_if_it_has_a_place_or_a_swap(
    axis: str, batch: list[Offered], k: int, wait: bool, strict: bool
) -> None:
    window = {"name": "history", "wait": wait, "strict": strict, **LENGTHS[axis]}
    sent, ranks = run(ranked_cohort(k=k, window=window), batch)
    kind: Any = {"axis": axis, "length": SIZES[axis], "strict": strict, "divrank": mean_score}
    assert sent == deliveries(lambda: Histories(best, k, wait, **kind), batch)
    scores = {slot: score for _, slot, score in batch}
    assert ranks == [scores[delivery.event] for delivery in sent]


def test_a_swap_must_not_lower_the_mean_rank() -> None:
    batch = [(0, 4, 0.5), (0, 8, 0.25), (0, 12, 0.5), (0, 16, 0.75)]
    assert events_of(batch, k=1) == [(0, 4), (2, 12), (3, 16)]
    assert events_of(batch, k=1, strict=True) == [(0, 4), (3, 16)]


def test_of_equal_swaps_the_oldest_member_is_dropped() -> None:
    assert members_of([(0, 4, 0.5), (0, 8, 0.5), (0, 12, 0.75)]) == [8, 12]
    assert members_of([(0, 4, 0.5), (0, 5, 0.5), (0, 12, 0.75)]) == [5, 12]


def test_the_place_of_a_member_that_leaves_is_free() -> None:
    batch = [(0, 4, 0.75), (0, 8, 0.25), (0, 12, 0.25), (0, 16, 0.25), (0, 20, 0.25)]
    assert events_of(batch, k=1) == [(0, 4), (4, 20)]


def test_a_waiting_history_delivers_its_first_members_together() -> None:
    batch = [(0, 4, 0.25), (0, 8, 0.75), (0, 12, 0.25)]
    assert events_of(batch, k=2, wait=True) == [(1, 8), (1, 4), (2, 12)]


def test_ranks_that_round_alike_are_ties() -> None:
    """The lower member is newer by so little that the means round alike: the oldest is dropped."""
    assert members_of([(0, 4, 0.5 + 1e-13), (0, 8, 0.5), (0, 12, 0.75)]) == [8, 12]
    assert members_of([(0, 4, 0.5 + 1e-11), (0, 8, 0.5), (0, 12, 0.75)]) == [4, 12]


@given(batches(max_size=24), st.integers(4, 6))
def test_a_full_output_stops_before_the_offer_that_needs_room(
    batch: list[Offered], room: int
) -> None:
    window = {"name": "history", "length": 6}
    whole, pieces = ranked_cohort(window=window), ranked_cohort(window=window)
    assert run(whole, batch) == run(pieces, batch, room)
    assert (whole.head[:, [SEEN, SIZE]] == pieces.head[:, [SEEN, SIZE]]).all()


def test_an_offer_without_room_changes_nothing() -> None:
    cohort = ranked_cohort(window={"name": "history", "length": 4})
    offers, output = offers_of([(0, 1, 0.5), (0, 2, 0.5)]), output_of(1)
    for _ in range(2):
        offer_history(cohort.windows, output, offers)
        assert output.progress[[NEXT, OUT]].tolist() == [1, 1]
        assert cohort.head[0, [SEEN, SIZE]].tolist() == [1, 1]
