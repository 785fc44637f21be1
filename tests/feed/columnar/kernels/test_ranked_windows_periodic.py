"""Periodic and jumping windows in arrays, compared with lists of matches."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import (
    LAST,
    Offered,
    Sent,
    batches,
    offer_and_advance,
    offers_of,
    output_of,
    run_all,
)
from tests.feed.columnar.kernels.models import Jumps, Periods, best, deliveries
from tests.feed.columnar.kernels.windows import ranked_cohort

from tidings.feed.columnar.kernels.layout import END, ENDS, NEVER, NEXT, OUT, SEEN
from tidings.feed.columnar.kernels.ranked_windows import advance_periodic, offer_periodic
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


run = partial(offer_and_advance, offer_periodic, advance_periodic)


@pytest.mark.parametrize("axis", PERIODS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), st.booleans())
def test_a_period_delivers_its_best_when_it_ends(
    axis: str, batch: list[Offered], k: int, wait: bool
) -> None:
    window = {"name": "periodic", "wait": wait, **PERIODS[axis]}
    step = 5 if axis == "published" else 3
    sent = run(ranked_cohort(k=k, window=window), batch)
    assert sent == deliveries(lambda: Periods(best, k, wait, axis=axis, step=step), batch, end=True)


@given(batches(), st.integers(-5, 5))
def test_periods_of_time_are_aligned_to_their_origin(batch: list[Offered], origin: int) -> None:
    window = {"name": "periodic", "length": "3us"}
    cohort = ranked_cohort(window=window)
    cohort.codes = cohort.codes._replace(origin=origin)
    kind: Any = {"axis": "time", "step": 3, "origin": origin}
    assert run(cohort, batch) == deliveries(
        lambda: Periods(best, 3, False, **kind), batch, end=True
    )


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
    kind: Any = {"across": across, "length": length, "leave": leave, "axis": along, "step": step}
    sent = run(ranked_cohort(k=k, window=window), batch)
    assert sent == deliveries(lambda: Jumps(best, k, wait, **kind), batch, end=True)


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
