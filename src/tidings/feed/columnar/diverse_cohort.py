"""Cohorts whose policy diversifies, in arrays: all matches of a window, and what was chosen last.

Nothing is pruned, since a lower rank may win by its distance. What choosing needs of an event is
there once for all subscribers.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.diversify.memory_limits import DENSE, check_dense, is_dense
from tidings.feed.columnar import policy_codes as plans
from tidings.feed.columnar.delivery_batch import Part
from tidings.feed.columnar.event_features import AllTraits
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels import diverse_layout as seats
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.kernels.diverse_history import better_many_diverse, peek
from tidings.feed.columnar.kernels.diverse_periodic import advance_many_diverse, group_many_diverse
from tidings.feed.columnar.kernels.diverse_sliding import slide_many_diverse
from tidings.feed.columnar.ranked_cohort import Found, Sink, drive, longer, spread, taken
from tidings.model.values import rounded
from tidings.policy import Policy

COUNTERS: Final = [seats.SEEN, seats.SENT, seats.END, seats.HELD]
EMPTY: Final = (0, 0, at.NEVER, 0, -1, 0, -1, 0)
POOLS: Final = {"slot": np.int32, "handle": np.int32, "score": np.float64, "born": np.int64}
KERNELS: Final[dict[int, Callable[..., None]]] = {
    at.SLIDING: slide_many_diverse,
    at.CONTINUOUS: slide_many_diverse,
    at.BEST: slide_many_diverse,
    at.PERIODIC: group_many_diverse,
    at.JUMPING: group_many_diverse,
    at.HISTORY: better_many_diverse,
}
_FIRST: Final = 16
_NARROW: Final = 4
_SQUARE: Final = 256
"""Up to so many members of a history, all distances are written down."""
_FEW: Final = 64
"""Up to this k, each row has room for k kept choices; else for as many as its slab has places."""
RULES: Final = {
    "divrank": seats.NEAREST,
    "maxmin": seats.LEAST,
    "maxsum": seats.SUM,
    "maxavg": seats.MEAN,
    "disc": seats.COUNTED,
    "maxdivrel": seats.RELEVANT,
    "maxdivrel-lsh": seats.VOTES,
    "optimal": seats.OPTIMAL,
}


class Choice(NamedTuple):
    """What is chosen, in order of choice: places and fresh ranks."""

    places: Int64s
    ranks: Float64s


class DiverseCohort:
    """Windows of one policy with a diversifier, in arrays."""

    def __init__(self, policy: Policy, traits: AllTraits) -> None:
        self.policy, self.plan, self.decay = policy, plans.numbers(policy), plans.decay(policy)
        self.waits_for, self.chooser = plans.waits_for(self.plan), _chooser(policy, self.plan)
        voted = self.chooser[seats.RULE] == seats.VOTES
        measured = self.plan[at.WINDOW] == at.HISTORY or not voted
        self.traits = traits.of(policy.diversify, bool(measured))
        self._dense = is_dense(policy.diversify) and self.plan[at.WINDOW] != at.HISTORY
        sizes = self._sizes()
        self.room = np.stack([sizes, np.full(len(sizes), -1)], axis=1)
        self.used = np.zeros(1, np.int64)
        self.head, self.numbers = np.zeros((0, seats.HEAD_WIDTH), np.int64), np.zeros(0, np.int32)
        self.slot, self.handle, self.score, self.born = (
            np.zeros(0, kind) for kind in POOLS.values()
        )
        keeps = self.chooser[seats.KEEPS] != 0
        self.votes, self._voted = np.zeros(0, np.int32), bool(keeps and voted)
        self._width = int(self.chooser[seats.KEEPS]) if keeps and not voted else 0
        self.places, self.worths = np.zeros(0, np.int32), np.zeros(0)
        self.events, self._sink = EventTable(), Sink()
        self._free: list[int] = []
        self._asleep = np.zeros(0, np.bool_)
        self._bench = self._made_bench(_FIRST)

    def _sizes(self) -> list[int]:
        """Return the sizes of slabs; one is that beyond which pairs are too many to compare."""
        sizes = plans.ladder(plans.longest(self.plan), _NARROW)
        if self._dense and DENSE not in sizes and sizes[-1] > DENSE:
            sizes = sorted([*sizes, DENSE])
        return sizes

    def __len__(self) -> int:
        return len(self.head) - len(self._free)

    @property
    def seats(self) -> tuple[Any, ...]:
        """The windows as the kernels take them."""
        pools = (self.slot, self.handle, self.score, self.born)
        return (self.head, *pools, self.room, self.used)

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays of the windows hold; those of events are not among them."""
        kept = (self.places, self.worths, self.votes, self.numbers)
        return sum(each.nbytes for each in (*self.seats, *kept))

    def _world(self) -> tuple[Any, ...]:
        events = (self.events.us, self.events.sequence, self.traits.names)
        kept, plan = (self.places, self.worths, self.votes), (self.plan, self.decay, self.chooser)
        return (self.seats, kept, events, self.traits.measures, plan, self._bench)

    def _made_bench(self, size: int) -> tuple[Any, ...]:
        side = min(size, _SQUARE) if self.plan[at.WINDOW] == at.HISTORY else 0
        floats, ints = (np.zeros(size), np.zeros(size)), (np.zeros(size, np.int64),) * 2
        chosen, worths = np.zeros(size + 1, np.int32), np.zeros(size + 1)
        room = (np.zeros((5, PARTS)), np.zeros((side, side)))
        winners = np.zeros(self.traits.bands.shape[1], np.int64)
        return (*floats, ints[0], ints[1].copy(), chosen, worths, *room, winners)

    def enrol(self, number: int, name: str) -> int:
        """Give the row of a new, empty window for a subscriber's number."""
        return int(self.enrol_many(np.array([number]), [name])[0])

    def enrol_many(self, numbers: Int64s, _: Sequence[str]) -> Int32s:
        """Give the rows of new, empty windows."""
        if len(self._free) < len(numbers):
            self._add_rows(max(len(numbers), _FIRST, len(self.head) // 4))
        rows = taken(self._free, len(numbers))
        self.head[rows], self.numbers[rows] = EMPTY, numbers
        return rows

    def _add_rows(self, more: int) -> None:
        """Add free rows. The head, which says how many rows there are, grows last."""
        old, size = len(self.head), len(self.head) + more
        free, width = range(size - 1, old - 1, -1), max(self._width, 0)
        for name, each in (("numbers", 1), ("_asleep", 1), ("places", width), ("worths", width)):
            if each:
                setattr(self, name, longer(getattr(self, name), size * each))
        self.head = longer(self.head, size)
        self.head[old:] = EMPTY
        self._free += free

    def drop(self, row: int) -> None:
        """Give a row back."""
        self.reset(row)
        self._free.append(row)

    def reset(self, row: int) -> None:
        """Empty the window of a row."""
        seats.free_seat(self.seats, row)
        self.head[row], self._asleep[row] = EMPTY, False

    def offer(self, events: EventTable, offers: tuple[Any, ...]) -> Found:
        """Offer matches, as rows, slots, scores, handles and numbers of the stream."""
        self.events = events
        self._wake(offers[0])
        self.traits.note(events, offers[1])
        many = KERNELS[int(self.plan[at.WINDOW])]
        return self._drive(offers[0], lambda sink: many(self._world(), sink, offers))

    def advance(self, events: EventTable, rows: Int32s, us: int, sequence: int) -> Found:
        """Say to some rows that the stream has come to a moment."""
        self.events = events
        self._wake(rows)
        many: Any = advance_many_diverse
        return self._drive(rows, lambda sink: many(self._world(), sink, rows, us, sequence))

    def _drive(self, rows: Int32s, run: Callable[..., None]) -> Found:
        return drive(self._sink, rows, run, self)

    def peek(
        self, row: int, span: tuple[int, int], now_us: int, least: int
    ) -> tuple[Choice, Int64s]:
        """Choose from a span of the axis, and change nothing; none from fewer than `least`.

        Gives the choice, and the times of the oldest and newest of the span, and their count.
        """
        self._wake(np.array([row]))
        found, whole = np.zeros(3, np.int64), (int(self.plan[at.AXIS]), *span)
        size = peek(self._world(), row, whole, now_us, least, found)
        places = self._bench[4][:size].astype(np.int64)
        scores, times = self.window(row, 2)[places], self.events.us[self.window(row, 0)[places]]
        fresh = [
            self.policy.decay.fresh(score, us, now_us)
            for score, us in zip(scores.tolist(), times.tolist(), strict=True)
        ]
        return Choice(places, np.array(fresh, np.float64)), found

    def window(self, row: int, column: int) -> npt.NDArray[Any]:
        """Give a column of the places of a window: 0 slots, 1 handles, 2 scores, 3 born."""
        base, grade = int(self.head[row, seats.BASE]), int(self.head[row, seats.GRADE])
        size = int(self.room[grade, seats.CAP]) if grade >= 0 else 0
        pool: npt.NDArray[Any] = self.seats[1 + column]
        return pool[base : base + size]

    def kept_places(self, row: int) -> Int32s:
        """Return the places of a window that were chosen last and still stand."""
        first = row * self._width if self._width > 0 else int(self.head[row, seats.BASE])
        return self.places[first : first + int(self.head[row, seats.KEPT])]

    def make_room(self, row: int, used: int) -> None:
        """See to it that the kernel can take at least one step from this row on."""
        self._sink.make_room(used, int(self.head[row, seats.HELD]) + 1)
        last, grade = len(self.room) - 1, int(self.head[row, seats.GRADE])
        wanted = int(self.room[min(grade + 1, last), seats.CAP])
        self._check_pairs(row)
        benched = min(wanted, DENSE) if self._dense else wanted
        if len(self._bench[0]) < benched:
            self._bench = self._made_bench(benched)
        if self.used[0] + wanted > len(self.slot):
            order = np.argsort(self.head[:, seats.BASE], kind="stable")
            seats.pack_seats(self.seats, self._kept_in_slabs(), order)
            self._lengthen(int(self.used[0]) + wanted)

    def _check_pairs(self, row: int) -> None:
        """Refuse to let a window grow to where all pairs of its events are too many to compare."""
        held, grade = int(self.head[row, seats.HELD]), int(self.head[row, seats.GRADE])
        cap = int(self.room[grade, seats.CAP]) if grade >= 0 else 0
        if self._dense and (cap > DENSE or held >= cap == DENSE):
            check_dense(self.policy.diversify.name, max(held, DENSE) + 1)

    def _kept_in_slabs(self) -> tuple[Any, ...]:
        """Return what is kept of the places of slabs, and nothing in the place of the rest."""
        if self._width < 0:
            return (self.places, self.worths, self.votes)
        return (self.places[:0], self.worths[:0], self.votes)

    def _lengthen(self, least: int) -> None:
        """Let pools have an eighth more than the least that they need."""
        size = least + least // 8
        if size > len(self.slot):
            kept = ["places", "worths"] if self._width < 0 else ["votes"] if self._voted else []
            for name in (*kept, *reversed(POOLS)):  # by the slots, kernels know how long pools are
                setattr(self, name, longer(getattr(self, name), size))

    def part(self, found: Found) -> Part:
        """Give what was found with the numbers of the subscribers."""
        numbers = self.numbers[found.columns[:, at.ROW]].astype(np.int64)
        return Part(numbers, found.columns, found.ranks, self.policy.window.name)

    def open_ends(self) -> Int64s:
        """Give the rows that wait for an end, and that end."""
        rows = np.flatnonzero(self.head[:, seats.END] != at.NEVER)
        return np.stack([rows, self.head[rows, seats.END]], axis=1)

    def columns(self, rows: Int64s) -> dict[str, npt.NDArray[Any]]:
        """Give the state of some rows without its holes, in order of arrival."""
        places, owners = self._entries(rows)
        places = places[np.lexsort((self.born[places], owners))]
        pools = {name: getattr(self, name)[places] for name in POOLS}
        pools["mark"] = pools.pop("born")
        return {"head": self.head[rows][:, COUNTERS], **pools}

    def _entries(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Give where in the pools the entries of some rows lie, and which of the rows is theirs."""
        head = self.head[rows]
        caps = np.where(head[:, seats.GRADE] >= 0, self.room[head[:, seats.GRADE], seats.CAP], 0)
        places, owners = spread(head[:, seats.BASE], caps), np.repeat(np.arange(len(rows)), caps)
        there = self.born[places] > 0
        return places[there], owners[there]

    def fill(self, events: EventTable, state: dict[str, npt.NDArray[Any]], handles: Int32s) -> None:
        """Take over the state of all rows, enrolled in its order and still empty.

        What choosing needs to know of a window's events is found out when it is touched.
        """
        self.events = events
        rows, held = np.arange(len(state["head"])), state["head"][:, 3]
        caps = self.room[:, seats.CAP]
        grades = np.where(held > 0, np.searchsorted(caps, held), -1)
        slabs = np.where(held > 0, caps[grades], 0)
        self.head[rows[:, None], COUNTERS] = state["head"]
        self.head[rows, seats.GRADE], self.head[rows, seats.LAST] = grades, held - 1
        self.head[rows, seats.BASE] = bases = np.cumsum(slabs) - slabs
        self.used[0] = slabs.sum()
        self._lengthen(int(self.used[0]))
        if len(slabs) and len(self._bench[0]) < slabs.max():
            self._bench = self._made_bench(int(slabs.max()))
        places = spread(bases, held)
        columns = {"slot": state["slot"], "handle": handles, "score": state["score"]}
        for name, column in {**columns, "born": state["mark"]}.items():
            getattr(self, name)[places] = column
        self._asleep[rows] = True

    def _wake(self, rows: npt.NDArray[Any]) -> None:
        """Find out what choosing needs of the events of windows that were filled."""
        if not self._asleep.any():
            return
        woken = np.unique(rows[self._asleep[rows]])
        self._asleep[woken] = False
        head = self.head[woken]
        self.traits.note(self.events, self.slot[spread(head[:, seats.BASE], head[:, seats.HELD])])

    def mark(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        seats.mark_seats(self.seats, alive)

    def handles(self) -> Int32s:
        """Give the handles of all entries."""
        return self.handle[self._entries(np.arange(len(self.head)))[0]]

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use."""
        return int(seats.copy_seat_sets(self.seats, old, new, used))


def _chooser(policy: Policy, plan: Int64s) -> Float64s:
    """Give what the kernels need of the diversifier."""
    part: Any = policy.diversify
    rule, alpha = RULES[part.name], getattr(part, "alpha", None)
    slides = plan[at.WINDOW] in (at.SLIDING, at.CONTINUOUS, at.BEST) and not plan[at.LEAVE]
    grows = rule <= seats.MEAN and policy.decay.name == "none" and policy.k > 1
    keeps = slides and (grows or rule == seats.VOTES)
    width = (policy.k if policy.k <= _FEW else -1) if keeps else 0
    return np.array([rule, part.sigma, -1.0 if alpha is None else rounded(alpha), width])
