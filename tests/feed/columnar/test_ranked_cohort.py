"""Ranked cohorts: rows that come and go, and pools that grow."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, offers_of
from tests.feed.columnar.kernels.windows import event_table

from tidings.feed.columnar.cohort_arrays import CohortOutput, DeliveryBuffer
from tidings.feed.columnar.kernels.layout import END, NEVER, RING_CLASS, SEEN, SIZE, SLAB_CLASS
from tidings.feed.columnar.period_ends import open_ends
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.policy import Policy
from tidings.window import Moment

WINDOWS: list[Any] = [
    {"name": "sliding", "length": 4},
    {"name": "sliding", "length": "3us", "delivered": "leave"},
    {"name": "continuous"},
    {"name": "periodic", "length": "3us"},
    {"name": "jumping", "length": "4us", "step": "3us"},
    {"name": "history", "length": 5},
]
every_window = pytest.mark.parametrize("window", WINDOWS, ids=str)


def cohort_of(window: Any, rows: int = 2) -> RankedCohort:
    """Return a cohort whose pools are as small as a new one's."""
    cohort = RankedCohort(Policy(k=2, window=window), DeliveryBuffer(), event_table())
    cohort.enrol_many(np.arange(rows) + 100, [f"u{row}" for row in range(rows)])
    return cohort


def rows_of(output: CohortOutput) -> Any:
    return np.column_stack([output.rows.columns, output.rows.ranks]).tolist()


def test_rows_are_reused_after_they_are_dropped():
    cohort = cohort_of(WINDOWS[0], rows=3)
    cohort.offer(offers_of([(1, 4, 0.5), (1, 5, 0.75)]))
    assert len(cohort) == 3
    cohort.drop(1)
    assert len(cohort) == 2
    assert cohort.enrol(9, "new") == 1
    assert cohort.subscriber[1] == 9
    assert cohort.head[1, [SEEN, SIZE, SLAB_CLASS, RING_CLASS, END]].tolist() == [
        0,
        0,
        -1,
        -1,
        NEVER,
    ]


def test_many_rows_are_enrolled_in_their_order():
    cohort = cohort_of(WINDOWS[0], rows=0)
    rows = cohort.enrol_many(np.arange(40) + 7, [""] * 40)
    assert rows.tolist() == list(range(40))
    assert cohort.subscriber[rows].tolist() == list(range(7, 47))


@every_window
@settings(max_examples=30)
@given(batch=batches(rows=2, max_size=24), cut=st.integers(0, 24))
def test_any_split_into_batches_delivers_the_same(
    window: Any, batch: list[Offered], cut: int
) -> None:
    whole, pieces = cohort_of(window), cohort_of(window)
    expected = rows_of(whole.offer(offers_of(batch)))
    first = rows_of(pieces.offer(offers_of(batch[:cut])))
    second = rows_of(pieces.offer(offers_of(batch[cut:])))
    shift = len(batch[:cut])
    assert first + [[row[0] + shift, *row[1:]] for row in second] == expected


@every_window
@settings(max_examples=30)
@given(batch=batches(rows=2, max_size=24), cut=st.integers(0, 24))
def test_a_restored_cohort_goes_on_alike(window: Any, batch: list[Offered], cut: int) -> None:
    cohort, twin, rows = cohort_of(window), cohort_of(window), np.arange(2)
    cohort.offer(offers_of(batch[:cut]))
    state = cohort.columns(rows)
    twin.fill({name: column.copy() for name, column in state.items()}, state["handle"])
    assert open_ends(twin.head).tolist() == open_ends(cohort.head).tolist()
    assert sorted(twin.handles().tolist()) == sorted(cohort.handles().tolist())
    for name, column in twin.columns(rows).items():
        assert column.tolist() == state[name].tolist(), name
    later = offers_of(batch[cut:])
    assert rows_of(twin.offer(later)) == rows_of(cohort.offer(later))
    last = (np.arange(2, dtype=np.int32), Moment(40, 80))
    if window["name"] in ("periodic", "jumping"):
        assert rows_of(twin.advance(*last)) == rows_of(cohort.advance(*last))


def test_deliveries_have_the_numbers_of_their_subscribers():
    cohort = cohort_of(WINDOWS[0])
    output = cohort.offer(offers_of([(1, 4, 0.5), (0, 5, 0.5)]))
    made = output.deliveries(cohort.subscriber, "sliding")
    assert made.subscriber.tolist() == [101, 100]
    assert made.window == "sliding"


def test_only_slots_of_held_events_are_marked():
    cohort = cohort_of({"name": "sliding", "length": 2})
    cohort.offer(offers_of([(0, 4, 0.75), (0, 5, 0.5), (0, 6, 0.25), (1, 7, 0.5)]))
    alive = np.zeros(64, np.int32)
    cohort.mark_slots(alive)
    assert np.flatnonzero(alive).tolist() == [5, 6, 7]


@pytest.mark.parametrize("window", [{"name": "periodic", "length": "3us"}])
def test_open_ends_are_listed_by_row(window):
    cohort = cohort_of(window, rows=3)
    output = cohort.offer(offers_of([(2, 4, 0.5), (0, 13, 0.5)]))
    assert output.ends.tolist() == [[2, 3], [0, 6]]
    assert open_ends(cohort.head).tolist() == [[0, 6], [2, 3]]


def test_bytes_are_counted_with_their_pools():
    cohort = cohort_of({"name": "sliding", "length": "1d"})
    before = cohort.nbytes
    cohort.offer(offers_of([(row % 2, row, 0.5) for row in range(1, 40)]))
    assert cohort.nbytes > before
    decayed = RankedCohort(
        Policy(k=2, window=WINDOWS[0], decay={"name": "exponential", "rate": 1}),
        DeliveryBuffer(),
        event_table(),
    )
    assert decayed.nbytes == cohort_of(WINDOWS[0], rows=0).nbytes + decayed.score.nbytes
