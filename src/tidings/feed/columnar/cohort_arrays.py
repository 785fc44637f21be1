"""What the cohorts in arrays share: running a kernel, its output, and pools cut into slabs."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.errors import TidingsError, described
from tidings.feed.columnar.delivery_batch import CohortDeliveries
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.layout import Output

_SMALL_POOL: Final = 1 << 12
"""The most cells by which a pool grows to twice its size."""
_LARGEST_BUFFER: Final = 1 << 16


class CohortOutput(NamedTuple):
    """The deliveries of a cohort and the ends it has set, as the kernels write them.

    `failed` maps the rows whose windows could not go on to the reason; they are empty again.
    """

    columns: Int64s
    ranks: Float64s
    scores: Float64s
    ends: Int64s
    failed: dict[int, str]

    def deliveries(self, subscribers: Int32s, window: str) -> CohortDeliveries:
        """Return the deliveries with the numbers of the subscribers, which are given by row."""
        numbers = subscribers[self.columns[:, layout.ROW]].astype(np.int64)
        return CohortDeliveries(numbers, self.columns, self.ranks, self.scores, window)


class DeliveryBuffer:
    """The buffer that kernels write deliveries to; cohorts can share one."""

    def __init__(self) -> None:
        self.columns = np.zeros((256, layout.DELIVERY_WIDTH), np.int64)
        self.ranks, self.scores = np.zeros(256), np.zeros(256)

    def copy(self, count: int) -> tuple[Int64s, Float64s, Float64s]:
        """Return copies of the first `count` deliveries."""
        if not count:  # as for most offers; nothing is written to what is empty
            return self.columns[:0], self.ranks[:0], self.scores[:0]
        return (
            self.columns[:count].copy(),
            self.ranks[:count].copy(),
            self.scores[:count].copy(),
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
    parts, failed = list[tuple[Int64s, Float64s, Float64s]](), dict[int, tuple[int, str]]()
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
            failed.setdefault(row, (stopped, described(error)))
            progress[layout.NEXT] += 1
    columns, ranks, scores = parts[0]
    if len(parts) > 1:
        columns, ranks, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    for row, (offer, _) in failed.items():
        cohort.reset(row)
        before = (columns[:, layout.ROW] != row) | (columns[:, layout.ORDER] < offer)
        columns, ranks, scores = columns[before], ranks[before], scores[before]
    reasons = {row: reason for row, (_, reason) in failed.items()}
    return CohortOutput(columns, ranks, scores, ends[: progress[layout.ENDS]], reasons)


class SlabMoves(NamedTuple):
    """Where slabs lie, where they go, and their cells, in the order in which they lie."""

    source: Int64s
    target: Int64s
    length: Int64s


def packed_slabs(
    slabs: layout.Slabs, heads: AnyArray, owners: Int64s, columns: tuple[int, int], first: int = 0
) -> SlabMoves:
    """Assign the slabs of some heads to places without gaps from a cell on; the caller moves them.

    `columns` of the heads are the start and the class of a slab.
    """
    start, slab_class = columns
    owners = owners[np.argsort(heads[owners, start], kind="stable")]
    length = slabs.capacity[heads[owners, slab_class]]
    moves = SlabMoves(
        heads[owners, start].astype(np.int64), first + np.cumsum(length) - length, length
    )
    heads[owners, start] = moves.target
    slabs.used[0], slabs.free[:] = first + length.sum(), -1
    return moves


def pool_size(least: int) -> int:
    """Return how long to make a pool: an eighth more than it needs, or twice that if it is small.

    A small pool that grew by eighths would be compacted a hundred times on its way.
    """
    return least + max(least // 8, min(least, _SMALL_POOL))


def lengthened(pool: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the pool with zeros behind; in place where the system can do that."""
    pool.resize((size, *pool.shape[1:]), refcheck=False)
    return pool


def take_last(free: list[int], count: int) -> Int32s:
    """Remove and return the last `count` numbers, the last one first."""
    first = len(free) - count
    last = np.array(free[first:][::-1], np.int32)
    del free[first:]
    return last


def concatenated_ranges(starts: Int64s, sizes: Int64s) -> Int64s:
    """Return range(start, start + size) for each pair, one after the other."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
