"""Sliding and continuous windows in arrays, compared with lists of matches."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import (
    Offered,
    Sent,
    batches,
    best_first,
    offers_of,
    output_of,
    run_all,
)
from tests.feed.columnar.kernels.windows import SEQUENCE, US, ranked_cohort

from tidings.feed.columnar.kernels.layout import NEXT, OUT, SEEN, SENT
from tidings.feed.columnar.kernels.sliding import offer_sliding
from tidings.feed.columnar.ranked_cohort import RankedCohort

LENGTHS: dict[str, Any] = {
    "matching": {"length": 4},
    "published": {"length": 9, "count": "published"},
    "time": {"length": "3us"},
}
SIZES = {"matching": 4, "published": 9, "time": 3}


def run(
    cohort: RankedCohort, batch: list[Offered], room: int = 64
) -> tuple[list[Sent], list[float]]:
    offers = offers_of(batch)
    return run_all(lambda output: offer_sliding(cohort.windows, output, offers), len(batch), room)


class WindowOfLists:
    """One window: all its matches, and the events that are delivered or passed over."""

    def __init__(self, k: int, axis: str, **options: bool) -> None:
        self.k, self.axis, self.options = k, axis, options
        self.matches = list[tuple[int, float]]()
        self.done = set[int]()
        self.sent = 0

    def held(self, now: int) -> list[tuple[int, float]]:
        """Return the matches in the window when the event in slot `now` is the newest."""
        if self.axis == "ever":
            return sorted(self.matches, key=lambda match: best_first(*match))[: self.k]
        if self.axis == "matching":
            return self.matches[-SIZES["matching"] :]
        places, size = {"time": US, "published": SEQUENCE}[self.axis], SIZES[self.axis]
        return [match for match in self.matches if places[match[0]] > places[now] - size]

    def offer(self, order: int, row: int, slot: int, score: float) -> list[Sent]:
        self.matches.append((slot, score))
        held = self.held(slot)
        leave = self.options.get("leave", False)
        candidates = [match for match in held if not (leave and match[0] in self.done)]
        if not candidates or (self.options.get("wait") and len(candidates) < self.k):
            return []
        chosen = sorted(candidates, key=lambda match: best_first(*match))[: self.k]
        us, sent = int(US[slot]), list[Sent]()
        extent = (min(int(US[one]) for one, _ in held), us, len(held))
        for position, (one, _) in enumerate(chosen, start=1):
            if one not in self.done:
                self.sent += 1
                place = (order, row, one, one + 1000, position)
                sent.append(Sent(*place, *extent, self.sent, us))
        self.done |= {one for one, _ in chosen}
        if self.options.get("continuous"):
            self.done.add(slot)
        return sent


def expected(batch: list[Offered], k: int, axis: str, **options: bool) -> list[Sent]:
    models = [WindowOfLists(k, axis, **options) for _ in range(2)]
    return [
        one
        for order, (row, slot, score) in enumerate(batch)
        for one in models[row].offer(order, row, slot, score)
    ]


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
    assert sent == expected(batch, k, axis, leave=leave, wait=wait)


@pytest.mark.parametrize("axis", ["matching", "time"])
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), st.booleans())
def test_a_continuous_window_delivers_a_match_on_arrival_or_never(
    axis: str, batch: list[Offered], k: int, wait: bool
) -> None:
    expires = LENGTHS[axis]["length"]
    cohort = ranked_cohort(k=k, window={"name": "continuous", "wait": wait, "expires": expires})
    sent, _ = run(cohort, batch)
    assert sent == expected(batch, k, axis, wait=wait, continuous=True)


@given(batches(), st.integers(1, 3), st.booleans())
def test_without_expiry_the_best_of_all_time_are_delivered(
    batch: list[Offered], k: int, wait: bool
) -> None:
    cohort = ranked_cohort(k=k, window={"name": "continuous", "wait": wait})
    sent, _ = run(cohort, batch)
    best = expected(batch, k, "ever", wait=wait, continuous=True)
    assert [one[:5] for one in sent] == [one[:5] for one in best]


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
