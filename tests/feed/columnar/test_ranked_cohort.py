"""Ranked cohorts: rows that come and go, pools that grow, and kernels that run to their end."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, offers_of
from tests.feed.columnar.kernels.windows import event_table

from tidings.errors import TidingsError
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.layout import END, NEVER, RING_CLASS, SEEN, SIZE, SLAB_CLASS
from tidings.feed.columnar.ranked_cohort import (
    CohortOutput,
    DeliveryBuffer,
    RankedCohort,
    concatenated_ranges,
    lengthened,
    run_kernel,
    take_last,
)
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
    return np.column_stack([output.columns, output.ranks]).tolist()


class Kernel:
    """A stand-in for a kernel: it delivers one row per offer while there is room."""

    def __init__(self, rows: list[int], refused: tuple[int, ...] = ()) -> None:
        self.rows, self.refused, self.room = rows, refused, 2
        self.reset_rows, self.asked = list[int](), list[int]()

    def __call__(self, output: layout.Output) -> None:
        while output.progress[layout.NEXT] < len(self.rows):
            order, index = int(output.progress[layout.NEXT]), int(output.progress[layout.OUT])
            if index == self.room or self.rows[order] in self.refused:
                return
            output.columns[index, [layout.ORDER, layout.ROW]] = order, self.rows[order]
            output.ranks[index] = order / 10
            output.progress[[layout.NEXT, layout.OUT]] += 1

    def make_room(self, row: int, used: int) -> None:
        self.asked.append(used)
        if row in self.refused and used == 0:
            raise TidingsError("too large")

    def reset(self, row: int) -> None:
        self.reset_rows.append(row)


def test_a_kernel_runs_to_its_end_however_often_it_stops():
    kernel = Kernel([5, 6, 5, 6, 5])
    output = run_kernel(DeliveryBuffer(), np.array(kernel.rows, np.int32), kernel, kernel)
    assert output.columns[:, [layout.ORDER, layout.ROW]].tolist() == [
        [order, row] for order, row in enumerate(kernel.rows)
    ]
    assert output.ranks.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert kernel.asked == [2, 2]
    assert output.failed == {}


def test_a_row_without_room_is_emptied_and_the_others_go_on():
    kernel = Kernel([5, 6, 7, 5], refused=(6,))
    output = run_kernel(DeliveryBuffer(), np.array(kernel.rows, np.int32), kernel, kernel)
    assert output.columns[:, layout.ORDER].tolist() == [0, 2, 3]
    assert list(output.failed) == [6]
    assert "too large" in output.failed[6]
    assert set(kernel.reset_rows) == {6}


def test_no_offers_run_no_kernel():
    kernel = Kernel([])
    output = run_kernel(DeliveryBuffer(), np.zeros(0, np.int32), kernel, kernel)
    assert len(output.columns) == len(output.ranks) == len(output.ends) == 0


def test_a_buffer_grows_to_the_least_and_when_more_than_half_is_used():
    buffer = DeliveryBuffer()
    buffer.make_room(used=128, least=10)
    assert len(buffer.ranks) == 256
    buffer.make_room(used=129, least=10)
    assert len(buffer.ranks) == len(buffer.columns) == 512
    buffer.make_room(used=0, least=5000)
    assert len(buffer.ranks) == 5000
    columns, ranks, scores = buffer.copy(3)
    columns[:], ranks[:], scores[:] = 7, 7, 7
    assert not buffer.columns[:3].any()
    assert not buffer.ranks[:3].any()
    assert not buffer.scores[:3].any()


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
    assert twin.open_ends().tolist() == cohort.open_ends().tolist()
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
    made = cohort.deliveries(cohort.offer(offers_of([(1, 4, 0.5), (0, 5, 0.5)])))
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
    assert cohort.open_ends().tolist() == [[0, 6], [2, 3]]


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


def test_small_helpers():
    assert concatenated_ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [
        5,
        6,
        9,
        10,
        11,
    ]
    free = [1, 2, 3, 4]
    assert take_last(free, 3).tolist() == [4, 3, 2]
    assert free == [1]
    assert lengthened(np.array([[1, 2]]), 3).tolist() == [[1, 2], [0, 0], [0, 0]]
