"""Buckets that elect winners, kept up to date (ILSH, TKS 5.2.6).

Each bucket is a skew heap of the events in it, found in an open table by the key of its band. Who
is on top of a bucket has its vote; slots with the same number of votes are a heap again. So an
arrival or an expiry touches its own buckets and what those change, and nothing else.
"""

from typing import Any

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.diversify.kernels.lsh import band, sign, wrapping
from tidings.diversify.kernels.skew_heap import (
    LEFT,
    RIGHT,
    Heap,
    Rank,
    skew_add,
    skew_drop,
    slot_before,
)

Table = tuple[UInt64s, Int64s]
"""The key of each place and the node on top of its bucket, -1 where the place is free."""
Votes = tuple[Int64s, Int64s, Heap]
"""Of each slot its votes; for each number of votes the top of the slots that have as many."""
State = tuple[Table, Heap, UInt64s, Votes, Rank]
"""The buckets, their heaps (a node for each slot and table), the bands of each slot, the votes, and
what ranks the slots."""


@inner
def bucket_place(table: Table, key: Any) -> int:
    """Give the place of a bucket, or the free place where it belongs."""
    keys, tops = table
    last = len(tops) - 1
    place = int64(key & np.uint64(last))
    while tops[place] >= 0 and keys[place] != key:
        place = (place + 1) & last
    return place


@inner
def close_bucket(table: Table, place: int) -> None:
    """Free a place; what was pushed on by it moves back, so that no search meets a gap."""
    keys, tops = table
    last = len(tops) - 1
    at = place
    while True:
        tops[place] = -1
        while True:
            at = (at + 1) & last
            if tops[at] < 0:
                return
            home = int64(keys[at] & np.uint64(last))
            if ((at - home) & last) >= ((at - place) & last):
                break
        keys[place], tops[place] = keys[at], tops[at]
        place = at


@inner
def set_votes(votes: Votes, rank: Rank, slot: int, count: int) -> None:
    """Move a slot among those with another number of votes; with none it is in no heap."""
    counts, tops, heap = votes
    before = counts[slot]
    if before == count:
        return
    if before > 0:
        tops[before] = skew_drop(heap, rank, 1, tops[before], slot)
    if count > 0:
        tops[count] = skew_add(heap, rank, 1, tops[count], slot)
    counts[slot] = count


@kernel
def arrive(state: State, slot: int) -> None:
    """Put a slot, whose bands and rank are written, into its buckets; O(L log n)."""
    table, heap, bands, votes, rank = state
    tables = bands.shape[1]
    won = 0
    for each in range(tables):
        node = slot * tables + each
        place = bucket_place(table, bands[slot, each])
        before = table[1][place]
        table[0][place] = bands[slot, each]
        top = skew_add(heap, rank, tables, before, node)
        table[1][place] = top
        if top == node:
            won += 1
            if before >= 0:
                loser = before // tables
                set_votes(votes, rank, loser, votes[0][loser] - 1)
    set_votes(votes, rank, slot, won)


@wrapping
def enter(state: State, slot: int, hashes: UInt64s, salts: tuple[UInt64s, UInt64s]) -> None:
    """Find the bands of a slot from the hashes of its tokens, and put it into its buckets.

    `salts` are those of the signature's rows and of the tables.
    """
    signature = np.empty(len(salts[0]), np.uint64)
    sign(hashes, (0, len(hashes)), salts[0], signature)
    band(signature, salts[1], state[2][slot])
    arrive(state, slot)


@kernel
def expire(state: State, slot: int) -> None:
    """Take a slot out of its buckets; the next of each bucket that it won gets the vote."""
    table, heap, bands, votes, rank = state
    tables = bands.shape[1]
    set_votes(votes, rank, slot, 0)
    for each in range(tables):
        node = slot * tables + each
        place = bucket_place(table, bands[slot, each])
        before = table[1][place]
        top = skew_drop(heap, rank, tables, before, node)
        if top < 0:
            close_bucket(table, place)
            continue
        table[1][place] = top
        if before == node:
            heir = top // tables
            set_votes(votes, rank, heir, votes[0][heir] + 1)


@kernel
def top_voted(votes: Votes, rank: Rank, chosen: Int64s, rim: Int64s) -> int:
    """Write the slots of most votes, then higher rank; O(k log k). Give how many there are.

    `rim` has room for one more than `chosen`: the children of what was taken, best first.
    """
    _, tops, heap = votes
    size, level, many = 0, len(tops) - 1, 0
    while size < len(chosen):
        while many == 0 and level > 0:
            if tops[level] >= 0:
                rim[0], many = tops[level], 1
            level -= 1
        if many == 0:
            break
        taken = rim[0]
        chosen[size] = taken
        size += 1
        many -= 1
        for each in range(many):
            rim[each] = rim[each + 1]
        for child in (heap[taken, LEFT], heap[taken, RIGHT]):
            if child >= 0:
                many = rim_add(rank, rim, many, child)
    return size


@inner
def rim_add(rank: Rank, rim: Int64s, many: int, slot: int) -> int:
    """Keep a slot in order among the rim, which is short."""
    at = many
    while at > 0 and slot_before(rank, slot, rim[at - 1]):
        rim[at] = rim[at - 1]
        at -= 1
    rim[at] = slot
    return many + 1
