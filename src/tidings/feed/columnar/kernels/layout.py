"""How the windows of many subscribers lie in arrays: who has what, and where.

A row of `head` is one subscriber. Its entries lie in a slab of the pools `key`, `score` and `who`,
best first; the matches that its window holds in a slab of `ring`, oldest first. Without decay
`score` is the same array as `key`. Slabs come in classes of growing size, listed in `room`.
"""

from typing import Final

from tidings.compiled.array_types import Float64s, Int32s, Int64s

Book = tuple[Int64s, Float64s, Float64s, Int32s, Int32s, Int64s, Int64s]
"""head, key, score, who, ring, room, used."""
Events = tuple[Int64s, Int64s, Int64s]
"""Of each event slot: published_us, sequence, and the order of ids among equal times."""
Plan = tuple[Int64s, Float64s, Float64s]
"""What the policy says: numbers, the decay, and scratch for ranks and sums."""
World = tuple[Book, Events, Plan]
Sink = tuple[Int64s, Float64s, Int64s, Int64s]
"""Deliveries: numbers and ranks; the ends that were set, as (row, end); and what is used up."""
Offers = tuple[Int32s, Int32s, Float64s, Int32s, Int64s]
"""Of each match: row, event slot, score, handle of what matched, number of the stream."""
Match = tuple[int, float, int, int]
"""One of them: slot, score, handle, number of the stream."""

SEEN, SENT, END, LIST, LIST_CLASS, FIRST, SIZE, RING, RING_CLASS, FRONT, HELD = range(11)
HEAD_WIDTH: Final = 11
COUNT, OLDEST_US, NEWEST_US = HELD, RING, FRONT
"""Periods have no ring: they only count, from the oldest to the newest."""

SLOT, MATCHED, MARK = range(3)
DONE: Final = 1
"""The lowest bit of a mark: delivered, or passed over. Above it: how many newer ones are better,
or, for `history`, the number of the match."""

LIST_CAP, LIST_FREE, RING_CAP, RING_FREE = range(4)
LIST_USED, RING_USED, DISORDER = range(3)

K, WINDOW, AXIS, LENGTH, STEP_AXIS, STEP, ORIGIN, LEAVE, WAIT, STRICT, PRUNE, CAPPED = range(12)
PLAN_WIDTH: Final = 12
"""`PRUNE`: what k newer and better ones have beaten goes; `CAPPED`: only the k best stay."""
SLIDING, CONTINUOUS, BEST, PERIODIC, JUMPING, HISTORY = range(6)
"""`BEST` is continuous without expiry."""
EVER, MATCHING, PUBLISHED, TIME = range(4)

AT, ROW, EVENT, HANDLE, POSITION, START, STOP, WIDTH, NUMBER, WHEN = range(10)
OUT_WIDTH: Final = 10
NEXT, OUT, ENDS = range(3)

NEVER: Final = -(1 << 62)
"""The end of a period that is not open."""

BORN_MASK: Final = (1 << 30) - 1
"""Numbers of matches are kept modulo 2^30, which is longer than any count window."""
