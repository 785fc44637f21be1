"""What cohorts share: kernels run to their end, and buffers and pools grow."""

import numpy as np

from tidings.errors import TidingsError
from tidings.feed.columnar.cohort_arrays import (
    DeliveryBuffer,
    read_offers,
    run_kernel,
    take_last,
)
from tidings.feed.columnar.kernels import layout
from tidings.model.records import Event, Match
from tidings.window import Moment


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
    assert output.rows.columns[:, [layout.ORDER, layout.ROW]].tolist() == [
        [order, row] for order, row in enumerate(kernel.rows)
    ]
    assert output.rows.ranks.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert kernel.asked == [2, 2]
    assert output.failed == {}


def test_a_row_without_room_is_emptied_and_the_others_go_on():
    kernel = Kernel([5, 6, 7, 5], refused=(6,))
    output = run_kernel(DeliveryBuffer(), np.array(kernel.rows, np.int32), kernel, kernel)
    assert output.rows.columns[:, layout.ORDER].tolist() == [0, 2, 3]
    assert list(output.failed) == [6]
    assert "too large" in output.failed[6]
    assert set(kernel.reset_rows) == {6}


def test_no_offers_run_no_kernel():
    kernel = Kernel([])
    output = run_kernel(DeliveryBuffer(), np.zeros(0, np.int32), kernel, kernel)
    assert len(output.rows.columns) == len(output.rows.ranks) == len(output.ends) == 0


def test_a_buffer_grows_to_the_least_and_when_more_than_half_is_used():
    buffer = DeliveryBuffer()
    buffer.make_room(used=128, least=10)
    assert len(buffer.ranks) == 256
    buffer.make_room(used=129, least=10)
    assert len(buffer.ranks) == len(buffer.columns) == 512
    buffer.make_room(used=0, least=5000)
    assert len(buffer.ranks) == 5000
    copied = buffer.copy(3)
    copied.columns[:], copied.ranks[:], copied.scores[:] = 7, 7, 7
    assert not buffer.columns[:3].any()
    assert not buffer.ranks[:3].any()
    assert not buffer.scores[:3].any()


def test_the_last_numbers_are_taken_backwards():
    free = [1, 2, 3, 4]
    assert take_last(free, 3).tolist() == [4, 3, 2]
    assert free == [1]


SUBSCRIBERS = {"ada": 4, "bob": 7}
SLOTS = {"e": 2, "f": 0}


def read(*offers: tuple[Match, Moment]):
    return read_offers(offers, SUBSCRIBERS.__getitem__, lambda event: SLOTS[event.id])


def offer(subscriber: str, event: str, score: float, sequence: int, *matched: str):
    return Match(subscriber, Event(event, {}, 0), score, matched), Moment(9, sequence)


def test_every_offer_is_a_row():
    rows = read(
        offer("bob", "e", 0.5, 3, "s", "t"),
        offer("ada", "e", 0.25, 3),
        offer("bob", "f", 1.0, 8, "t"),
    )
    assert rows.subscribers.tolist() == [7, 4, 7]
    assert rows.slots.tolist() == [2, 2, 0]
    assert rows.ranks.tolist() == [0.5, 0.25, 1.0]
    assert rows.sequences.tolist() == [3, 3, 8]


def test_rows_have_the_types_that_kernels_take():
    for rows in (read(), read(offer("ada", "e", 1, 1, "s"))):
        kinds = [column.dtype for column in rows]
        assert kinds == [np.int32, np.int32, np.float64, np.int64]
