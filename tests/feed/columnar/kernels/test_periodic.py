"""Periodic and jumping windows in arrays, compared with lists of matches."""

from typing import Any

import numpy as np
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

from tidings.feed.columnar.kernels.layout import END, ENDS, NEVER, NEXT, OUT, SEEN
from tidings.feed.columnar.kernels.periodic import advance_periodic, offer_periodic
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.window.protocol import Moment

PERIODS: dict[str, Any] = {
    "matching": {"length": 3},
    "published": {"length": 5, "count": "published"},
    "time": {"length": "3us"},
}
STEPS: dict[str, Any] = {
    "matching": {"length": 4, "step": 3},
    "published": {"length": 7, "step": 5, "count": "published"},
    "time": {"length": "4us", "step": "3us"},
    "mixed": {"length": "4us", "step": 3},
}
LAST = Moment(40, 80)


def run(cohort: RankedCohort, batch: list[Offered], room: int = 64) -> list[Sent]:
    """Offer a batch, then move the clock past everything."""
    offers, rows = offers_of(batch), np.arange(2, dtype=np.int32)
    sent, ranks = run_all(
        lambda output: offer_periodic(cohort.windows, output, offers), len(batch), room
    )
    scores = {slot: score for _, slot, score in batch}
    assert ranks == [scores[one.event] for one in sent]
    due, _ = run_all(lambda output: advance_periodic(cohort.windows, output, rows, LAST), 2, room)
    return [*sent, *(one._replace(order=-1) for one in due)]


class Ended:
    """What periods and steps have in common: an end, and matches with their places."""

    def __init__(self, k: int, axis: str, step: int, wait: bool, origin: int = 0) -> None:
        self.k, self.axis, self.step, self.wait, self.origin = k, axis, step, wait, origin
        self.matches = list[tuple[int, float, int]]()
        self.end: int | None = None
        self.seen = self.sent = 0

    def place(self, axis: str, slot: int, number: int) -> int:
        places = {"time": int(US[slot]), "published": int(SEQUENCE[slot]) - 1}
        return places.get(axis, number - 1)

    def due(self, now: Moment) -> bool:
        passed = {"time": now.us, "published": now.sequence}.get(self.axis, self.seen)
        return self.end is not None and self.end <= passed

    def offer(self, order: int, row: int, slot: int, score: float) -> list[Sent]:
        us, sequence = int(US[slot]), int(SEQUENCE[slot])
        sent = self.advance(order, row, Moment(us, sequence - 1))
        self.seen += 1
        self.matches.append((slot, score, self.seen))
        if self.end is None:
            place = self.place(self.axis, slot, self.seen)
            self.end = self.origin + ((place - self.origin) // self.step + 1) * self.step
        return sent + self.advance(order, row, Moment(us, sequence))

    def advance(self, order: int, row: int, now: Moment) -> list[Sent]:
        raise NotImplementedError

    def deliver(self, place: tuple[int, int], chosen: list[int], extent: Any) -> list[Sent]:
        """Deliver slots by their position; those that are -1 are delivered already."""
        sent = list[Sent]()
        start, stop, width, decided = extent
        for position, slot in enumerate(chosen, start=1):
            if slot >= 0:
                self.sent += 1
                row = (*place, slot, slot + 1000, position, start, stop, width)
                sent.append(Sent(*row, self.sent, decided))
        return sent

    def best(self, matches: list[tuple[int, float, int]]) -> list[int]:
        ranked = sorted(matches, key=lambda match: best_first(*match[:2]))
        return [slot for slot, _, _ in ranked[: self.k]]


class Periods(Ended):
    """All matches of the open period."""

    def advance(self, order: int, row: int, now: Moment) -> list[Sent]:
        if not self.due(now):
            return []
        end, self.end = self.end or 0, None
        if self.wait and len(self.matches) < self.k:
            return []
        times = [int(US[slot]) for slot, _, _ in self.matches]
        start, stop = min(times), max(times)
        if self.axis == "time":
            start, stop = end - self.step, end
        chosen, width = self.best(self.matches), len(self.matches)
        self.matches = []
        return self.deliver((order, row), chosen, (start, stop, width, stop))


class Jumps(Ended):
    """All matches, the delivered events, and every step one by one."""

    def __init__(self, length: int, across: str, leave: bool, *rest: Any) -> None:
        super().__init__(*rest)
        self.length, self.across, self.leave = length, across, leave
        self.delivered = set[int]()

    def advance(self, order: int, row: int, now: Moment) -> list[Sent]:
        sent = list[Sent]()
        while self.due(now):
            end = self.end or 0
            stop = end if self.across == self.axis else now.us + 1
            self.matches = [
                match
                for match in self.matches
                if self.place(self.across, match[0], match[2]) >= stop - self.length
            ]
            if not self.matches:
                self.end = None
                break
            self.end = end + self.step
            sent += self.choose(order, row, end)
        return sent

    def choose(self, order: int, row: int, end: int) -> list[Sent]:
        candidates = [m for m in self.matches if not (self.leave and m[0] in self.delivered)]
        if not candidates or (self.wait and len(candidates) < self.k):
            return []
        times = [int(US[slot]) for slot, _, _ in self.matches]
        decided = end if self.axis == "time" else max(times)
        chosen = self.best(candidates)
        new = [-1 if slot in self.delivered else slot for slot in chosen]
        self.delivered |= {*chosen}
        return self.deliver((order, row), new, (min(times), decided, len(times), decided))


def expected(models: list[Any], batch: list[Offered]) -> list[Sent]:
    sent = [
        one
        for order, (row, slot, score) in enumerate(batch)
        for one in models[row].offer(order, row, slot, score)
    ]
    return sent + [one for row in range(2) for one in models[row].advance(-1, row, LAST)]


@pytest.mark.parametrize("axis", PERIODS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), st.booleans())
def test_a_period_delivers_its_best_when_it_ends(
    axis: str, batch: list[Offered], k: int, wait: bool
) -> None:
    window = {"name": "periodic", "wait": wait, **PERIODS[axis]}
    step = 5 if axis == "published" else 3
    models = [Periods(k, axis, step, wait) for _ in range(2)]
    assert run(ranked_cohort(k=k, window=window), batch) == expected(models, batch)


