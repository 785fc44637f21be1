"""Votes of the LSH buckets of a window, kept up to date as matches come and go (ILSH, TKS 5.2).

An event has one band for each table; the events of a window with the same band form a bucket, and
the most relevant one of a bucket gets its vote. Buckets are not stored: the bands of a match are
compared with those of the window, in O(w L) for w matches and L tables.
"""

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner
from tidings.feed.columnar.kernels.decay import order_key
from tidings.feed.columnar.kernels.diverse_buffer import is_newer, places
from tidings.feed.columnar.kernels.layout import CHOSEN, HELD, SLAB, DiverseWindows


@inlined
def key_at(windows: DiverseWindows, cell: int) -> float:
    """Return the key that sorts a cell of the pools by rank at every time."""
    slot = windows.buffer.slot[cell]
    return order_key(windows.decay, windows.buffer.score[cell], windows.events.us[slot])


@inner
def is_more_relevant(windows: DiverseWindows, one: int, other: int) -> bool:
    """Return whether one cell of the pools precedes another: higher rank, then newer."""
    key, rival, slot = key_at(windows, one), key_at(windows, other), windows.buffer.slot
    return key > rival or (key == rival and is_newer(windows.events, slot[one], slot[other]))


@inner
def find_winners(windows: DiverseWindows, row: int, own: int, winners: Int64s) -> None:
    """Write for each table the most relevant other cell in the bucket of cell `own`, or -1."""
    buffer, bands = windows.buffer, windows.features.bands
    tables, start, slot = bands.shape[1], buffer.head[row, SLAB], buffer.slot[own]
    for table in range(tables):
        winners[table] = -1
    for cell in range(start, start + places(buffer, row)):
        if buffer.mark[cell] == 0 or cell == own:
            continue
        # Most pairs share no bucket; this pass has no branches, so LLVM can vectorize it.
        other, shared = buffer.slot[cell], 0
        for table in range(tables):
            shared += bands[slot, table] == bands[other, table]
        if shared == 0:
            continue
        for table in range(tables):
            if bands[slot, table] == bands[other, table]:
                best = winners[table]
                if best < 0 or is_more_relevant(windows, cell, best):
                    winners[table] = cell


@inner
def add_votes(windows: DiverseWindows, row: int, place: int) -> None:
    """Count for a new match the votes of the buckets in which it is the most relevant."""
    votes, winners = windows.last.votes, windows.scratch.winners
    own = windows.buffer.head[row, SLAB] + place
    find_winners(windows, row, own, winners)
    votes[own] = 0
    for best in winners:
        if best < 0:
            votes[own] += 1
        elif is_more_relevant(windows, own, best):  # it takes the vote over
            votes[own] += 1
            votes[best] -= 1


@inner
def remove_votes(windows: DiverseWindows, row: int, place: int) -> None:
    """Pass the votes of a match that leaves on to the next most relevant ones."""
    votes, winners = windows.last.votes, windows.scratch.winners
    own = windows.buffer.head[row, SLAB] + place
    if votes[own] == 0:
        return
    find_winners(windows, row, own, winners)
    for best in winners:
        # Where another was more relevant, the bucket had not voted for this match.
        if best >= 0 and is_more_relevant(windows, own, best):
            votes[best] += 1


@inner
def count_all_votes(windows: DiverseWindows, row: int) -> None:
    """Count the votes of a window as if its matches arrived one by one."""
    head, mark, marks = windows.buffer.head, windows.buffer.mark, windows.scratch.linked
    start, capacity = head[row, SLAB], places(windows.buffer, row)
    # A mark of 0 hides a match from the others until it arrives.
    for place in range(capacity):
        marks[place] = mark[start + place]
        mark[start + place] = 0
    for place in range(capacity):
        mark[start + place] = marks[place]
        if marks[place] > 0:
            add_votes(windows, row, place)
    head[row, CHOSEN] = 1


@inlined
def is_elected(windows: DiverseWindows, one: int, other: int) -> bool:
    """Return whether one cell of the pools precedes another: more votes, then more relevant."""
    votes = windows.last.votes
    if votes[one] != votes[other]:
        return votes[one] > votes[other]
    return is_more_relevant(windows, one, other)


@inner
def choose_elected(windows: DiverseWindows, row: int, chosen: Int32s) -> int:
    """Write the places with most votes, at most k; return how many.

    If the window holds fewer than k matches, all are chosen, the most relevant first.
    """
    buffer, votes, k = windows.buffer, windows.last.votes, windows.policy.k
    start, size = int64(buffer.head[row, SLAB]), 0
    few = buffer.head[row, HELD] < k
    for cell in range(start, start + places(buffer, row)):
        if buffer.mark[cell] == 0 or (votes[cell] == 0 and not few):
            continue
        position = size
        while position > 0:
            before = start + chosen[position - 1]
            if few:
                ahead = is_more_relevant(windows, cell, before)
            else:
                ahead = is_elected(windows, cell, before)
            if not ahead:
                break
            if position < k:
                chosen[position] = chosen[position - 1]
            position -= 1
        if position < k:
            chosen[position] = cell - start
            size = min(k, size + 1)
    return size
