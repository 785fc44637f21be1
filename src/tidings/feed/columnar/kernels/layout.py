"""How the windows of many subscribers lie in arrays: who has what, and where.

A row of `head` is one subscriber. Its entries lie in a slab of the pools `key`, `score` and `who`,
best first; the matches that its window holds in a slab of `ring`, oldest first. Without decay
`score` is the same array as `key`. Slabs come in classes of growing size, listed in `room`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]

Book = tuple[Ints, Floats, Floats, Ids, Ids, Ints, Ints]
"""head, key, score, who, ring, room, used."""
Events = tuple[Ints, Ints, Ints]
"""Of each event slot: published_us, sequence, and the order of ids among equal times."""
Plan = tuple[Ints, Floats, Floats]
"""What the policy says: numbers, the decay, and scratch for ranks and sums."""
World = tuple[Book, Events, Plan]
Sink = tuple[Ints, Floats, Ints, Ints]
"""Deliveries: numbers and ranks; the ends that were set, as (row, end); and what is used up."""
Offers = tuple[Ids, Ids, Floats, Ids, Ints]
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
