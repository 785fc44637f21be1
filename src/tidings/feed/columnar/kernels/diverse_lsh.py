"""Votes of a window's buckets, kept up to date (ILSH, TKS 5.2): one comes, one goes.

An event has a band for each table; those with the same band are a bucket, whose most relevant one
has its vote. Bands are compared with those of the window: no buckets are kept.
"""

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import nested_inlined, nested_inner
from tidings.feed.columnar.kernels.decay import order_key
from tidings.feed.columnar.kernels.diverse_layout import BASE, CAP, GRADE, HELD, KEPT, World, newer
from tidings.feed.columnar.kernels.layout import K


@nested_inlined
def key_at(world: World, place: int) -> float:
    """Give what orders a place of the pools by rank at every time."""
    slot = world[0][1][place]
    return order_key(world[4][1], world[0][3][place], world[2][0][slot])


@nested_inner
def more_relevant(world: World, one: int, other: int) -> bool:
    """Tell whether a place of the pools goes before another: higher rank, then newer."""
    mine, theirs = key_at(world, one), key_at(world, other)
    slots = world[0][1]
    return mine > theirs or (mine == theirs and newer(world[2], slots[one], slots[other]))


@nested_inner
def find_winners(world: World, row: int, own: int, winners: Int64s) -> None:
    """Write for each table the most relevant other one in the bucket of a place, or -1."""
    head, slots, born, room = world[0][0], world[0][1], world[0][4], world[0][5]
    bands, mine = world[3][2], slots[own]
    tables, base = bands.shape[1], head[row, BASE]
    for table in range(tables):
        winners[table] = -1
    for place in range(base, base + room[head[row, GRADE], CAP]):
        if born[place] == 0 or place == own:
            continue
        theirs, same = slots[place], 0
        for table in range(tables):
            same += bands[mine, table] == bands[theirs, table]
        if same == 0:
            continue
        for table in range(tables):
            if bands[mine, table] == bands[theirs, table]:
                best = winners[table]
                if best < 0 or more_relevant(world, place, best):
                    winners[table] = place


@nested_inner
def vote_in(world: World, row: int, place: int) -> None:
    """Let a new match have the votes of the buckets in which it is the first."""
    votes, winners = world[1][2], world[5][8]
    own = world[0][0][row, BASE] + place
    find_winners(world, row, own, winners)
    votes[own] = 0
    for best in winners:
        if best < 0:
            votes[own] += 1
        elif more_relevant(world, own, best):
            votes[own] += 1
            votes[best] -= 1


@nested_inner
def vote_out(world: World, row: int, place: int) -> None:
    """Give the votes of one that goes to those that are the first then."""
    votes, winners = world[1][2], world[5][8]
    own = world[0][0][row, BASE] + place
    if votes[own] == 0:
        return
    find_winners(world, row, own, winners)
    for best in winners:
        if best >= 0 and more_relevant(world, own, best):
            votes[best] += 1


@nested_inner
def vote_anew(world: World, row: int) -> None:
    """Count the votes of a window as if its matches came one by one."""
    head, born, room, counted = world[0][0], world[0][4], world[0][5], world[5][3]
    base, cap = head[row, BASE], room[head[row, GRADE], CAP]
    for place in range(cap):
        counted[place] = born[base + place]
        born[base + place] = 0
    for place in range(cap):
        born[base + place] = counted[place]
        if counted[place] > 0:
            vote_in(world, row, place)
    head[row, KEPT] = 1


@nested_inlined
def elected(world: World, one: int, other: int) -> bool:
    """Tell whether a place of the pools goes before another: more votes, then more relevant."""
    votes = world[1][2]
    if votes[one] != votes[other]:
        return votes[one] > votes[other]
    return more_relevant(world, one, other)


@nested_inner
def choose_voted(world: World, row: int, chosen: Int32s) -> int:
    """Write the places of most votes; give how many, at most k. Fewer than k: all, by relevance."""
    head, born, room, votes = world[0][0], world[0][4], world[0][5], world[1][2]
    k, base, size = int64(world[4][0][K]), int64(head[row, BASE]), 0
    few = head[row, HELD] < k
    for place in range(base, base + room[head[row, GRADE], CAP]):
        if born[place] == 0 or (votes[place] == 0 and not few):
            continue
        at = size
        while at > 0:
            last = base + chosen[at - 1]
            ahead = more_relevant(world, place, last) if few else elected(world, place, last)
            if not ahead:
                break
            if at < k:
                chosen[at] = chosen[at - 1]
            at -= 1
        if at < k:
            chosen[at] = place - base
            size = min(k, size + 1)
    return size
