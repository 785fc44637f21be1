"""Sliding and continuous windows in arrays, compared with lists of matches."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import (
    Offered,
    Sent,
    batches,
    offer_all,
    offers_of,
    output_of,
)
from tests.feed.columnar.kernels.models import Slides, best, deliveries
from tests.feed.columnar.kernels.windows import ranked_cohort

from tidings.feed.columnar.kernels.layout import NEXT, OUT, SEEN, SENT
from tidings.feed.columnar.kernels.ranked_windows import offer_sliding

LENGTHS: dict[str, Any] = {
    "matching": {"length": 4},
    "published": {"length": 9, "count": "published"},
    "time": {"length": "3us"},
}
SIZES = {"matching": 4, "published": 9, "time": 3}


run = partial(offer_all, offer_sliding)


def expected(batch: list[Offered], k: int, wait: bool, **kind: Any) -> list[Sent]:
    return deliveries(lambda: Slides(best, k, wait, **kind), batch)


@pytest.mark.parametrize("axis", LENGTHS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), st.booleans(), st.booleans())
def test_the_chosen_are_delivered_once(
    axis: str, batch: list[Offered], k: int, leave: bool, wait: bool
) -> None:
    delivered = "leave" if leave else "keep"
    window = {"name": "sliding", "delivered": delivered, "wait": wait, **LENGTHS[axis]}
    cohort = ranked_cohort(k=k, window=window)
    sent, _ = run(cohort, batch)
    assert sent == expected(batch, k, wait, axis=axis, length=SIZES[axis], leave=leave)


@pytest.mark.parametrize("axis", ["matching", "time"])
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), st.booleans())
def test_a_continuous_window_delivers_a_match_on_arrival_or_never(
    axis: str, batch: list[Offered], k: int, wait: bool
) -> None:
    expires = LENGTHS[axis]["length"]
    cohort = ranked_cohort(k=k, window={"name": "continuous", "wait": wait, "expires": expires})
    sent, _ = run(cohort, batch)
    assert sent == expected(batch, k, wait, axis=axis, length=SIZES[axis], continuous=True)


@given(batches(), st.integers(1, 3), st.booleans())
def test_without_expiry_the_best_of_all_time_are_delivered(
    batch: list[Offered], k: int, wait: bool
) -> None:
    cohort = ranked_cohort(k=k, window={"name": "continuous", "wait": wait})
    sent, _ = run(cohort, batch)
    ever = expected(batch, k, wait, axis="matching", length=99, continuous=True)
    assert [delivery[:5] for delivery in sent] == [delivery[:5] for delivery in ever]


@given(batches(max_size=24), st.integers(8, 12))
def test_a_full_output_stops_before_the_offer_that_needs_room(
    batch: list[Offered], room: int
) -> None:
    window = {"name": "sliding", "length": 6}
    whole, pieces = ranked_cohort(window=window), ranked_cohort(window=window)
    assert run(whole, batch) == run(pieces, batch, room)
    assert (whole.head[:, [SEEN, SENT]] == pieces.head[:, [SEEN, SENT]]).all()


def test_a_delivery_has_its_score_as_its_rank() -> None:
    batch = [(0, 1, 0.25), (1, 2, 0.5), (0, 5, 0.75)]
    sent, ranks = run(ranked_cohort(window={"name": "sliding", "length": 4}), batch)
    assert sent == [
        Sent(0, 0, 1, 1001, 1, 0, 0, 1, 1, 0),
        Sent(1, 1, 2, 1002, 1, 0, 0, 1, 1, 0),
        Sent(2, 0, 5, 1005, 1, 0, 1, 2, 2, 1),
    ]
    assert ranks == [0.25, 0.5, 0.75]


def test_an_offer_without_room_changes_nothing() -> None:
    cohort = ranked_cohort(window={"name": "sliding", "length": 4})
    offers, output = offers_of([(0, 1, 0.5), (0, 2, 0.5)]), output_of(1)
    offer_sliding(cohort.windows, output, offers)
    assert output.progress[[NEXT, OUT]].tolist() == [1, 1]
    assert cohort.head[0, [SEEN, SENT]].tolist() == [1, 1]
    offer_sliding(cohort.windows, output, offers)
    assert output.progress[[NEXT, OUT]].tolist() == [1, 1]
    assert cohort.head[0, [SEEN, SENT]].tolist() == [1, 1]


def test_no_offers_deliver_nothing() -> None:
    assert run(ranked_cohort(), []) == ([], [])


def test_a_match_that_was_passed_over_is_not_delivered_when_a_better_one_expires() -> None:
    batch = [(0, 4, 0.75), (0, 8, 0.5), (0, 12, 0.25)]
    continuous, _ = run(ranked_cohort(k=1, window={"name": "continuous", "expires": 2}), batch)
    sliding, _ = run(ranked_cohort(k=1, window={"name": "sliding", "length": 2}), batch)
    assert [one.event for one in continuous] == [4]
    assert [one.event for one in sliding] == [4, 8]
