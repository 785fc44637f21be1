"""Periodic and jumping diverse windows in arrays, compared with lists of matches."""

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
from tests.feed.columnar.kernels.diverse import choice_of, diverse_cohort, parts
from tests.feed.columnar.kernels.models import Jumps, Periods, deliveries

from tidings.feed.columnar.kernels.diverse_windows import advance_diverse, offer_diverse_periodic
from tidings.feed.columnar.kernels.layout import END, ENDS, HELD, NEVER, NEXT, OUT, SEEN
from tidings.window.protocol import Moment

PERIODS: dict[str, Any] = {
    "matching": {"length": 4},
    "published": {"length": 9, "count": "published"},
    "time": {"length": "4us"},
}
STEPS: dict[str, Any] = {
    "matching": {"length": 5, "step": 2},
    "published": {"length": 12, "step": 5, "count": "published"},
    "time": {"length": "5us", "step": "2us"},
    "mixed": {"length": "5us", "step": 2},
}


run = partial(offer_and_advance, offer_diverse_periodic, advance_diverse)


@pytest.mark.parametrize("axis", PERIODS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), parts, st.booleans())
def test_a_period_delivers_its_choice_when_it_ends(
    axis: str, batch: list[Offered], k: int, part: Any, wait: bool
) -> None:
    window = {"name": "periodic", "wait": wait, **PERIODS[axis]}
    cohort = diverse_cohort(k=k, window=window, diversify=part)
    choose, step = choice_of(cohort.policy.diversify), 9 if axis == "published" else 4
    assert run(cohort, batch) == deliveries(
        lambda: Periods(choose, k, wait, axis=axis, step=step), batch, end=True
    )


@pytest.mark.parametrize("axis", STEPS)
@settings(max_examples=60)
@given(batches(), st.integers(1, 3), parts, st.booleans(), st.booleans())
def test_a_jumping_window_chooses_where_a_step_ends(
    axis: str, batch: list[Offered], k: int, part: Any, leave: bool, wait: bool
) -> None:
    window = {"name": "jumping", "wait": wait, **STEPS[axis]}
    window["delivered"] = "leave" if leave else "keep"
    cohort = diverse_cohort(k=k, window=window, diversify=part)
    choose = choice_of(cohort.policy.diversify)
    across, along = ("time", "matching") if axis == "mixed" else (axis, axis)
    length, step = (12, 5) if axis == "published" else (5, 2)
    kind: Any = {"across": across, "length": length, "leave": leave, "axis": along, "step": step}
    assert run(cohort, batch) == deliveries(lambda: Jumps(choose, k, wait, **kind), batch, end=True)


def test_a_period_is_chosen_from_as_a_whole() -> None:
    """Slots 6 and 12 are alike, so the second place goes to slot 7, which is farther."""
    batch = [(0, 6, 0.75), (0, 7, 0.25), (0, 12, 0.75), (0, 17, 0.5)]
    window = {"name": "periodic", "length": "4us"}
    assert run(diverse_cohort(k=2, window=window), batch) == [
        Sent(3, 0, 7, 1007, 1, 0, 4, 3, 1, 4),
        Sent(3, 0, 12, 1012, 2, 0, 4, 3, 2, 4),
        Sent(-1, 0, 17, 1017, 1, 4, 8, 1, 3, 8),
    ]


def test_new_ends_are_reported_once() -> None:
    cohort, output = diverse_cohort(window={"name": "periodic", "length": "3us"}), output_of(9)
    offers = offers_of([(0, 4, 0.5), (0, 5, 0.5), (1, 13, 0.5), (0, 14, 0.5)])
    offer_diverse_periodic(cohort.windows, output, offers, None)
    assert output.ends[: output.progress[ENDS]].tolist() == [[0, 3], [1, 6], [0, 6]]
    advance_diverse(cohort.windows, output_of(9), np.array([0, 1], np.int32), Moment(6, 99), None)
    assert cohort.head[:2, [END, HELD]].tolist() == [[NEVER, 0], [NEVER, 0]]


@pytest.mark.parametrize("window", ["periodic", "jumping"])
@settings(max_examples=30)
@given(batch=batches(max_size=24), room=st.integers(9, 12), part=parts)
def test_a_full_output_stops_before_the_offer_that_needs_room(
    window: str, batch: list[Offered], room: int, part: Any
) -> None:
    options: Any = {"name": window, "length": 6, **({"step": 2} if window == "jumping" else {})}
    whole = diverse_cohort(window=options, diversify=part)
    pieces = diverse_cohort(window=options, diversify=part)
    assert run(whole, batch) == run(pieces, batch, room)
    assert (whole.head[:, [SEEN, END]] == pieces.head[:, [SEEN, END]]).all()


def test_an_advance_without_room_changes_nothing() -> None:
    cohort, output = diverse_cohort(window={"name": "periodic", "length": "3us"}), output_of(1)
    offers = offers_of([(0, 4, 0.5), (0, 5, 0.5)])
    run_all(lambda out: offer_diverse_periodic(cohort.windows, out, offers, None), 2, room=9)
    advance_diverse(cohort.windows, output, np.array([1, 0], np.int32), LAST, None)
    assert output.progress[[NEXT, OUT]].tolist() == [1, 0]
    assert cohort.head[0, END] == 3


def test_delivered_matches_that_leave_make_room_at_the_next_step() -> None:
    window = {"name": "jumping", "length": "10us", "step": "2us", "delivered": "leave"}
    sent = run(diverse_cohort(k=1, window=window), [(0, 4, 0.75), (0, 5, 0.5)])
    assert [(delivery.event, delivery.decided) for delivery in sent] == [(4, 2), (5, 4)]
