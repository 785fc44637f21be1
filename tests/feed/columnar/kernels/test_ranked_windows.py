"""Deliveries that kernels write, and lists without entries that can never be chosen."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Sent, best_first, offers_of, output_of
from tests.feed.columnar.kernels.windows import SEQUENCE, ranked_cohort

from tidings.compiled.jit import kernel
from tidings.feed.columnar.kernels import layout, ranked_windows
from tidings.feed.columnar.kernels.layout import (
    DONE,
    HELD,
    MARK,
    OUT,
    SEEN,
    SENT,
    SIZE,
    SLOT,
    Arrival,
    Offers,
    Output,
    RankedWindows,
    WindowExtent,
)
from tidings.feed.columnar.kernels.ranked_buffer import push_ring, reserve_cell, reserve_entry
from tidings.feed.columnar.ranked_cohort import RankedCohort

EXTENT = WindowExtent(1, 3, 7, 3)


@kernel
def insert(windows: RankedWindows, row: int, match: Arrival, last: bool) -> int:
    return ranked_windows.insert_match(windows, row, match, last)


@kernel
def deliver(windows: RankedWindows, output: Output, row: int, extent: WindowExtent) -> None:
    ranked_windows.deliver_new(windows, output, row, 5, extent)


@kernel
def choose(windows: RankedWindows, output: Output, row: int, now_us: int) -> bool:
    return ranked_windows.choose_ranked(windows, output, row, 5, now_us)


@kernel
def arrival(offers: Offers, index: int) -> Arrival:
    return layout.arrival_at(offers, index)


def add(cohort: RankedCohort, slot: int, score: float, *, ring: bool = True) -> int:
    """Add a match to the window and to the list; return its position there."""
    windows = cohort.windows
    assert reserve_entry(windows, 0)
    last = True
    if ring:
        assert reserve_cell(windows, 0)
        cohort.head[0, SEEN] += 1
        last = bool(push_ring(windows, 0, slot))
    return int(insert(windows, 0, Arrival(slot, score, slot + 1000, slot), last))


def listed(cohort: RankedCohort) -> list[int]:
    slots: list[int] = cohort.entry[cohort.entries(np.array([0])), SLOT].tolist()
    return slots


def sent(output: Output) -> list[Sent]:
    return [Sent(*row) for row in output.columns[: output.progress[OUT]].tolist()]


def test_an_arrival_is_one_of_the_offers() -> None:
    offers = offers_of([(0, 4, 0.5), (1, 9, 0.25)])
    assert arrival(offers, 1) == Arrival(9, 0.25, 1009, 9)


def test_new_ones_of_the_best_are_delivered_with_their_positions() -> None:
    cohort, output = ranked_cohort(k=2), output_of(9)
    for slot, score in ((4, 0.5), (8, 0.75)):
        add(cohort, slot, score)
    deliver(cohort.windows, output, 0, EXTENT)
    add(cohort, 12, 0.6)
    deliver(cohort.windows, output, 0, EXTENT)
    assert sent(output) == [
        Sent(5, 0, 8, 1008, 1, 1, 3, 7, 1, 3),
        Sent(5, 0, 4, 1004, 2, 1, 3, 7, 2, 3),
        Sent(5, 0, 12, 1012, 2, 1, 3, 7, 3, 3),
    ]
    assert output.ranks[:3].tolist() == [0.75, 0.5, 0.6]
    assert cohort.head[0, SENT] == 3


def test_ranks_are_fresh_at_the_time_of_the_choice() -> None:
    cohort = ranked_cohort(k=2, decay={"name": "exponential", "rate": 1e6})
    cohort.score, output = np.zeros(5000), output_of(9)
    add(cohort, 4, 0.5)  # of time 1
    deliver(cohort.windows, output, 0, EXTENT)
    assert output.ranks[0] == pytest.approx(0.5 * np.exp(-2))


@given(
    st.lists(st.tuples(st.integers(1, 63), st.sampled_from([0.25, 0.5, 0.75])), max_size=16),
    st.integers(1, 3),
    st.booleans(),
)
def test_only_entries_with_fewer_than_k_newer_and_better_stay(
    drawn: list[tuple[int, float]], k: int, published: bool
) -> None:
    """Sequences of publications may arrive out of order; times may not."""
    window: dict[str, Any] = {"name": "sliding", "length": "1d"}
    if published:
        window = {"name": "sliding", "length": 99, "count": "published"}
    matches = list({slot: (slot, score) for slot, score in drawn}.values())
    if not published:
        matches.sort()
    cohort = ranked_cohort(k=k, window=window)
    for count, (slot, score) in enumerate(matches, start=1):
        position = add(cohort, slot, score)
        held = matches[:count]
        place = dict(zip(SEQUENCE.tolist(), SEQUENCE.tolist(), strict=True))
        if not published:  # the order of arrival decides between events of one time
            place = {one: nth for nth, (one, _) in enumerate(held)}
        kept = [
            match
            for match in held
            if k
            > sum(
                place[rival[0]] > place[match[0]] and best_first(*rival) < best_first(*match)
                for rival in held
            )
        ]
        kept.sort(key=lambda match: best_first(*match))
        slots = [one for one, _ in kept]
        assert listed(cohort) == slots
        assert position == (slots.index(slot) if slot in slots else -1)


def test_a_capped_list_refuses_a_match_behind_its_best() -> None:
    cohort = ranked_cohort(k=2, window={"name": "periodic", "length": "1d"})
    assert [add(cohort, slot, 0.5, ring=False) for slot in (4, 8)] == [0, 0]
    assert add(cohort, 12, 0.25, ring=False) == -1
    assert listed(cohort) == [8, 4]
    assert add(cohort, 16, 0.75, ring=False) == 0
    assert listed(cohort) == [16, 8, 4]


def test_a_choice_describes_the_whole_window() -> None:
    cohort, output = ranked_cohort(k=1), output_of(9)
    for slot, score in ((4, 0.5), (8, 0.75)):
        add(cohort, slot, score)
    assert choose(cohort.windows, output, 0, 2)
    assert sent(output) == [Sent(5, 0, 8, 1008, 1, 1, 2, 2, 1, 2)]
    assert (cohort.entry[cohort.entries(np.array([0])), MARK] & DONE).tolist() == [1]


def test_chosen_entries_leave_the_list_but_not_the_window() -> None:
    window = {"name": "sliding", "length": "1d", "delivered": "leave"}
    cohort, output = ranked_cohort(k=2, window=window), output_of(9)
    for slot, score in ((4, 0.25), (8, 0.75), (12, 0.5)):
        add(cohort, slot, score)
    assert choose(cohort.windows, output, 0, 3)
    assert [delivery.event for delivery in sent(output)] == [8, 12]
    assert listed(cohort) == [4]
    assert cohort.head[0, HELD] == 3
    assert choose(cohort.windows, output, 0, 3)
    assert not choose(cohort.windows, output, 0, 3)
    assert [
        (delivery.event, delivery.position, delivery.width) for delivery in sent(output)[2:]
    ] == [(4, 1, 3)]


@pytest.mark.parametrize("delivered", ["keep", "leave"])
def test_a_window_that_waits_makes_no_choice_below_k(delivered: str) -> None:
    window = {"name": "sliding", "length": "1d", "wait": True, "delivered": delivered}
    cohort, output = ranked_cohort(k=2, window=window), output_of(9)
    add(cohort, 4, 0.5)
    assert not choose(cohort.windows, output, 0, 1)
    assert cohort.head[0, [SIZE, SENT]].tolist() == [1, 0]
    add(cohort, 8, 0.25)
    assert choose(cohort.windows, output, 0, 2)
    assert [delivery.event for delivery in sent(output)] == [4, 8]
