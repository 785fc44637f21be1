"""Sliding and continuous diverse windows in arrays, compared with lists of matches."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, offer_all, offers_of, output_of
from tests.feed.columnar.kernels.diverse import PARTS, choice_of, diverse_cohort, parts
from tests.feed.columnar.kernels.models import Slides, deliveries

from tidings.feed.columnar.kernels.diverse_windows import offer_diverse_sliding
from tidings.feed.columnar.kernels.layout import HELD, NEXT, OUT, SEEN, SENT

LENGTHS: dict[str, Any] = {
    "matching": {"length": 5},
    "published": {"length": 12, "count": "published"},
    "time": {"length": "4us"},
}
SIZES = {"matching": 5, "published": 12, "time": 4}


run = partial(offer_all, offer_diverse_sliding)


@pytest.mark.parametrize("axis", LENGTHS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), parts, st.booleans(), st.booleans())
def test_the_chosen_are_delivered_once(
    axis: str, batch: list[Offered], k: int, part: Any, leave: bool, wait: bool
) -> None:
    window = {"name": "sliding", "wait": wait, **LENGTHS[axis]}
    window["delivered"] = "leave" if leave else "keep"
    cohort = diverse_cohort(k=k, window=window, diversify=part)
    choose = choice_of(cohort.policy.diversify)
    kind: Any = {"axis": axis, "length": SIZES[axis], "leave": leave}
    sent, ranks = run(cohort, batch)
    expected = deliveries(lambda: Slides(choose, k, wait, **kind), batch)
    assert sent == expected
    scores = {slot: score for _, slot, score in batch}
    assert ranks == [scores[delivery.event] for delivery in sent]


@pytest.mark.parametrize("axis", ["matching", "time", "ever"])
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), parts, st.booleans())
def test_a_continuous_window_delivers_a_match_on_arrival_or_never(
    axis: str, batch: list[Offered], k: int, part: Any, wait: bool
) -> None:
    expires = LENGTHS[axis]["length"] if axis in LENGTHS else None
    window = {"name": "continuous", "wait": wait, "expires": expires}
    cohort = diverse_cohort(k=k, window=window, diversify=part)
    choose, length = choice_of(cohort.policy.diversify), SIZES.get(axis, 99)
    sent, _ = run(cohort, batch)
    along = "time" if axis == "time" else "matching"
    assert sent == deliveries(
        lambda: Slides(choose, k, wait, axis=along, length=length, continuous=True), batch
    )


@pytest.mark.parametrize("part", PARTS, ids=str)
@settings(max_examples=20)
@given(batch=batches(max_size=24), room=st.integers(6, 9))
def test_a_full_output_stops_before_the_offer_that_needs_room(
    part: Any, batch: list[Offered], room: int
) -> None:
    window = {"name": "sliding", "length": 5}
    whole = diverse_cohort(window=window, diversify=part)
    pieces = diverse_cohort(window=window, diversify=part)
    assert run(whole, batch) == run(pieces, batch, room)
    counters = [SEEN, SENT, HELD]
    assert (whole.head[:, counters] == pieces.head[:, counters]).all()


def test_a_distant_match_of_low_rank_is_delivered() -> None:
    """Slots 6 and 12 are alike; slot 19 differs in both attributes from them."""
    batch = [(0, 6, 0.75), (0, 12, 0.75), (0, 19, 0.25)]
    sent, ranks = run(diverse_cohort(k=2, window={"name": "sliding", "length": 5}), batch)
    assert [(delivery.order, delivery.event, delivery.position) for delivery in sent] == [
        (0, 6, 1),
        (1, 12, 2),
        (2, 19, 2),
    ]
    assert ranks == [0.75, 0.75, 0.25]


def test_an_offer_without_room_changes_nothing() -> None:
    cohort, output = diverse_cohort(), output_of(1)
    offers = offers_of([(0, 1, 0.5), (0, 2, 0.5)])
    for _ in range(2):
        offer_diverse_sliding(cohort.windows, output, offers, cohort.search)
        assert output.progress[[NEXT, OUT]].tolist() == [1, 1]
        assert cohort.head[0, [SEEN, SENT]].tolist() == [1, 1]
