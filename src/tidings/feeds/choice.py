"""Cohorts whose policy diversifies, in arrays: all matches of a window, and how far apart they are.

Nothing is pruned, since a lower rank may win by its distance. What choosing needs of an event is
there once for all subscribers; distances are taken once a pair, when the second of them arrives.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.diversify import Among, Order
from tidings.diversify.protocol import Floats, Ints
from tidings.feeds import plan as plans
from tidings.feeds.cohort import Found, longer, taken
from tidings.feeds.deliveries import Part
from tidings.feeds.events import EventTable
from tidings.feeds.shelves import Shelves
from tidings.feeds.traits import Traits
from tidings.kernels import window_diverse as kernels
from tidings.kernels import window_layout as at
from tidings.policy import Policy

Ids = npt.NDArray[np.int32]

SEEN, SENT, END, HELD, GRADE, SEAT, LAST = range(7)
COUNTERS: Final = [SEEN, SENT, END, HELD]
_WIDTH: Final = 7
_FIRST: Final = 16
FAR: Final = 1 << 62
EVERYTHING: Final = (-FAR, FAR)


class Look(NamedTuple):
    """The candidates of a window, newest first, as places; and of all the oldest, newest, count."""

    row: int
    places: Ints
    oldest: int
    newest: int
    held: int


class Choice(NamedTuple):
    """What is chosen, in order of choice: places and fresh ranks."""

    places: Ints
    ranks: Floats


class Extent(NamedTuple):
    """What a window covered: from, to, how many matches; and when it was decided."""

    start: int
    stop: int
    width: int
    when: int


class DiverseCohort:
    """Windows of one policy with a diversifier, in arrays; `turns` says when they choose."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.plan, self.decay = policy, plans.numbers(policy), plans.decay(policy)
        self.k, self.axis = policy.k, int(self.plan[at.AXIS])
        self._by_bands = policy.diversify.name == "maxdivrel-lsh"
        history = self.plan[at.WINDOW] == at.HISTORY
        measured = history or not self._by_bands
        self.traits = Traits(policy.diversify, measured)
        kept = measured and self.plan[at.WINDOW] != at.PERIODIC
        self.shelves = Shelves(plans.longest(self.plan), self.traits, kept)
        self.waits_for = plans.waits_for(self.plan)
        self.head = np.zeros((0, _WIDTH), np.int64)
        self.numbers = np.zeros(0, np.int32)
        self.events = EventTable()
        self.ends: list[tuple[int, int]] = []
        self._free: list[int] = []
        self.asleep: set[int] = set()
        """Rows of windows that were filled, and not touched since."""
        self._out: list[tuple[int, ...]] = []
        self._ranks: list[float] = []
        self._found = _scratch(_FIRST)
        self._matrix = np.zeros((0, 0))

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays of the windows hold; those of events are not among them."""
        return self.head.nbytes + self.numbers.nbytes + self.shelves.nbytes

    def enrol(self, number: int, name: str) -> int:
        """Give the row of a new, empty window for a subscriber's number."""
        return int(self.enrol_many(np.array([number]), [name])[0])

    def enrol_many(self, numbers: Ints, _: Sequence[str]) -> Ids:
        """Give the rows of new, empty windows."""
        if len(self._free) < len(numbers):
            old = len(self.head)
            size = old + max(len(numbers), _FIRST, old // 4)
            self.head, self.numbers = longer(self.head, size), longer(self.numbers, size)
            self.head[old:, END] = at.NEVER
            self._free += range(size - 1, old - 1, -1)
        rows = taken(self._free, len(numbers))
        self.head[rows] = (0, 0, at.NEVER, 0, -1, -1, -1)
        self.numbers[rows] = numbers
        return rows

    def drop(self, row: int) -> None:
        """Give a row back."""
        self.empty(row)
        self.head[row, END] = at.NEVER
        self._free.append(row)

    def empty(self, row: int) -> None:
        """Let all matches of a window go."""
        grade, seat = self.head[row, GRADE : SEAT + 1].tolist()
        self.asleep.discard(row)
        if grade >= 0:
            self.shelves.give_back(grade, seat)
        self.head[row, [HELD, GRADE, SEAT, LAST]] = (0, -1, -1, -1)

    def add(self, row: int, slot: int, score: float, handle: int) -> int:
        """Add a match as the newest; give its place."""
        self._wake(row)
        head, shelves = self.head[row], self.shelves
        grade, seat = int(head[GRADE]), int(head[SEAT])
        if head[HELD] == shelves.width(grade):
            seat = shelves.move(grade, seat, grade + 1)
            grade += 1
            head[GRADE], head[SEAT], head[LAST] = grade, seat, head[HELD] - 1
        head[SEEN] += 1
        head[HELD] += 1
        match = (slot, score, handle, 2 * int(head[SEEN]))
        place = kernels.put(shelves.pools[grade], seat, int(head[LAST]), match)
        head[LAST] = place
        shelves.measure(grade, seat, place)
        return place

    def drop_below(self, row: int, low: int) -> None:
        """Drop the matches that stand below a place on the axis of the window."""
        self._wake(row)
        grade, seat = int(self.head[row, GRADE]), int(self.head[row, SEAT])
        if grade >= 0:
            events = (self.events.us, self.events.sequence)
            shelf = self.shelves.pools[grade]
            self.head[row, HELD] = kernels.drop_below(shelf, seat, events, self.axis, low)

    def remove(self, row: int, place: int) -> None:
        """Drop one match."""
        self.window(row, 3)[place] = 0
        self.head[row, HELD] -= 1

    def window(self, row: int, column: int) -> npt.NDArray[Any]:
        """Give a column of the places of a window: 0 slots, 1 handles, 2 scores, 3 born."""
        grade, seat = self.head[row, GRADE : SEAT + 1].tolist()
        column_of: npt.NDArray[Any] = self.shelves.pools[grade][column][seat]
        return column_of

    def look(self, row: int, span: tuple[int, int] = EVERYTHING) -> Look:
        """List the candidates between two places on the axis of the window."""
        self._wake(row)
        grade, seat, last = self.head[row, GRADE:].tolist()
        if grade < 0:
            return Look(row, np.empty(0, np.int64), 0, 0, 0)
        if len(self._found[0]) < self.shelves.width(grade):
            self._found = _scratch(self.shelves.width(grade))
        events = (self.events.us, self.events.sequence, self.traits.names)
        within = (self.axis, *span, bool(self.plan[at.LEAVE]))
        shelf, found = self.shelves.pools[grade], self._found
        size = kernels.gather(shelf, seat, last, events, within, found)
        return Look(row, found[0][:size], *found[5].tolist())

    def choose(self, look: Look, now_us: int) -> Choice:
        """Choose at most k of the candidates that were just listed, of which there are some."""
        size = len(look.places)
        self.rank(look, now_us)
        _, ranks, keys, times, names, _ = self._found
        order = Order(np.arange(size), times[:size], names[:size])
        apart = self._apart(look)
        chosen = self.policy.diversify.pick(ranks[:size], keys[:size], order, apart, self.k)
        return Choice(look.places[chosen], ranks[chosen])

    def rank(self, look: Look, now_us: int) -> tuple[Floats, Floats]:
        """Give the fresh ranks and the keys of the candidates that were just listed."""
        grade, seat = self.head[look.row, GRADE : SEAT + 1].tolist()
        shelf, size = self.shelves.pools[grade], len(look.places)
        kernels.rank_found(shelf, seat, self.decay, now_us, size, self._found)
        return self._found[1][:size], self._found[2][:size]

    def _apart(self, look: Look) -> Any:
        if self._by_bands:
            return self.traits.bands[self.window(look.row, 0)[look.places]]
        return self.distances(look)

    def distances(self, look: Look) -> Among:
        """Give the distances between candidates: those that are kept, or taken now."""
        grade, seat = self.head[look.row, GRADE : SEAT + 1].tolist()
        size = len(look.places)
        if not self.shelves.keeps(grade):
            matrix = self.traits.matrix(self.window(look.row, 0)[look.places])
            return Among(matrix, np.arange(size))
        if len(self._matrix) < size:
            self._matrix = np.zeros((2 * size, 2 * size))
        shelf, codes = self.shelves.pools[grade], self.shelves.codes
        kernels.spell(shelf, seat, codes, look.places, self._matrix)
        return Among(self._matrix, np.arange(size))

    def hand_out(self, place: int, row: int, choice: Choice, extent: Extent) -> None:
        """Deliver what is chosen and not delivered yet, as deliveries of an offer."""
        grade, seat = self.head[row, GRADE : SEAT + 1].tolist()
        slots, handles, _, born = (column[seat] for column in self.shelves.pools[grade][:4])
        new = ((born[choice.places] & at.DONE) == 0).nonzero()[0].tolist()
        for nth in new:
            entry = choice.places[nth]
            self.head[row, SENT] += 1
            sent = int(self.head[row, SENT])
            who = (place, row, int(slots[entry]), int(handles[entry]), nth + 1)
            self._out.append((*who, *extent[:3], sent, extent.when))
            self._ranks.append(float(choice.ranks[nth]))
        if new:
            born[choice.places] |= at.DONE

    def wait_until(self, row: int, end: int) -> None:
        """Set the end that a window waits for."""
        if end not in (self.head[row, END], at.NEVER):
            self.ends.append((row, end))
        self.head[row, END] = end

    def take(self) -> Found:
        """Give away what was delivered, and the ends that were set."""
        columns = np.array(self._out, np.int64).reshape(-1, at.OUT_WIDTH)
        ranks = np.array(self._ranks, np.float64)
        ends = np.array(self.ends, np.int64).reshape(-1, 2)
        self._out, self._ranks, self.ends = [], [], []
        return Found(columns, ranks, ends)

    def part(self, found: Found) -> Part:
        """Give what was found with the numbers of the subscribers."""
        numbers = self.numbers[found.columns[:, at.ROW]].astype(np.int64)
        return Part(numbers, found.columns, found.ranks, self.policy.window.name)

    def open_ends(self) -> Ints:
        """Give the rows that wait for an end, and that end."""
        rows = np.flatnonzero(self.head[:, END] != at.NEVER)
        return np.stack([rows, self.head[rows, END]], axis=1)

    def _wake(self, row: int) -> None:
        """Find out what choosing needs of the events of a window that was filled."""
        if row not in self.asleep:
            return
        self.asleep.discard(row)
        held = int(self.head[row, HELD])
        self.traits.note(self.events, self.window(row, 0)[:held])
        grade, seat = self.head[row, GRADE : SEAT + 1].tolist()
        if self.shelves.keeps(grade):
            born = self.window(row, 3)
            marks, born[:] = born.copy(), 0
            for place in range(held):
                born[place] = marks[place]
                self.shelves.measure(grade, seat, place)

    def mark(self, alive: Ids) -> None:
        """Mark the event slots in use."""
        for pool in self.shelves.pools:
            kernels.mark_seats(pool, alive)

    def copy_sets(self, old: Ids, new: Ids, used: int) -> int:
        """Copy the sets of matched subscriptions in use."""
        for pool in self.shelves.pools:
            used = int(kernels.copy_seat_sets(pool, old, new, used))
        return used


def _scratch(size: int) -> kernels.Found:
    ints = (np.zeros(size, np.int64) for _ in range(3))
    places, times, names = ints
    return (places, np.zeros(size), np.zeros(size), times, names, np.zeros(3, np.int64))