@given(batches(), st.integers(-5, 5))
def test_periods_of_time_are_aligned_to_their_origin(batch: list[Offered], origin: int) -> None:
    window = {"name": "periodic", "length": "3us"}
    cohort = ranked_cohort(window=window)
    cohort.codes = cohort.codes._replace(origin=origin)
    models = [Periods(3, "time", 3, False, origin) for _ in range(2)]
    assert run(cohort, batch) == expected(models, batch)


@pytest.mark.parametrize("axis", STEPS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), st.booleans(), st.booleans())
def test_a_jumping_window_chooses_where_a_step_ends(
    axis: str, batch: list[Offered], k: int, leave: bool, wait: bool
) -> None:
    delivered = "leave" if leave else "keep"
    window = {"name": "jumping", "wait": wait, "delivered": delivered, **STEPS[axis]}
    across, along = ("time", "matching") if axis == "mixed" else (axis, axis)
    length, step = (7, 5) if axis == "published" else (4, 3)
    models = [Jumps(length, across, leave, k, along, step, wait) for _ in range(2)]
    assert run(ranked_cohort(k=k, window=window), batch) == expected(models, batch)


def test_a_period_is_delivered_before_the_match_that_is_after_it() -> None:
    batch = [(0, 4, 0.25), (0, 5, 0.75), (0, 12, 0.5)]
    window = {"name": "periodic", "length": "3us"}
    assert run(ranked_cohort(k=1, window=window), batch) == [
        Sent(2, 0, 5, 1005, 1, 0, 3, 2, 1, 3),
        Sent(-1, 0, 12, 1012, 1, 3, 6, 1, 2, 6),
    ]


def test_a_group_is_delivered_with_the_match_that_completes_it() -> None:
    batch = [(0, 4, 0.25), (0, 9, 0.75), (0, 12, 0.5)]
    window = {"name": "periodic", "length": 3}
    assert run(ranked_cohort(k=2, window=window), batch) == [
        Sent(2, 0, 9, 1009, 1, 1, 3, 3, 1, 3),
        Sent(2, 0, 12, 1012, 2, 1, 3, 3, 2, 3),
    ]


def test_new_ends_are_reported_once() -> None:
    cohort, output = ranked_cohort(window={"name": "periodic", "length": "3us"}), output_of(9)
    offers = offers_of([(0, 4, 0.5), (0, 5, 0.5), (1, 13, 0.5), (0, 14, 0.5)])
    offer_periodic(cohort.windows, output, offers)
    assert output.ends[: output.progress[ENDS]].tolist() == [[0, 3], [1, 6], [0, 6]]
    advance_periodic(cohort.windows, output_of(9), np.array([0, 1], np.int32), Moment(6, 99))
    assert cohort.head[:2, END].tolist() == [NEVER, NEVER]


@pytest.mark.parametrize("window", ["periodic", "jumping"])
@given(batches(max_size=24), st.integers(9, 12))
def test_a_full_output_stops_before_the_offer_that_needs_room(
    window: str, batch: list[Offered], room: int
) -> None:
    options: Any = {"name": window, "length": 6, **({"step": 2} if window == "jumping" else {})}
    whole, pieces = ranked_cohort(window=options), ranked_cohort(window=options)
    assert run(whole, batch) == run(pieces, batch, room)
    assert (whole.head[:, [SEEN, END]] == pieces.head[:, [SEEN, END]]).all()


def test_an_advance_without_room_changes_nothing() -> None:
    cohort, output = ranked_cohort(window={"name": "periodic", "length": "3us"}), output_of(1)
    run_all(
        lambda out: offer_periodic(cohort.windows, out, offers_of([(0, 4, 0.5), (0, 5, 0.5)])),
        2,
        room=9,
    )
    advance_periodic(cohort.windows, output, np.array([1, 0], np.int32), LAST)
    assert output.progress[[NEXT, OUT]].tolist() == [1, 0]
    assert cohort.head[0, END] == 3
