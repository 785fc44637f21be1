"""Array layout of the rules of many subscribers with one policy.

Each subscriber has a row. The rule at place p of its chain has line `row * places + p`:

    by row    heads  SENT DEADLINE (the first end of its lines)              int64
              paused                                                         int8
    by line   end                                                            int64
              lists  HELD SLAB SLAB_CLASS                                    int32
    by ring   rings  PASSED CHOSEN BEFORE RING RING_CLASS FRONT SIZE         int32

Only `different` and `quota`, which come first in a chain, remember something: the rule at place p
of a row has ring `row * ringed + p`. So a quota takes 48 bytes until something is held or chosen,
and quiet hours take 20. Lists and rings lie in slabs of pools that the group shares:

    held      SLAB                             RING   quota: the last ranks; different: what was got
              | capacity of SLAB_CLASS |       |newest .. |free| FRONT = oldest .. |
              by position in the list: value float64, nth int32; HELD positions, best first
              by cell: (EVENT .. ARRIVAL) int64; rank, score float64

The event at a position is in the nth cell of the slab, so an insertion shifts 12 bytes for each
event behind it instead of 88. Positions behind the list have the free cells.

Cell 0 belongs to no list: it holds the pick that a window has just chosen.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int8s, Int32s, Int64s, UInt8s, UInt16s
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import DecayCodes, EventColumns, FeatureColumns, Slabs

DIFFERENT, QUOTA, QUIET, OWED = range(4)
"""Kinds of lines. OWED is what old rules let pass when they were replaced: it is due at once."""

SENT, DEADLINE = range(2)
"""Columns of `heads`: how many deliveries there were, and when something is due, or FAR."""
HEAD_WIDTH: Final = 2
HELD, SLAB, SLAB_CLASS = range(3)
"""Columns of `lists`: the length; the start and the class of the slab, -1 if there is none."""
LIST_WIDTH: Final = 3
PASSED, CHOSEN, BEFORE, RING, RING_CLASS, FRONT, SIZE = range(7)
"""Columns of `rings`: what passed a quota and what the window chose in the period, and chose in the
one before; the start and the class of the slab, -1 if there is none; the oldest entry, and how many
there are."""
RING_WIDTH: Final = 7
MOST_CELLS: Final = (1 << 31) - 1
"""The cells of a pool that an int32 can refer to: 10 million full rings of ranks."""

EVENT, HANDLE, POSITION, WINDOW_START, WINDOW_STOP, WIDTH, AT, ARRIVAL = range(8)
"""Columns of a held cell. The first six are those of a delivery, in its order; ARRIVAL counts the
events that were held."""
COPIED: Final = 6
CELL_WIDTH: Final = 8

VERDICT_SUBSCRIBER, VERDICT_PLACE, REASON, VERDICT_EVENT, VERDICT_AT, UNTIL, OTHER = range(7)
DETAIL, LEFT = 7, 8
"""Columns of a verdict. UNTIL and OTHER are NONE if there is none. DETAIL is the time at which the
other was got (TOO_NEAR), the number of better ones that are held (EXPECTED), the end of the period
(USED_UP), or the slot of a better one (QUIET_OUTRANKED); LEFT is what is left of the quota."""
VERDICT_WIDTH: Final = 9
TOO_NEAR, EXPECTED, OUTRANKED, USED_UP, FILLS, QUIET_HOURS, QUIET_OUTRANKED, QUIET_BEST = range(8)
"""Reasons of verdicts."""
NONE: Final = -(1 << 62)

NEXT, PICK, OUT, VERDICTS, STOP, PLACE, WANTED, MISSING_US, JUDGED, MOVED, PREFERRED = range(11)
SUBSCRIBER: Final = 11
"""Progress: the next turn and pick, how much is written, why the kernel stopped; for the caller the
place and number of events to make room for, the instant whose period is unknown, the pick whose
distances the caller has measured, how often a deadline has moved, one more than the diversifier has
chosen of the list that is released, or 0, and the subscriber of the turn."""
PROGRESS_WIDTH: Final = 12
DONE, ROOM, CALENDAR, CHOICE, DISTANCES, RANKS = range(6)
"""Reasons to stop: nothing is left, pools or buffers are full, a period is unknown, the diversifier
must choose, a distance without a kernel must be measured, or packed ranks lack a value."""

NIBBLE, PAIR, WHOLE = 4, 16, 64
"""Bits of a cell that has one of 16 ranks, one of many, and the rank itself."""
REMEMBERED: Final = 200
"""The number of chosen ranks from which a quota expects what is still to come."""


class RuleCodes(NamedTuple):
    """Rules as numbers, by place."""

    kind: Int64s
    limit: Int64s  # n of a quota
    first: Int8s  # 1 if a quota passes what comes first
    urgent: Float64s  # infinite if nothing is urgent
    length: Int64s  # of equal periods; 0 if spans follow a calendar
    least: Float64s  # the least distance
    within: Int64s
    measured: Int8s  # 1 if the caller measures distances


class ChainCodes(NamedTuple):
    """What the rules of a policy have in common."""

    k: int
    best_only: bool  # rank alone decides
    asks: bool  # some distance is measured by the caller
    remembers: bool  # some rule is a quota, which remembers ranks
    ringed: int  # the number of rules with a ring: the first ones
    holding: int  # the place of the first rule that may hold something
    decay: DecayCodes


class CalendarSpans(NamedTuple):
    """Periods or quiet hours by place: those from first[p] to first[p + 1], in order.

    They are complete for the instants from known[p, 0] to known[p, 1], exclusive.

    Events come in order of time, so the last answer is nearly always the next one as well. It is
    kept in latest[p]: the span, or -1 between two, and the instants for which that holds.
    """

    start: Int64s
    end: Int64s
    first: Int64s
    known: Int64s
    latest: Int64s  # LATEST_SPAN LATEST_LOW LATEST_HIGH


LATEST_SPAN, LATEST_LOW, LATEST_HIGH = range(3)
LATEST_WIDTH: Final = 3


class HeldPool(NamedTuple):
    """Events that are held."""

    cell: Int64s
    value: Float64s  # what a list is sorted by: the rank (quota), or the key of the score (quiet)
    nth: Int32s
    rank: Float64s
    score: Float64s
    slabs: Slabs
    arrivals: Int64s  # one number: events held so far


class RankPool(NamedTuple):
    """The last ranks that windows chose; see `packed_ranks`. The first three are one memory."""

    packed: UInt8s  # codes, two in each byte if a cell has NIBBLE bits
    paired: UInt16s  # codes, if a cell has PAIR bits
    whole: Float64s  # the ranks themselves, if a cell has WHOLE bits
    bits: Int64s  # one number: the bits of a cell
    values: Float64s  # the different ranks in order, unless cells are whole
    codes: Int64s  # of the values, ascending as well
    slabs: Slabs


class GotPool(NamedTuple):
    """The events that subscribers got, and when.

    Most are got when they are published, which the table of events knows. Only for the others, with
    ~slot instead of slot, the time is read: it would be one more miss of the cache for each.
    """

    us: Int64s
    slot: Int32s
    slabs: Slabs


class MeasuredGaps(NamedTuple):
    """The nearest received event, by place, as the caller has measured it."""

    nearest: Int64s  # its place in the ring from the oldest on; -1 if there is none
    gap: Float64s


class KeptGaps(NamedTuple):
    """Distances from one event to others, by their slots.

    One event is picked for many subscribers in a row, and most of them got the same others before.
    Once as much has been read of their rings as there are events, all gaps are measured: mostly no
    event is near, and the other rings need not be read.
    """

    state: Int64s  # KEPT_SLOT: whose distances these are, or -1; KEPT_TURN: their number; KEPT_READ
    turn: Int64s  # by slot: the number for which the gap was measured
    gap: Float64s
    least: Float64s  # one number: the least gap to another event; -inf until all are measured


KEPT_SLOT, KEPT_TURN, KEPT_READ = range(3)
"""KEPT_READ: how many entries of rings have been compared with the event."""
KEPT_WIDTH: Final = 3


class RuleArrays(NamedTuple):
    """The rules of all subscribers of a group."""

    heads: Int64s
    paused: Int8s
    end: Int64s  # of the period (quota), of quiet hours; `different`: compare what is newer
    lists: Int32s
    rings: Int32s
    held: HeldPool
    ranks: RankPool
    got: GotPool
    codes: RuleCodes
    chain: ChainCodes
    spans: CalendarSpans
    events: EventColumns
    features: FeatureColumns
    gaps: MeasuredGaps
    kept: KeptGaps
    partials: Float64s  # scratch for exact sums


class Turns(NamedTuple):
    """Calls of rules, in order: each passes on some picks of a row, and moves its clock to `us`."""

    row: Int32s
    subscriber: Int64s
    us: Int64s
    order: Int64s
    first: Int64s  # the picks of turn i are those from first[i] to first[i + 1]

    def first_ones(self, count: int) -> "Turns":
        """Return the first turns."""
        by_turn = self.subscriber[:count], self.us[:count], self.order[:count]
        return Turns(self.row[:count], *by_turn, self.first[: count + 1])


class Picks(NamedTuple):
    """What windows chose: delivery columns, ranks and scores."""

    columns: Int64s
    rank: Float64s
    score: Float64s


class RuleOutput(NamedTuple):
    """Buffers that the kernel writes to."""

    columns: Int64s
    ranks: Float64s
    verdicts: Int64s
    figures: Float64s  # of verdicts: the distance, or how many better ones are expected
    moved: Int32s  # rows whose deadlines moved, as many as there is room for
    progress: Int64s


@inlined
def judge(arrays: RuleArrays, output: RuleOutput, place: int, cell: int, reason: int) -> int:
    """Write the verdict on the event of a cell, at the time of the cell; return its index."""
    # Rows are not cleared between runs, so each column is written; callers fill in what they know.
    verdicts, index = output.verdicts, output.progress[VERDICTS]
    verdicts[index, VERDICT_SUBSCRIBER] = output.progress[SUBSCRIBER]
    verdicts[index, VERDICT_PLACE] = place
    verdicts[index, REASON] = reason
    verdicts[index, VERDICT_EVENT] = arrays.held.cell[cell, EVENT]
    verdicts[index, VERDICT_AT] = arrays.held.cell[cell, AT]
    verdicts[index, UNTIL], verdicts[index, OTHER] = NONE, NONE
    verdicts[index, DETAIL], verdicts[index, LEFT], output.figures[index] = NONE, 0, 0.0
    output.progress[VERDICTS] = index + 1
    return index
