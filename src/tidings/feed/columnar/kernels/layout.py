"""Array layout of the windows of many subscribers: one set of names for ranked and diverse cohorts.

Every subscriber of a cohort has one row of counters in `head`; its entries live in a slab of pools
that the cohort shares. A ranked cohort keeps what can still be delivered, best first, and the whole
window only as a ring of event slots. A diverse cohort prunes nothing, because an entry of low rank
can win by its distance, so its slab holds the whole window:

    head      SEEN SENT END HELD SLAB SLAB_CLASS | FIRST SIZE RING RING_CLASS FRONT   (ranked)
                                                 | LAST  CHOSEN                       (diverse)

    ranked    SLAB                                      RING
              |free| FIRST ... FIRST + SIZE - 1 |free|  |newest .. |free| FRONT = oldest .. |
              key, score: float64; entry: (SLOT, MATCHED, MARK) int32     ring: int32 event slots

    diverse   SLAB
              | ... LAST = newest | oldest ... |        slot, handle: int32; score: float64
                                                        mark: int64, 0 where the place is free

One row of `head` is at most 88 bytes, two cache lines, which prefetching can hide. Shared pools
take 5 to 69 times fewer bytes than one object for each subscriber.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.diversify.kernels.distances import SortedRows

SEEN, SENT, END, HELD, SLAB, SLAB_CLASS = range(6)
"""Counters of matches seen, deliveries and matches held; the end of the open period or step, or
NEVER; the start of the slab in the pools, and its size class, -1 if there is none."""
FIRST, SIZE, RING, RING_CLASS, FRONT = range(6, 11)
RANKED_WIDTH: Final = 11
COUNT, OLDEST_US, NEWEST_US = HELD, RING, FRONT
"""Periodic windows need no ring: they count matches, and note the oldest and the newest time."""
LAST, CHOSEN = 6, 7
"""The place of the newest match, and how many places of the last choice are still valid; with
LSH votes, 1 if the votes are up to date."""
DIVERSE_WIDTH: Final = 8

SLOT, MATCHED, MARK = range(3)
"""Columns of a ranked entry: event slot, handle of the matched subscriptions, and mark."""
DONE: Final = 1
"""Lowest bit of a mark: delivered, or passed over for good. The bits above count the newer and
better matches (ranked), or are the number of the match among those seen (history and diverse)."""
NUMBER_MASK: Final = (1 << 30) - 1
"""Ranked histories number matches modulo 2^30, which is longer than any count window."""

SLIDING, CONTINUOUS, BEST, PERIODIC, JUMPING, HISTORY = range(6)
"""Windows; BEST is a continuous one without expiry."""
EVER, MATCHING, PUBLISHED, TIME = range(4)
"""Axes that windows and steps are measured on: none, matches, publications, microseconds."""

ORDER, ROW, EVENT, HANDLE, POSITION, START, STOP, WIDTH, NUMBER, DECIDED = range(10)
"""Columns of a delivery; ORDER is the index of the offer that caused it, START to WIDTH are the
times and the size of the window, NUMBER counts the deliveries of the subscriber."""
DELIVERY_WIDTH: Final = 10
NEXT, OUT, ENDS = range(3)
"""Progress of a kernel: the next offer, and the deliveries and ends written so far."""

NEVER: Final = -(1 << 62)
"""The end of a period or step where none is open."""
FAR: Final = 1 << 62
"""A position beyond every axis."""

NEAREST, LEAST, SUM, MEAN, COUNTED, RELEVANT, VOTES, OPTIMAL = range(8)
"""Rules of choice: greedy growth by four measures, covers by count and by rank, LSH votes, and the
search through all sets."""


class EventColumns(NamedTuple):
    """The columns of the event table, by event slot, and the calendar that they fall into."""

    us: Int64s
    sequence: Int64s
    id_order: Int64s  # rises with the id: among events of one time (ranked), or all (diverse)
    period_ends: Int64s  # of calendar periods, in order: those of all events that are offered


class PolicyCodes(NamedTuple):
    """The size and the window of a policy, as numbers."""

    k: int
    window: int
    axis: int
    length: int
    step_axis: int
    step: int
    origin: int
    leave: bool  # delivered matches leave the window
    wait: bool  # nothing is delivered before there are k matches
    strict: bool  # a history swaps only for a gain
    prune: bool  # entries that k newer ones beat are dropped
    capped: bool  # only the k best are kept


class DecayCodes(NamedTuple):
    """A decay as numbers."""

    kind: int
    parameter: float  # rate or exponent
    landmark: float  # in seconds


class DiversityCodes(NamedTuple):
    """A diversifier as numbers."""

    rule: int
    sigma: float
    kept_width: int  # kept choices per row; -1 for as many as the slab; 0 if none are kept


class SearchCodes(NamedTuple):
    """A rule of choice that is not greedy, as numbers."""

    rule: int
    alpha: float  # the radius of covers; negative if it is left open


class Slabs(NamedTuple):
    """A pool cut into slabs of a few size classes; free slabs of a class form a linked list."""

    capacity: Int64s  # by class
    free: Int64s  # by class: the first free slab, or -1
    used: Int64s  # one number: the cells in use, free slabs included


class RankedWindows(NamedTuple):
    """The windows of a cohort without diversity."""

    head: Int64s
    key: Float64s  # what entries are sorted by
    score: Float64s  # the same array as `key` unless scores decay
    entry: Int32s
    ring: Int32s
    list_slabs: Slabs
    ring_slabs: Slabs
    disorder: Int64s  # one number: 1 if some ring is not sorted by time
    events: EventColumns
    policy: PolicyCodes
    decay: DecayCodes
    ranks: Float64s  # scratch for the members of a history, and one more
    partials: Float64s  # scratch for exact sums


class LastChoice(NamedTuple):
    """The kept part of the last choice of each window; columns that are not needed are empty."""

    place: Int32s  # in the order of choice, from `choice_start` of a row on
    value: Float64s
    votes: Int32s  # by place of the pools


class FeatureColumns(NamedTuple):
    """The features of events that choices depend on."""

    rows: SortedRows  # token hashes
    row: Int64s  # by event slot: its row there
    band_row: Int64s  # by event slot: the row of its LSH bands
    bands: UInt64s


class Scratch(NamedTuple):
    """Buffers for one choice; the first five are indexed by place of the window."""

    us: Int64s
    rank: Float64s
    link: Float64s  # the distances to the chosen, combined by the rule
    features: Int64s
    linked: Int64s  # to how many of the chosen it is linked; -1 if it is not a candidate
    chosen: Int32s
    value: Float64s
    partials: Float64s
    distances: Float64s  # of the members of a history
    winners: Int64s  # by LSH table


class DiverseBuffer(NamedTuple):
    """The matches that the windows of a cohort with a diversifier hold."""

    head: Int64s
    slot: Int32s
    handle: Int32s
    score: Float64s
    mark: Int64s
    slabs: Slabs


class DiverseWindows(NamedTuple):
    """The windows of a cohort with a diversifier."""

    buffer: DiverseBuffer
    last: LastChoice
    events: EventColumns
    features: FeatureColumns
    policy: PolicyCodes
    decay: DecayCodes
    diversity: DiversityCodes
    scratch: Scratch


class Offers(NamedTuple):
    """Matches that are offered, in order of publication."""

    row: Int32s
    slot: Int32s
    score: Float64s
    handle: Int32s
    sequence: Int64s  # publications so far


class Arrival(NamedTuple):
    """One match of `Offers`."""

    slot: int
    score: float
    handle: int
    sequence: int


class Output(NamedTuple):
    """Buffers that kernels write to."""

    columns: Int64s  # deliveries
    ranks: Float64s
    scores: Float64s  # ranks without decay
    ends: Int64s  # (row, end) of periods and steps that were opened
    progress: Int64s


class WindowExtent(NamedTuple):
    """The window behind a delivery: its times, its size, and when the choice was made."""

    start_us: int
    stop_us: int
    width: int
    decided_us: int


class AxisRange(NamedTuple):
    """A half-open range of positions on an axis."""

    axis: int
    low: int
    high: int


# Slab allocator: pools are handed out in slabs of a few size classes.
#
#     pool    | slab of class 2 | slab of class 0 | free slab of class 2 | ... used | not cut yet |
#                                                   first cell: start of the next free slab, or -1
#
# Each class is a quarter larger than the one before, so at most a fifth of a full slab is empty,
# and copying into larger slabs costs O(1) for each entry on average.


@inlined
def capacity_of(slabs: Slabs, size_class: int) -> int:
    """Return the capacity of a class; 0 for -1, the class of a row without a slab."""
    return int64(slabs.capacity[size_class]) if size_class >= 0 else int64(0)


@inlined
def take_slab(slabs: Slabs, links: Int32s | Float64s, size_class: int) -> int:
    """Return the start of a slab, or -1 if the pool is full.

    `links` is the column of the pool whose cells link the free slabs of a class. A float64 holds
    the start of every slab exactly.
    """
    start = slabs.free[size_class]
    if start >= 0:  # reused first, so that the pool is compacted rarely
        slabs.free[size_class] = links[start]
    elif slabs.used[0] + slabs.capacity[size_class] <= len(links):
        start = slabs.used[0]
        slabs.used[0] += slabs.capacity[size_class]
    return start


@inlined
def release_slab(slabs: Slabs, links: Int32s | Float64s, start: int, size_class: int) -> None:
    """Put a slab on the free list of its class; nothing happens for class -1."""
    if size_class >= 0:
        links[start] = slabs.free[size_class]
        slabs.free[size_class] = start


# Deliveries: rows of an output buffer that ranked and diverse windows share.
#
# A kernel that runs out of room returns with its progress, and the caller makes room and calls
# again; so kernels neither allocate nor raise.


@inlined
def arrival_at(offers: Offers, index: int) -> Arrival:
    """Return one of the offers."""
    return Arrival(
        int64(offers.slot[index]),
        offers.score[index],
        int64(offers.handle[index]),
        int64(offers.sequence[index]),
    )


@inlined
def write_delivery(
    head: Int64s, output: Output, row: int, order: int, position: int, extent: WindowExtent
) -> int:
    """Write a delivery but for its event, handle and rank; return its index."""
    columns, index = output.columns, output.progress[OUT]
    head[row, SENT] += 1
    columns[index, ORDER], columns[index, ROW] = order, row
    columns[index, POSITION], columns[index, NUMBER] = position, head[row, SENT]
    columns[index, START], columns[index, STOP] = extent.start_us, extent.stop_us
    columns[index, WIDTH], columns[index, DECIDED] = extent.width, extent.decided_us
    output.progress[OUT] = index + 1
    return index
