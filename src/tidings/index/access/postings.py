"""Builds posting lists: a grid over the values of each slot, and lists by predicate."""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int32s, Int64s
from tidings.compiled.arrays import run_indexes, stable_order
from tidings.index.access.encoding import EncodedSubscriptions
from tidings.index.access.kernels.postings import (
    CELL_BITS,
    FAN_BITS,
    Postings,
    fill_hash_table,
    fill_postings,
)
from tidings.index.access.kernels.records import BETWEEN
from tidings.index.access.kernels.scan_blocks import FINITE
from tidings.index.access.vocabulary import Vocabulary

INTERVALS_PER_CELL: Final = 8  # on average
FEWEST: Final = 64  # intervals of a slot that are worth more than one cell
MOST_CELLS: Final = 1 << CELL_BITS
NO_POSTINGS: Final = Postings(
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    0,
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
)


class SlotGrid:
    """Cells over the values of every slot, each with about as many ends of intervals."""

    def __init__(self, encoded: EncodedSubscriptions, slots: int) -> None:
        checks = len(encoded.term)
        self.cells = np.zeros(slots, np.int32)  # by slot
        self.edges_from = np.zeros(slots, np.int32)
        self.node = np.zeros(checks, np.int32)  # by check: its node in the tree of its slot
        self.span = np.zeros(checks, np.int32)  # by check: first and last cell, packed
        self.share = np.ones(checks)  # by check: the share of cells that it covers
        edges: list[Int64s] = []
        total = 0
        places = np.flatnonzero((encoded.slot >= 0) & (encoded.term < 0))
        places = places[stable_order(encoded.slot[places], slots)]
        used, firsts = np.unique(encoded.slot[places], return_index=True)
        groups = np.split(places, firsts[1:]) if len(used) else []
        self.cells[used] = 1  # few intervals share one cell, which nodes and spans of 0 mean
        for slot, group in zip(used, groups, strict=True):
            if len(group) < FEWEST:
                continue
            cut = self._cut(encoded, group)
            self.cells[slot] = len(cut) + 1
            self.edges_from[slot] = total
            total += len(cut)
            edges.append(cut)
        self.edges = np.concatenate([*edges, np.empty(0, np.int64)])

    def reorder(self, checks: Int64s) -> None:
        """Reorder the columns by check."""
        self.node, self.span = self.node[checks], self.span[checks]

    def _cut(self, encoded: EncodedSubscriptions, group: AnyArray) -> Int64s:
        """Return the edges between the cells of a slot, and place its intervals."""
        low, high = encoded.low[group], encoded.high[group]
        negated = encoded.kind[group] != BETWEEN  # it may hold for a value of any cell
        count = min(MOST_CELLS, 1 << max(0, (len(group) // INTERVALS_PER_CELL).bit_length() - 1))
        ends = np.concatenate([low[~negated], high[~negated]])
        ends = np.sort(ends[(ends > FINITE[0]) & (ends < FINITE[1])])
        count = count if len(ends) else 1
        edges = ends[np.arange(1, count) * len(ends) // count]
        first = np.where(negated, 0, np.searchsorted(edges, low, "right"))
        last = np.where(negated, count - 1, np.searchsorted(edges, high, "right"))
        self.share[group] = (last - first + 1) / count
        self.span[group] = first | last << CELL_BITS
        # The lowest common ancestor of two cells is as high as their highest differing bit.
        bits = np.frexp((first ^ last).astype(np.float64))[1]  # 0 for equal cells
        levels = -(-bits // FAN_BITS)
        self.node[group] = np.array(level_starts(count))[levels] + (first >> FAN_BITS * levels)
        return edges


def level_starts(cells: int) -> list[int]:
    """Return where the levels of a tree start, followed by the number of nodes.

    >>> level_starts(64), level_starts(1), level_starts(16)
    ([0, 64, 72, 73], [0, 1], [0, 16, 18, 19])
    """
    starts, width = [0], cells
    while width > 1:
        starts.append(starts[-1] + width)
        width = (width + 7) >> FAN_BITS
    return [*starts, starts[-1] + 1]


class Chances(NamedTuple):
    """By check: how often it holds, by a guess where no events were seen, and at most."""

    guessed: Float64s
    at_most: Float64s


def chances_of(encoded: EncodedSubscriptions, grid: SlotGrid, vocabulary: Vocabulary) -> Chances:
    """Estimate how often every check holds."""
    chance = np.empty(len(encoded.term))
    stamped = encoded.term >= 0
    chance[stamped] = vocabulary.chances(encoded.term[stamped])
    among = ~stamped & (encoded.slot == -1)
    count = (encoded.high - encoded.low)[among]
    check = np.repeat(np.arange(len(count)), count)
    members = encoded.members[run_indexes(encoded.low[among], count)]
    chance[among] = np.bincount(check, vocabulary.chances(members), minlength=len(count))
    compared = ~stamped & (encoded.slot >= 0)
    slots, at_most = encoded.slot[compared], chance.copy()
    chance[compared] = vocabulary.slot_chances(slots) * grid.share[compared]
    at_most[compared] = vocabulary.slot_chances(slots, 1.0) * grid.share[compared]
    return Chances(chance, at_most)


class PostedChecks(NamedTuple):
    """The checks that are posted, in order of their rows, and the predicates they are under."""

    check: Int64s
    key: Int64s  # a term, or ~slot
    single: Bools  # not one of several members


def post_checks(encoded: EncodedSubscriptions, checks: AnyArray) -> PostedChecks:
    """Post each of these checks once, but an `in` under every member."""
    term, slot = encoded.term[checks].astype(np.int64), encoded.slot[checks].astype(np.int64)
    among = (term < 0) & (slot < 0)
    count = np.where(among, encoded.high[checks] - encoded.low[checks], 1)
    check = np.repeat(checks, count)
    single = np.repeat(~among, count)
    key = np.repeat(np.where(term >= 0, term, ~slot), count)
    key[~single] = encoded.members[run_indexes(encoded.low[checks][among], count[among])]
    return PostedChecks(check.astype(np.int64), key, single)


def build_postings(posted: PostedChecks, entries: AnyArray, grid: SlotGrid) -> Postings:
    """Build the posting lists; `entries` has one row per posted check."""
    keys = np.unique(posted.key[posted.key >= 0])
    places = 1 << (3 * len(keys) // 2 + 1).bit_length()  # at most two thirds full
    used = grid.cells > 0
    nodes_by_slot = [level_starts(cells)[-1] for cells in grid.cells[used].tolist()]
    total = places + sum(nodes_by_slot)
    heads = np.full(3 * (total + 1), -1, np.int32)
    table = fill_hash_table(keys, heads, places - 1)
    nodes = np.zeros(len(grid.cells), np.int32)
    nodes[used] = places + np.cumsum([0, *nodes_by_slot])[:-1]
    stamped = posted.key >= 0
    lists = np.empty(len(posted.key), np.int64)
    lists[stamped] = table[np.searchsorted(keys, posted.key[stamped])]
    lists[~stamped] = nodes[~posted.key[~stamped]] + grid.node[posted.check[~stamped]]
    out: Int32s = np.empty(entries.size, np.int32)
    fill_postings(lists, entries.astype(np.int32).ravel(), entries.shape[1], heads, out)
    return Postings(heads, out, places - 1, grid.cells, nodes, grid.edges_from, grid.edges)
