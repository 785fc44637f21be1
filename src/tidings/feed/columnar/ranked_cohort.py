"""All subscribers with an equal policy: one set of arrays, and one kernel that drives them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.errors import TidingsError, described
from tidings.feed.columnar import policy_codes as plans
from tidings.feed.columnar.delivery_batch import Part
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.kernels.compaction import (
    copy_sets,
    free_row,
    mark_slots,
    pack_lists,
    pack_rings,
)
from tidings.feed.columnar.kernels.decay import keys_many
from tidings.feed.columnar.kernels.history import better_many
from tidings.feed.columnar.kernels.periodic import advance_many, offer_many_in_periods
from tidings.feed.columnar.kernels.sliding import slide_many
from tidings.policy import Policy

KERNELS: Final[dict[int, Callable[..., None]]] = {
    at.SLIDING: slide_many,
    at.CONTINUOUS: slide_many,
    at.BEST: slide_many,
    at.PERIODIC: offer_many_in_periods,
    at.JUMPING: offer_many_in_periods,
    at.HISTORY: better_many,
}
_FIRST: Final = 16
_LARGEST: Final = 1 << 16


class Found(NamedTuple):
    """What a cohort delivers: the columns of `window_layout`, the ranks, and the ends it set.

    `failed` holds the rows whose windows could not go on, and why; they are empty again.
    """

    columns: Int64s
    ranks: Float64s
    ends: Int64s
    failed: dict[int, str]


class Sink:
    """Where the kernels write deliveries; all cohorts share one."""

    def __init__(self) -> None:
        self.columns = np.zeros((256, at.OUT_WIDTH), np.int64)
        self.ranks = np.zeros(256, np.float64)

    def take(self, count: int) -> tuple[Int64s, Float64s]:
        """Give the first deliveries away, so that there is room again."""
        return self.columns[:count].copy(), self.ranks[:count].copy()

    def make_room(self, used: int, least: int) -> None:
        """Be larger if much was used, up to a limit, or if the least that is needed is more."""
        size = len(self.ranks)
        if size < least or (2 * used > size and size < _LARGEST):
            size = max(2 * size, least)
            columns, ranks = np.zeros((size, at.OUT_WIDTH), np.int64), np.zeros(size, np.float64)
            self.columns, self.ranks = columns, ranks


class Growing(Protocol):
    """Windows that a kernel drives: some row may need more room, or be emptied."""

    def make_room(self, row: int, used: int) -> None: ...
    def reset(self, row: int) -> None: ...


def drive(sink: Sink, rows: Int32s, run: Callable[..., None], windows: Growing) -> Found:
    """Run a kernel to its end; where it stops for want of room at a row, make room.

    A row that cannot have more is emptied and goes on delivering nothing, and the others go on.
    """
    ends, progress = np.empty((len(rows), 2), np.int64), np.zeros(3, np.int64)
    parts, failed = [sink.take(0)], dict[int, tuple[int, str]]()
    while progress[at.NEXT] < len(rows):
        run((sink.columns, sink.ranks, ends, progress))
        used = int(progress[at.OUT])
        parts.append(sink.take(used))
        progress[at.OUT] = 0
        if progress[at.NEXT] < len(rows):
            row = int(rows[progress[at.NEXT]])
            try:
                windows.make_room(row, used)
            except (MemoryError, TidingsError) as error:
                windows.reset(row)
                failed.setdefault(row, (int(progress[at.NEXT]), described(error)))
                progress[at.NEXT] += 1
    columns, ranks = (np.concatenate(each) for each in zip(*parts, strict=True))
    for row, (place, _) in failed.items():
        windows.reset(row)
        kept = (columns[:, at.ROW] != row) | (columns[:, at.AT] < place)
        columns, ranks = columns[kept], ranks[kept]
    whys = {row: why for row, (_, why) in failed.items()}
    return Found(columns, ranks, ends[: progress[at.ENDS]], whys)


class Cohort:
    """Windows of one policy without diversity, in arrays."""

    def __init__(self, policy: Policy, sink: Sink) -> None:
        self.policy = policy
        self._sink = sink
        self.plan = plans.numbers(policy)
        self.decay, self._scratch = plans.decay(policy), plans.scratch(_FIRST)
        self.rings = plans.has_ring(self.plan)
        self.waits_for = plans.waits_for(self.plan)
        self.head = np.zeros((0, at.HEAD_WIDTH), np.int64)
        self.numbers = np.zeros(0, np.int32)
        self.key = np.zeros(_FIRST, np.float64)
        self.score = self.key if self.decay[0] == 0 else np.zeros(_FIRST, np.float64)
        self.who = np.zeros((_FIRST, 3), np.int32)
        self.ring = np.zeros(_FIRST if self.rings else 0, np.int32)
        self.room = plans.room(self.plan)
        self.used = np.zeros(3, np.int64)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.head) - len(self._free)

    @property
    def book(self) -> tuple[Any, ...]:
        """The arrays as the kernels take them."""
        return (self.head, self.key, self.score, self.who, self.ring, self.room, self.used)

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays hold."""
        unique = {id(each): each.nbytes for each in (*self.book, self.numbers)}
        return sum(unique.values())

    def enrol(self, number: int, _: str) -> int:
        """Give the row of a new, empty window for a subscriber's number."""
        self._find_rows(1)
        row = self._free.pop()
        self.numbers[row] = number
        return row

    def enrol_many(self, numbers: Int64s, _: Sequence[str]) -> Int32s:
        """Give the rows of new, empty windows."""
        self._find_rows(len(numbers))
        rows = taken(self._free, len(numbers))
        self.numbers[rows] = numbers
        return rows

    def drop(self, row: int) -> None:
        """Give a row back."""
        self.reset(row)
        self._free.append(row)

    def reset(self, row: int) -> None:
        """Empty the window of a row."""
        free_row(self.book, row)
        self._clear(slice(row, row + 1))
        if len(self) == 1:
            self.used[at.DISORDER] = 0

    def _find_rows(self, wanted: int) -> None:
        """See that rows are free. The head, which says how many rows there are, grows last."""
        if len(self._free) >= wanted:
            return
        old = len(self.head)
        size = old + max(wanted, _FIRST, old // 4)
        more = range(size - 1, old - 1, -1)
        self.numbers = longer(self.numbers, size)
        self.head = longer(self.head, size)
        self._clear(slice(old, size))
        self._free += more

    def _clear(self, rows: slice) -> None:
        self.head[rows] = 0
        self.head[rows, [at.LIST_CLASS, at.RING_CLASS]] = -1
        self.head[rows, at.END] = at.NEVER

    def offer(self, events: EventTable, offers: tuple[Any, ...]) -> Found:
        """Offer matches, as rows, slots, scores, handles and numbers of the stream."""
        run = KERNELS[int(self.plan[at.WINDOW])]
        return self._drive(events, offers[0], lambda world, sink: run(world, sink, offers))

    def advance(self, events: EventTable, rows: Int32s, us: int, sequence: int) -> Found:
        """Say to some rows that the stream has come to a moment."""
        return self._drive(
            events, rows, lambda world, sink: advance_many(world, sink, rows, us, sequence)
        )

    def open_ends(self) -> Int64s:
        """Give the rows that wait for an end, and that end."""
        rows = np.flatnonzero(self.head[:, at.END] != at.NEVER)
        return np.stack([rows, self.head[rows, at.END]], axis=1)

    def fill(
        self, events: EventTable, counters: list[int], state: dict[str, Any], handles: Int32s
    ) -> None:
        """Take over the state of all rows, enrolled in its order and still empty."""
        rows = np.arange(len(state["head"]))
        self.head[rows[:, None], counters] = state["head"]
        self.used[at.DISORDER] = state["disorder"].max()
        self._seat(rows, at.LIST_CAP, (at.LIST, at.LIST_CLASS, at.SIZE), at.LIST_USED)
        self._lengthen(("key", "score", "who"), int(self.used[at.LIST_USED]))
        places = self.entries(rows)
        self.who[places] = np.stack([state["slot"], handles, state["mark"]], axis=1)
        self.score[places] = state["score"]
        keys = np.empty(len(places), np.float64)
        keys_many(self.decay, state["score"].copy(), events.us[state["slot"]], keys)
        self.key[places] = keys
        if self.rings:
            self._seat(rows, at.RING_CAP, (at.RING, at.RING_CLASS, at.HELD), at.RING_USED)
            self._lengthen(("ring",), int(self.used[at.RING_USED]))
            self.ring[self.cells(rows)] = state["ring"]

    def _seat(self, rows: Int64s, cap: int, columns: tuple[int, int, int], used: int) -> None:
        """Give rows slabs of the smallest classes that hold what they have."""
        start, grade, size = columns
        caps = self.room[self.room[:, cap] > 0, cap]
        wanted = self.head[rows, size]
        grades = np.where(wanted > 0, np.searchsorted(caps, wanted), -1)
        slabs = np.where(wanted > 0, caps[grades], 0)
        self.head[rows, grade] = grades
        self.head[rows, start] = np.cumsum(slabs) - slabs
        self.used[used] = slabs.sum()

    def part(self, found: Found) -> Part:
        """Give what was found with the numbers of the subscribers."""
        numbers = self.numbers[found.columns[:, at.ROW]].astype(np.int64)
        return Part(numbers, found.columns, found.ranks, self.policy.window.name)

    def entries(self, rows: Int64s) -> Int64s:
        """Give where in the pools the entries of some rows lie, best first."""
        head = self.head[rows]
        return spread(head[:, at.LIST] + head[:, at.FIRST], head[:, at.SIZE])

    def cells(self, rows: Int64s) -> Int64s:
        """Give where in the pool the rings of some rows lie, oldest first."""
        head = self.head[rows]
        held = head[:, at.HELD]
        caps = np.repeat(self.room[head[:, at.RING_CLASS], at.RING_CAP], held)
        within = spread(head[:, at.FRONT], held) % caps
        return np.asarray(np.repeat(head[:, at.RING], held) + within)

    def mark(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        mark_slots(self.book, self.rings, alive)

    def handles(self) -> Int32s:
        """Give the handles of all entries."""
        found: Int32s = self.who[self.entries(np.arange(len(self.head))), at.MATCHED]
        return found

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use."""
        return int(copy_sets(self.book, old, new, used))

    def _drive(self, events: EventTable, rows: Int32s, run: Callable[..., None]) -> Found:
        """Run a kernel to its end."""
        tables = (events.us, events.sequence, events.tie)

        def plan() -> tuple[Any, ...]:
            return (self.plan, self.decay, self._scratch)

        return drive(self._sink, rows, lambda sink: run((self.book, tables, plan()), sink), self)

    def make_room(self, row: int, used: int) -> None:
        """See to it that the kernel can take at least one step from this row on."""
        size = int(self.head[row, at.SIZE])
        self._sink.make_room(used, size + 1)
        if self.plan[at.WINDOW] == at.HISTORY and len(self._scratch) <= PARTS + size:
            self._scratch = plans.scratch(size + size // 4)
        last = len(self.room) - 1
        wanted = int(self.room[min(self.head[row, at.LIST_CLASS] + 1, last), at.LIST_CAP])
        if self.used[at.LIST_USED] + wanted > len(self.who):
            pack_lists(self.book, np.argsort(self.head[:, at.LIST], kind="stable"))
            self._lengthen(("key", "score", "who"), int(self.used[at.LIST_USED]) + wanted)
        wanted = int(self.room[min(self.head[row, at.RING_CLASS] + 1, last), at.RING_CAP])
        if self.rings and self.used[at.RING_USED] + wanted > len(self.ring):
            pack_rings(self.book, np.argsort(self.head[:, at.RING], kind="stable"))
            self._lengthen(("ring",), int(self.used[at.RING_USED]) + wanted)

    def _lengthen(self, names: tuple[str, ...], least: int) -> None:
        """Let pools have an eighth more than the least that they need."""
        size = least + least // 8
        for name in names:
            if size > len(getattr(self, name)):
                setattr(self, name, longer(getattr(self, name), size))


def longer(pool: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Give the pool with more room behind; in place where the system can do that."""
    pool.resize((size, *pool.shape[1:]), refcheck=False)
    return pool


def taken(free: list[int], count: int) -> Int32s:
    """Take so many numbers from the end of those that are free."""
    first = len(free) - count
    found = np.array(free[first:][::-1], np.int32)
    del free[first:]
    return found


def spread(starts: Int64s, sizes: Int64s) -> Int64s:
    """Give all places of runs that start here and are so long, one run after the other."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
