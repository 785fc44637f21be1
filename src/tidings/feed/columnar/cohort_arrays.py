"""Shared parts of cohorts in arrays: the offers they take, running a kernel, and its output."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int32s, Int64s
from tidings.errors import TidingsError, described
from tidings.feed.columnar.deliveries import CohortDeliveries
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.layout import Output
from tidings.feed.protocol import Offer
from tidings.model.records import Event
from tidings.rank.matches import Matches

_LARGEST_BUFFER: Final = 1 << 16


class WrittenRows(NamedTuple):
    """Deliveries as kernels write them: integer columns, ranks, and scores without decay."""

    columns: Int64s
    ranks: Float64s
    scores: Float64s

    @classmethod
    def joined(cls, parts: Sequence["WrittenRows"]) -> "WrittenRows":
        """Return all rows, part by part."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def where(self, mask: Bools) -> "WrittenRows":
        """Return the rows that a mask keeps."""
        return WrittenRows(self.columns[mask], self.ranks[mask], self.scores[mask])


class FailedRow(NamedTuple):
    """The offer at which a window could not go on, and why."""

    offer: int
    reason: str


class CohortOutput(NamedTuple):
    """The deliveries of a cohort and the ends it has set, as the kernels write them.

    `failed` maps the rows whose windows could not go on to the reason; they are empty again.
    """

    rows: WrittenRows
    ends: Int64s
    failed: dict[int, str]

    def deliveries(self, subscribers: Int32s, window: str) -> CohortDeliveries:
        """Return the deliveries with the numbers of the subscribers, which are given by row."""
        rows = self.rows
        numbers = subscribers[rows.columns[:, layout.ROW]].astype(np.int64)
        return CohortDeliveries(numbers, rows.columns, rows.ranks, rows.scores, window)


class DeliveryBuffer:
    """The buffer that kernels write deliveries to; cohorts can share one."""

    def __init__(self) -> None:
        self.columns = np.zeros((256, layout.DELIVERY_WIDTH), np.int64)
        self.ranks, self.scores = np.zeros(256), np.zeros(256)

    def copy(self, count: int) -> WrittenRows:
        """Return copies of the first `count` deliveries."""
        if not count:  # as for most offers; nothing is written to what is empty
            return WrittenRows(self.columns[:0], self.ranks[:0], self.scores[:0])
        return WrittenRows(
            self.columns[:count].copy(), self.ranks[:count].copy(), self.scores[:count].copy()
        )

    def make_room(self, used: int, least: int) -> None:
        """Grow to `least`, and also, up to a limit, if more than half was used."""
        size = len(self.ranks)
        if size < least or (2 * used > size and size < _LARGEST_BUFFER):
            size = max(2 * size, least)
            columns = np.zeros((size, layout.DELIVERY_WIDTH), np.int64)
            ranks, scores = np.zeros(size), np.zeros(size)
            self.columns, self.ranks, self.scores = columns, ranks, scores


class ArrayCohort(Protocol):
    """Windows in arrays that a kernel fills: a row may need more room, or be emptied."""

    def make_room(self, row: int, used: int) -> None: ...
    def reset(self, row: int) -> None: ...


def run_kernel(
    buffer: DeliveryBuffer, rows: Int32s, run: Callable[[Output], None], cohort: ArrayCohort
) -> CohortOutput:
    """Run a kernel to its end; where it stops at a row because a buffer is full, make room.

    A row that cannot have more room is emptied and delivers nothing; the others go on.
    """
    ends, progress = np.empty((len(rows), 2), np.int64), np.zeros(3, np.int64)
    parts, failed = list[WrittenRows](), dict[int, FailedRow]()
    while True:
        run(Output(buffer.columns, buffer.ranks, buffer.scores, ends, progress))
        used, stopped = int(progress[layout.OUT]), int(progress[layout.NEXT])
        parts.append(buffer.copy(used))
        if stopped >= len(rows):
            break
        progress[layout.OUT] = 0
        row = int(rows[stopped])
        try:
            cohort.make_room(row, used)
        except (MemoryError, TidingsError) as error:
            cohort.reset(row)
            failed.setdefault(row, FailedRow(stopped, described(error)))
            progress[layout.NEXT] += 1
    written = WrittenRows.joined(parts)
    for row, failure in failed.items():
        cohort.reset(row)
        columns = written.columns
        written = written.where(
            (columns[:, layout.ROW] != row) | (columns[:, layout.ORDER] < failure.offer)
        )
    reasons = {row: failure.reason for row, failure in failed.items()}
    return CohortOutput(written, ends[: progress[layout.ENDS]], reasons)


def take_last(free: list[int], count: int) -> Int32s:
    """Remove and return the last `count` numbers, the last one first."""
    first = len(free) - count
    last = np.array(free[first:][::-1], np.int32)
    del free[first:]
    return last


# Matches as feeds take them: columns, so that thousands of one event need no object each.


class OfferedEvents(NamedTuple):
    """Matches in order of publication, and the place of each event in the stream."""

    matches: Matches
    slots: Int32s
    """By event: its slot in the event table of the feeds."""
    sequences: Int64s
    """By event: the number of publications up to and including it."""


class OfferRows(NamedTuple):
    """One row per match, as cohorts take them."""

    subscribers: Int32s
    slots: Int32s
    ranks: Float64s
    sequences: Int64s


def read_offers(
    offers: Sequence[Offer], subscriber: Callable[[str], int], slot: Callable[[Event], int]
) -> OfferRows:
    """Return offers as rows."""
    return OfferRows(
        np.array([subscriber(match.subscriber) for match, _ in offers], np.int32),
        np.array([slot(match.event) for match, _ in offers], np.int32),
        np.array([match.score for match, _ in offers], np.float64),
        np.array([now.sequence for _, now in offers], np.int64),
    )
