"""A part of the access index that does not change: conjunctions in arrays, posted once each."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.index.protocol import own_score
from tidings.index.vocabulary import Check, Vocabulary
from tidings.kernels.access import (
    CELL_BITS,
    UNKNOWN,
    Floats,
    Ints,
    Lists,
    Marks,
    Room,
    Rows,
    Said,
    Shorts,
    fill_table,
    find_all,
    find_tops,
    scan_matching,
    scan_touching,
)
from tidings.model import Subscription

CELL: Final = 8  # intervals a cell, on average
MOST_CELLS: Final = 1 << CELL_BITS
Scored = tuple[str, float]
MOST_LEVELS: Final = CELL_BITS + 1  # of the tree over the cells
_NONE: Final = np.empty(0, np.int64)
_NO_RANKS: Final = np.empty(0, np.int32)


def rank_key(subscription: Subscription) -> tuple[float, str]:
    """Give the order of ranks: the greater own score, then the smaller id."""
    return (-own_score(subscription), subscription.id)


@dataclass(frozen=True)
class Encoded:
    """Conjunctions as checks, flat: whose they are, where they begin, and the checks."""

    owners: list[Subscription]
    owner: Shorts  # of each row
    size: Shorts  # of each row
    entry: Shorts  # of each check; -1 for an interval
    slot: Shorts
    low: Floats
    high: Floats
    members: Shorts  # of each `in` (slot -1), from its low to its high


def encode(subscriptions: Iterable[Subscription], use: Callable[..., Check]) -> Encoded:
    """Give subscriptions in numbers; a conjunction without active predicates never holds."""
    owners = list(subscriptions)
    owner, size, checks = [], [], list[Check]()
    for number, each in enumerate(owners):
        for parts in each.conjunctions:
            if parts:
                found = dict.fromkeys(parts)
                owner.append(number)
                size.append(len(found))
                checks.extend(map(use, found))
    columns = list(zip(*checks, strict=True)) or [()] * 5
    count = np.array([len(each) for each in columns[4]], np.int64)
    ends = np.cumsum(count)
    low, high = np.array(columns[2], np.float64), np.array(columns[3], np.float64)
    return Encoded(
        owners,
        np.array(owner, np.int32),
        np.array(size, np.int32),
        np.array(columns[0], np.int32),
        np.array(columns[1], np.int32),
        np.where(count, ends - count, low),
        np.where(count, ends, high),
        np.array([each for members in columns[4] for each in members], np.int32),
    )


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Put encoded subscriptions together."""
    owners = [each for part in parts for each in part.owners]
    shifts = np.cumsum([0, *(len(part.owners) for part in parts)])
    owner = [part.owner + shift for part, shift in zip(parts, shifts, strict=False)]
    rest = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("size", "entry", "slot", "low", "high", "members")
    ]
    made = Encoded(owners, np.concatenate(owner).astype(np.int32), *rest)
    before = np.cumsum([0, *(len(part.members) for part in parts)])[:-1]
    shift = np.repeat(before, [len(part.entry) for part in parts])
    among = made.slot == -1
    made.low[among] += shift[among]
    made.high[among] += shift[among]
    return made


