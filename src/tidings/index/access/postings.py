"""How checks are posted: grids over the values of slots, and lists by predicate."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.index.access.encoding import Encoded, spans
from tidings.index.access.kernels.postings import CELL_BITS, FAN_BITS, Lists, fill_lists, fill_table
from tidings.index.access.vocabulary import Vocabulary

CELL: Final = 8  # intervals a cell, on average
FEWEST: Final = 64  # intervals of a slot that are worth more than one cell
MOST_CELLS: Final = 1 << CELL_BITS
ENDS: Final = (-(1 << 63) + (1 << 52), (1 << 63) - (1 << 52))
"""Between these are the finite floats, as ordered whole numbers."""

NO_LISTS: Final = Lists(
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    0,
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
)


class Grid:
    """Cells over the values of every slot, about as many ends of intervals in each."""

    def __init__(self, given: Encoded, slots: int) -> None:
        self.cells = np.zeros(slots, np.int32)
        self.edges_from = np.zeros(slots, np.int32)
        self.node = np.zeros(len(given.entry), np.int32)
        self.span = np.zeros(len(given.entry), np.int32)
        self.share = np.ones(len(given.entry))
        edges: list[Int64s] = []
        filled = 0
        places = np.flatnonzero((given.slot >= 0) & (given.entry < 0))
        places = places[np.argsort(given.slot[places], kind="stable")]
        used, firsts = np.unique(given.slot[places], return_index=True)
        groups = np.split(places, firsts[1:]) if len(used) else []
        self.cells[used] = 1  # of few intervals, as every interval says that is not cut
        for slot, group in zip(used, groups, strict=True):
            if len(group) < FEWEST:
                continue
            made = self._cut(given, group)
            self.cells[slot] = len(made) + 1
            self.edges_from[slot] = filled
            filled += len(made)
            edges.append(made)
        self.edges = np.concatenate([*edges, np.empty(0, np.int64)])

    def take(self, checks: Int64s) -> None:
        """Follow the checks to other places."""
        self.node, self.span = self.node[checks], self.span[checks]

    def _cut(self, given: Encoded, group: npt.NDArray[Any]) -> Int64s:
        """Give the edges between the cells, and note where the intervals lie."""
        low, high, differs = given.low[group], given.high[group], given.differs[group]
        count = min(MOST_CELLS, 1 << max(0, (len(group) // CELL).bit_length() - 1))
        ends = np.concatenate([low[~differs], high[~differs]])
        ends = np.sort(ends[(ends > ENDS[0]) & (ends < ENDS[1])])
        count = count if len(ends) else 1
        edges = ends[np.arange(1, count) * len(ends) // count]
        first = np.where(differs, 0, np.searchsorted(edges, low, "right"))
        last = np.where(differs, count - 1, np.searchsorted(edges, high, "right"))
        self.share[group] = (last - first + 1) / count
        self.span[group] = first | last << CELL_BITS
        bits = np.frexp((first ^ last).astype(np.float64))[1]  # 0 for equal cells
        levels = -(-bits // FAN_BITS)
        self.node[group] = np.array(level_starts(count))[levels] + (first >> FAN_BITS * levels)
        return edges


def level_starts(cells: int) -> list[int]:
    """Give where the levels of a tree begin, and at last how many nodes there are.

    >>> level_starts(64), level_starts(1), level_starts(16)
    ([0, 64, 72, 73], [0, 1], [0, 16, 18, 19])
    """
    starts, width = [0], cells
    while width > 1:
        starts.append(starts[-1] + width)
        width = (width + 7) >> FAN_BITS
    return [*starts, starts[-1] + 1]


def chances_of(given: Encoded, grid: Grid, vocabulary: Vocabulary) -> Float64s:
    """Estimate how often every check holds."""
    chance = np.empty(len(given.entry))
    stamped = given.entry >= 0
    chance[stamped] = vocabulary.chances(given.entry[stamped])
    among = ~stamped & (given.slot == -1)
    count = (given.high - given.low)[among]
    row = np.repeat(np.arange(len(count)), count)
    each = vocabulary.chances(given.members[spans(given.low[among], given.high[among])])
    chance[among] = np.bincount(row, each, minlength=len(count))
    compared = ~stamped & (given.slot >= 0)
    chance[compared] = vocabulary.slot_chances(given.slot[compared]) * grid.share[compared]
    return chance


class Posts(NamedTuple):
    """What is posted: which checks, in order of their rows, and under which predicates."""

    check: Int64s
    key: Int64s  # an entry, or ~slot
    single: npt.NDArray[np.bool_]  # not one of several members


def posts_of(given: Encoded, checks: npt.NDArray[Any]) -> Posts:
    """Post each of these checks once, but an `in` under every member."""
    entry, slot = given.entry[checks].astype(np.int64), given.slot[checks].astype(np.int64)
    among = (entry < 0) & (slot < 0)
    count = np.where(among, given.high[checks] - given.low[checks], 1)
    check = np.repeat(checks, count)
    single = np.repeat(~among, count)
    key = np.repeat(np.where(entry >= 0, entry, ~slot), count)
    members = given.members[spans(given.low[checks][among], given.high[checks][among])]
    key[~single] = members
    return Posts(check.astype(np.int64), key, single)


def lists_of(posts: Posts, entries: npt.NDArray[Any], grid: Grid) -> Lists:
    """Put the entries of the posts, a row each, into their lists."""
    found = np.unique(posts.key[posts.key >= 0])
    places = 1 << (3 * len(found) // 2 + 1).bit_length()
    used = grid.cells > 0
    counts = [level_starts(each)[-1] for each in grid.cells[used].tolist()]
    total = places + sum(counts)
    heads = np.full(3 * (total + 1), -1, np.int32)
    table = fill_table(found, heads, places - 1)
    nodes = np.zeros(len(grid.cells), np.int32)
    nodes[used] = places + np.cumsum([0, *counts])[:-1]
    stamped = posts.key >= 0
    which = np.empty(len(posts.key), np.int64)
    which[stamped] = table[np.searchsorted(found, posts.key[stamped])]
    which[~stamped] = nodes[~posts.key[~stamped]] + grid.node[posts.check[~stamped]]
    out: Int32s = np.empty(entries.size, np.int32)
    fill_lists(which, entries.astype(np.int32).ravel(), entries.shape[1], heads, out)
    return Lists(heads, out, places - 1, grid.cells, nodes, grid.edges_from, grid.edges)
