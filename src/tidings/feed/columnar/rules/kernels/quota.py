"""The rule `quota` for many subscribers; see `tidings.rules.quota`."""

from typing import NamedTuple

from tidings.compiled.jit import inlined
from tidings.compiled.rounding import rounded
from tidings.feed.columnar.rules.kernels.held_list import (
    count_above,
    insert_cell,
    list_cell,
    list_position,
)
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    BEFORE,
    CHOSEN,
    DETAIL,
    EVENT,
    EXPECTED,
    HELD,
    LEFT,
    OTHER,
    OUTRANKED,
    PASSED,
    SIZE,
    UNTIL,
    USED_UP,
    VERDICT_AT,
    RuleArrays,
    RuleOutput,
    judge,
)
from tidings.feed.columnar.rules.kernels.rings import count_ranks_above, push_rank
from tidings.feed.columnar.rules.kernels.spans import span_at


class OpenPeriod(NamedTuple):
    """The period that contains an instant."""

    start: int
    end: int


@inlined
def period_at(arrays: RuleArrays, place: int, us: int) -> OpenPeriod:
    """Return the period of an instant, which must be known."""
    length = arrays.codes.length[place]
    if length > 0:
        start = us - us % length
        return OpenPeriod(start, start + length)
    nth = span_at(arrays.spans, place, us)
    return OpenPeriod(arrays.spans.start[nth], arrays.spans.end[nth])


@inlined
def enter_period(arrays: RuleArrays, row: int, place: int, us: int) -> None:
    """Begin the period of an instant, if it is a new one."""
    line = row * len(arrays.codes.kind) + place
    before = arrays.end[line]
    if us < before:
        return
    rings, ring = arrays.rings, row * arrays.chain.ringed + place
    period = period_at(arrays, place, us)
    # Only the period just before says what to expect; after a gap, as in the first, nothing does.
    rings[ring, BEFORE] = rings[ring, CHOSEN] if period.start == before else 0
    rings[ring, PASSED], rings[ring, CHOSEN] = 0, 0
    arrays.end[line] = period.end


@inlined
def may_hold(arrays: RuleArrays, row: int, place: int, us: int) -> bool:
    """Return whether a quota may hold something at an instant.

    It holds nothing before a period has shown how much is to be expected.
    """
    line, ring = row * len(arrays.codes.kind) + place, row * arrays.chain.ringed + place
    before = arrays.rings[ring, BEFORE if us < arrays.end[line] else CHOSEN]
    return arrays.lists[line, HELD] > 0 or before > 0


class BetterOnes(NamedTuple):
    """How many higher ranks are held, and how many more are expected."""

    held: int
    expected: float


@inlined
def better_ones(arrays: RuleArrays, row: int, place: int, cell: int, left: int) -> BetterOnes:
    """Return how many events of the period are above the one in a cell.

    If even all that are expected leave something for it, they are not compared with it.
    """
    line, ring = row * len(arrays.codes.kind) + place, row * arrays.chain.ringed + place
    rings, rank, expected = arrays.rings, arrays.held.rank[cell], 0.0
    held = count_above(arrays, line, rank)
    if rings[ring, BEFORE] > 0 and rings[ring, SIZE] > 0:
        # Where a period begins follows from its end, so that it takes no bytes.
        period = period_at(arrays, place, arrays.end[line] - 1)
        share_left = (period.end - arrays.held.cell[cell, AT]) / (period.end - period.start)
        expected = rings[ring, BEFORE] * share_left
        # Most events of a quiet day stop here, and their up to 200 ranks are not read.
        if rounded(held + expected) >= left:
            share_above = count_ranks_above(arrays, ring, rank) / rings[ring, SIZE]
            expected = rings[ring, BEFORE] * share_left * share_above
    return BetterOnes(held, expected)


@inlined
def drop_worst(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int, left: int
) -> None:
    """Drop the worst held event, whose place is taken by the one in a cell."""
    line = row * len(arrays.codes.kind) + place
    arrays.lists[line, HELD] -= 1
    worst = list_cell(arrays, line, arrays.lists[line, HELD])
    index = judge(arrays, output, place, worst, OUTRANKED)
    output.verdicts[index, VERDICT_AT] = arrays.held.cell[cell, AT]
    output.verdicts[index, OTHER] = arrays.held.cell[cell, EVENT]
    output.verdicts[index, LEFT] = left


@inlined
def offer_quota(arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int) -> bool:
    """Offer an event; return whether it passes. There must be room to hold it."""
    line, ring = row * len(arrays.codes.kind) + place, row * arrays.chain.ringed + place
    lists, codes = arrays.lists, arrays.codes
    enter_period(arrays, row, place, arrays.held.cell[cell, AT])
    left = max(0, codes.limit[place] - arrays.rings[ring, PASSED])
    if left == 0:
        index = judge(arrays, output, place, cell, USED_UP)
        output.verdicts[index, DETAIL] = arrays.end[line]
        return False
    rank, slot = arrays.held.rank[cell], arrays.held.cell[cell, EVENT]
    above, passes = BetterOnes(0, 0.0), True
    if not codes.first[place] and rank < codes.urgent[place]:
        above = better_ones(arrays, row, place, cell, left)
        passes = rounded(above.held + above.expected) < left
    if passes:
        arrays.rings[ring, PASSED] += 1
        # No more is held than could still pass.
        if lists[line, HELD] > left - 1:
            drop_worst(arrays, output, row, place, cell, left - 1)
        return True
    position = list_position(arrays, line, rank, slot)
    if position >= left:  # as many better ones are held as are left: it can never pass
        index = judge(arrays, output, place, cell, OUTRANKED)
        output.verdicts[index, LEFT] = left
        return False
    if lists[line, HELD] == left:
        drop_worst(arrays, output, row, place, cell, left)
    insert_cell(arrays, line, position, cell, rank)
    index = judge(arrays, output, place, cell, EXPECTED)
    output.verdicts[index, UNTIL] = arrays.end[line]
    output.verdicts[index, DETAIL], output.verdicts[index, LEFT] = above.held, left
    output.figures[index] = above.expected
    return False


@inlined
def count_choice(arrays: RuleArrays, row: int, place: int, cell: int) -> None:
    """Count a choice of the window, and remember its rank; there must be room."""
    # Called after the decision, which reads the ranks before this one; also for what was dropped.
    ring = row * arrays.chain.ringed + place
    enter_period(arrays, row, place, arrays.held.cell[cell, AT])
    arrays.rings[ring, CHOSEN] += 1
    push_rank(arrays, ring, arrays.held.rank[cell])