def _spans(first: npt.NDArray[Any], last: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give the numbers from each first to before its last, one span after the other."""
    size = last - first
    ends = np.cumsum(size)
    return np.repeat(first - (ends - size), size) + np.arange(ends[-1] if len(ends) else 0)


class Segment:
    """Subscriptions in order of rank, in lists by their most selective predicates.

    Only deaths change it: a removed subscription is passed over until the segment is rebuilt.
    Without `sort` the checks stay as written, and the first one gives access: for measurements.
    """

    def __init__(self, given: Encoded, vocabulary: Vocabulary, *, sort: bool = True) -> None:
        keys = [rank_key(each) for each in given.owners]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self.subscriptions = [given.owners[each] for each in order]
        self.ids = [each.id for each in self.subscriptions]  # beside the scores: quick answers
        self.scores = np.array([own_score(each) for each in self.subscriptions])
        self.dead = 0
        rank_of = np.empty(len(order), np.int32)
        rank_of[order] = np.arange(len(order), dtype=np.int32)
        self.rows, self.lists = _built(given, rank_of, vocabulary, sort)

    def __len__(self) -> int:
        return len(self.subscriptions)

    def kill(self, subscription: Subscription) -> bool:
        """Pass a subscription over from now on, if it is here."""
        key = rank_key(subscription)
        rank = bisect_left(self.subscriptions, key, key=rank_key)
        if rank == len(self.subscriptions) or self.subscriptions[rank].id != subscription.id:
            return False
        if not self.rows.alive[rank]:
            return False
        self.rows.alive[rank] = False
        self.dead += 1
        return True

    def encoded(self) -> Encoded:
        """Give the living back, in numbers."""
        rows = self.rows
        number = np.cumsum(rows.alive, dtype=np.int32) - 1
        lives = rows.alive[rows.rank]
        size = np.diff(rows.start)
        kept = rows.refs[np.repeat(lives, size)]
        stamped = kept >= 0
        slot = np.full(len(kept), -2, np.int32)
        low, high = np.zeros(len(kept)), np.zeros(len(kept))
        places = ~kept[~stamped]
        slot[~stamped] = rows.slot[places]
        low[~stamped], high[~stamped] = rows.bounds[2 * places], rows.bounds[2 * places + 1]
        among = slot == -1
        members = rows.members[_spans(low[among].astype(int), high[among].astype(int))]
        ends = np.cumsum(high[among] - low[among])
        low[among], high[among] = ends - (high[among] - low[among]), ends
        return Encoded(
            [each for each, alive in zip(self.subscriptions, rows.alive, strict=True) if alive],
            number[rows.rank[lives]],
            size[lives].astype(np.int32),
            np.where(stamped, kept, -1).astype(np.int32),
            slot,
            low,
            high,
            members,
        )

    def matching(self, marks: Marks, said: Said, looked: Ints) -> list[int]:
        """Give the ranks of those that cover the event."""
        room = Room(_lists_room(said), np.empty(len(self), np.int32), _NONE, looked)
        size = find_all(self.rows, self.lists, marks, said, room)
        found: list[int] = room.ranks[:size].tolist()
        return found

    def naive(self, marks: Marks, said: Said) -> list[int]:
        """Give the same by looking at every row: what the lists are measured against."""
        out = np.empty(len(self), np.int32)
        found: list[int] = out[: scan_matching(self.rows, marks, said, out)].tolist()
        return found

    def touching(self, marks: Marks, said: Said, looked: Ints) -> list[int]:
        """Give the ranks of those of which some predicate holds."""
        out = np.empty(len(self), np.int32)
        found: list[int] = out[: scan_touching(self.rows, marks, said, out, looked)].tolist()
        return found

    def top(self, marks: Marks, said: Said, k: int, looked: Ints) -> list[list[Scored]]:
        """Give for every event the k lowest ranks of those that cover it, as (id, score)."""
        heap = np.empty(min(k, len(self)), np.int64)
        out = np.empty((len(said.spans) // 4, len(heap) + 1), np.int64)
        room = Room(_lists_room(said), _NO_RANKS, heap, looked)
        find_tops(self.rows, self.lists, marks, said, room, out.ravel())
        ids = self.ids
        scores = self.scores[np.where(np.arange(len(heap)) < out[:, :1], out[:, 1:], 0)].tolist()
        return [
            [(ids[rank], score) for rank, score in zip(row[1 : row[0] + 1], values, strict=False)]
            for row, values in zip(out.tolist(), scores, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and of two pointers and the score a subscription."""
        return sum(each.nbytes for each in (*self.rows, *self.lists)) + 24 * len(self)


def _lists_room(said: Said) -> Shorts:
    """Make room for all lists of the event that may have the most."""
    if len(said.spans) == 4:
        return np.empty(2 * (len(said.ids) + MOST_LEVELS * len(said.slots)), np.int32)
    first, last, first_value, last_value = said.spans.reshape(-1, 4).T
    most = np.max(last - first + MOST_LEVELS * (last_value - first_value), initial=0)
    return np.empty(2 * int(most), np.int32)


def _built(
    given: Encoded, rank_of: Shorts, vocabulary: Vocabulary, sort: bool
) -> tuple[Rows, Lists]:
    grid = _Grid(given, len(vocabulary.marks.slot_stamp))
    chance = _chances(given, grid, vocabulary) if sort else np.zeros(len(given.entry))
    rank = rank_of[given.owner] if len(given.owner) else np.empty(0, np.int32)
    row = np.repeat(np.arange(len(rank)), given.size)
    order = np.lexsort((chance, row, rank[row]))  # rows by rank, their checks by chance
    by_rank = np.argsort(rank, kind="stable")
    rank, size = rank[by_rank], given.size[by_rank]
    start = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
    entry = given.entry[order]
    interval = entry < 0
    place = np.cumsum(interval) - 1
    refs = np.where(interval, ~place, entry).astype(np.int32)
    picked = order[interval]
    rows = Rows(
        start,
        refs,
        given.slot[picked],
        np.stack([given.low[picked], given.high[picked]], axis=1).ravel(),
        given.members,
        rank,
        np.ones(len(rank_of), np.bool_),
        np.zeros(len(rank_of), np.int32),
    )
    return rows, _lists(rows, grid, order[start[:-1]])


def _chances(given: Encoded, grid: "_Grid", vocabulary: Vocabulary) -> Floats:
    chance = np.empty(len(given.entry))
    stamped = given.entry >= 0
    chance[stamped] = vocabulary.chances(given.entry[stamped])
    among = given.slot == -1
    count = (given.high - given.low)[among].astype(int)
    row = np.repeat(np.arange(len(count)), count)
    places = _spans(given.low[among].astype(int), given.high[among].astype(int))
    chance[among] = np.bincount(
        row, vocabulary.chances(given.members[places]), minlength=len(count)
    )
    compared = given.slot >= 0
    chance[compared] = vocabulary.slot_chances(given.slot[compared]) * grid.share[compared]
    return chance


class _Grid:
    """Cells over the values of every slot, about as many ends of intervals in each."""

    def __init__(self, given: Encoded, slots: int) -> None:
        self.cells = np.zeros(slots, np.int32)
        self.edges_from = np.zeros(slots, np.int32)
        self.node = np.zeros(len(given.entry), np.int32)
        self.span = np.zeros(len(given.entry), np.int32)
        self.share = np.ones(len(given.entry))
        edges: list[Floats] = []
        filled = 0
        places = np.flatnonzero(given.slot >= 0)
        places = places[np.argsort(given.slot[places], kind="stable")]
        used, firsts = np.unique(given.slot[places], return_index=True)
        groups = np.split(places, firsts[1:]) if len(used) else []
        for slot, group in zip(used, groups, strict=True):
            made = self._cut(given.low[group], given.high[group], group)
            self.cells[slot] = len(made) + 1
            self.edges_from[slot] = filled
            filled += len(made)
            edges.append(made)
        self.edges = np.concatenate([*edges, np.empty(0)])

    def _cut(self, low: Floats, high: Floats, group: npt.NDArray[Any]) -> Floats:
        """Give the edges between the cells, and note where the intervals lie."""
        count = min(MOST_CELLS, 1 << max(0, (len(group) // CELL).bit_length() - 1))
        ends = np.concatenate([low, high])
        ends = np.sort(ends[np.isfinite(ends)])
        count = count if len(ends) else 1
        edges = ends[np.arange(1, count) * len(ends) // count]
        different = np.isnan(high)
        first = np.where(different, 0, np.searchsorted(edges, low, "right"))
        last = np.where(different, count - 1, np.searchsorted(edges, high, "right"))
        self.share[group] = (last - first + 1) / count
        self.span[group] = first | last << CELL_BITS
        levels = np.frexp((first ^ last).astype(np.float64))[1]  # 0 for equal cells
        self.node[group] = (count + first) >> levels
        return edges


def _lists(rows: Rows, grid: _Grid, access: npt.NDArray[Any]) -> Lists:
    """Post every row under its first check; `access` are the checks' places in what was given."""
    row, key, node = _posts(rows, grid, access)
    found = np.unique(key[key >= 0]).astype(np.int64)
    keys = np.full(1 << (2 * len(found) + 1).bit_length(), -1, np.int32)
    places = fill_table(found, keys)
    used = grid.cells > 0
    nodes = np.zeros(len(grid.cells), np.int32)
    nodes[used] = len(keys) + np.cumsum(np.concatenate([[0], 2 * grid.cells[used]]))[:-1]
    total = len(keys) + 2 * int(grid.cells.sum())
    stamped = key >= 0
    which = np.empty(len(row), np.int64)
    which[stamped] = places[np.searchsorted(found, key[stamped])]
    which[~stamped] = nodes[~key[~stamped]] + node[~stamped]
    order = np.argsort(which, kind="stable")
    check = _next_checks(rows)[row]
    span = np.where(stamped, 0, grid.span[access[row]])
    entries = np.stack([row, check, span], axis=1)[order].astype(np.int32).ravel()
    counts = np.bincount(which, minlength=total)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Lists(keys, starts, entries, grid.cells, nodes, grid.edges_from, grid.edges)


def _next_checks(rows: Rows) -> npt.NDArray[Any]:
    """Give what an entry says of each row's second check, or of its only one."""
    second = rows.refs[np.minimum(rows.start[:-1] + 1, rows.start[1:] - 1)].astype(np.int64)
    compared = second < 0
    slot = rows.slot[~second[compared]]
    second[compared] = np.where(slot < 0, UNKNOWN, ~slot)
    return second


def _posts(rows: Rows, grid: _Grid, access: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Give (row, entry or ~slot, node) in order of rows: one each, but an `in` one a member."""
    first = rows.refs[rows.start[:-1]].astype(np.int64)
    slot = np.zeros(len(first), np.int64)
    slot[first < 0] = rows.slot[~first[first < 0]]
    among = (first < 0) & (slot < 0)
    place = ~first[among]
    low, high = rows.bounds[2 * place].astype(int), rows.bounds[2 * place + 1].astype(int)
    key = np.where(first >= 0, first, ~slot)
    every = np.arange(len(first))
    row = np.concatenate([every[~among], np.repeat(every[among], high - low)])
    key = np.concatenate([key[~among], rows.members[_spans(low, high)]])
    order = np.argsort(row, kind="stable")
    row, key = row[order], key[order]
    return row, key, grid.node[access[row]]
