"""What a reader of a live index holds: runs, a buffer and a tail, seen at one version."""

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.index.interval.protocol import Floats, Ints, Ranked
from tidings.index.interval.sopt_r_64 import sopt_r_64
from tidings.index.interval.walked import Walked
from tidings.kernels.ir_store import table_refill
from tidings.kernels.live import (
    BORN,
    DIED,
    ID,
    NEVER,
    Listed,
    Parts,
    Pile,
    Run,
    Seen,
    Young,
    merge_piles,
    young_note_many,
)
from tidings.kernels.wide import FAN

POINTS: Final = 256
USUAL: Final = 20
FAR: Final = 1e308

NO_TIME: Final = -1
"""Before every version."""


@dataclass(eq=False)
class Built:
    """A run, which is never changed but for stamps on its dead, and how many these are."""

    run: Run
    listed: Listed
    depth: float
    """The share of all scores that are above that of a usual last answer; see `depth_of`."""
    dead: int = 0

    def __len__(self) -> int:
        return len(self.run[5])


class State(NamedTuple):
    """One version of the index, for as long as somebody reads it."""

    main: Built
    middle: Built
    parts: Parts
    seen: Seen

    def with_runs(self, main: Built, middle: Built) -> "State":
        """Give the same buffer and tail with other runs."""
        parts = (main.run, middle.run, self.parts[2], self.parts[3])
        return State(main, middle, parts, self.seen)

    def with_piles(self, buffer: Pile, tail: Pile, size: int) -> "State":
        """Give the same runs with a new buffer and an empty tail."""
        parts = (self.parts[0], self.parts[1], buffer, tail)
        return State(self.main, self.middle, parts, (size, 0, self.seen[2]))

    @property
    def delta(self) -> int:
        """How many entries buffer and tail have, dead or not."""
        return self.seen[0] + self.seen[1]


@dataclass(frozen=True)
class Entries:
    """Intervals by id, keys in place of scores: smaller is better."""

    low: Floats
    high: Floats
    keys: Ints
    ids: Ints


def built(entries: Entries) -> Built:
    """Build a run in O(n log n)."""
    order = np.lexsort((entries.ids, entries.keys))
    low, high = entries.low[order], entries.high[order]
    ranks = np.arange(len(order))
    index = sopt_r_64(Ranked(low, high, ranks, np.empty(0)))
    tree: Any = index.tree
    placed = order[tree[3]]
    notes = np.full((len(order), 2), NEVER, np.int32)
    notes[:, ID] = entries.ids[placed]
    by_id = np.argsort(notes[:, ID])
    listed = notes[by_id, ID], by_id.astype(np.int32)
    run = (tree[0], tree[1], tree[2], notes, tree[4], entries.keys[placed])
    return Built(run, listed, depth_of(index, low, high))


def depth_of(index: Walked, low: Floats, high: Floats) -> float:
    """Give how far down the ranks the 20th answer is, on average over the middles of some.

    So much of a buffer by score is looked through before the rest of it comes late.
    """
    if len(low) == 0:
        return 1.0
    some = np.linspace(0, len(low) - 1, POINTS).astype(np.int64)
    points = np.clip(low[some], -FAR, FAR) / 2 + np.clip(high[some], -FAR, FAR) / 2
    ranks, counts = index.top_many(points, USUAL)
    last = np.where(counts == USUAL, ranks[:, -1], len(low))
    return float(last.mean() + 1) / (len(low) + 1)


def living(run: Run, version: int) -> Entries:
    """Give what lives in a run at a version."""
    there = run[3][:, DIED] > version
    rows = run[2][there]
    return Entries(rows[:, 0], rows[:, 1], run[5][there], run[3][there, ID].astype(np.int64))


def living_in_pile(pile: Pile, size: int, version: int) -> Entries:
    """Give what lives in a pile at a version."""
    notes = pile[2][:size]
    there = np.flatnonzero(notes[:, DIED] > version)
    low, high = pile[0][0][there], pile[0][1][there]
    return Entries(low, high, pile[1][there], notes[there, ID].astype(np.int64))


def joined(parts: list[Entries]) -> Entries:
    """Put entries together."""
    columns = zip(*(vars(each).values() for each in parts), strict=True)
    return Entries(*(np.concatenate(each) for each in columns))


NOBODY = Entries(np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


def empty_pile(size: int) -> Pile:
    """Make room for entries; a bound that is not used contains nothing."""
    bounds = np.empty((2, size + FAN))
    bounds[0], bounds[1] = np.inf, -np.inf
    return bounds, np.empty(size, np.int64), np.empty((size, 3), np.int32)


def sorted_pile(entries: Entries, born: int) -> Pile:
    """Lay entries out by score."""
    order = np.lexsort((entries.ids, entries.keys))
    pile = empty_pile(len(order))
    pile[0][0, : len(order)], pile[0][1, : len(order)] = entries.low[order], entries.high[order]
    pile[1][:] = entries.keys[order]
    pile[2][:, ID], pile[2][:, DIED], pile[2][:, BORN] = entries.ids[order], NEVER, born
    return pile


def sorted_tail(state: State) -> Pile:
    """Give a sorted copy of the tail, births and deaths included."""
    tail, size = state.parts[3], state.seen[1]
    order = np.lexsort((tail[2][:size, ID], tail[1][:size]))
    pile = empty_pile(size)
    pile[0][:, :size] = tail[0][:, order]
    pile[1][:], pile[2][:] = tail[1][order], tail[2][order]
    return pile


def merged(one: tuple[Pile, int], other: tuple[Pile, int], born: int) -> tuple[Pile, int]:
    """Merge what lives and was born after `born`; give it with its size."""
    out = empty_pile(one[1] + other[1])
    return out, int(merge_piles(one[0], other[0], (one[1], other[1]), born, out))


def young_of(pile: Pile, size: int) -> Young:
    """Make the table of the ids of a sorted pile."""
    young = empty_young(size)
    young_note_many(young, pile[2][:size, ID].astype(np.int64), pile[1][:size])
    return young


def empty_young(size: int) -> Young:
    """Make a table with room for twice as many ids, and some."""
    places = 1 << (4 * size + 1024).bit_length()
    return np.empty(places, np.int64), np.full(places, -1, np.int64)


def wider(young: Young) -> Young:
    """Give a table of double the size."""
    places = 2 * len(young[0])
    table = np.empty(places, np.int64), np.full(places, -1, np.int64)
    table_refill(young, *table)  # type: ignore[arg-type]
    return table


def with_version(state: State, seen: Seen) -> State:
    """Give the state as it is seen next."""
    return State(state.main, state.middle, state.parts, seen)


def entries_of(ranked: Ranked, keys: Ints) -> Entries:
    """Give ranked intervals as entries."""
    return Entries(ranked.low, ranked.high, keys, ranked.ids)


def relabelled(ranked: Ranked, first: int) -> Ranked:
    """Give ranked intervals ids from `first` on."""
    return replace(ranked, ids=ranked.ids + first)
