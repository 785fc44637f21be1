"""The rule `quota` for many subscribers; see `tidings.rules.quota`."""

from typing import NamedTuple

from tidings.compiled.jit import inlined
from tidings.compiled.rounding import rounded
from tidings.feed.columnar.rules.kernels.held_list import count_above, insert_cell, list_position
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    BEFORE,
    CHOSEN,
    DETAIL,
    END,
    EVENT,
    EXPECTED,
    HELD,
    LEFT,
    OTHER,
    OUTRANKED,
    PASSED,
    SIZE,
    SLAB,
    START,
    UNTIL,
    USED_UP,
    VERDICT_AT,
    RuleArrays,
    RuleOutput,
)
from tidings.feed.columnar.rules.kernels.rings import count_ranks_above, push_rank
from tidings.feed.columnar.rules.kernels.spans import last_span
from tidings.feed.columnar.rules.kernels.verdicts import judge


@inlined
def enter_period(arrays: RuleArrays, line: int, place: int, us: int) -> None:
    """Begin the period of an instant, if it is a new one."""
    span, count, length = arrays.span, arrays.counts, arrays.codes.length[place]
    before = span[line, END]
    if us < before:
        return
    if length > 0:
        start = us - us % length
        end = start + length
    else:
        nth = last_span(arrays.spans, place, us)
        start, end = arrays.spans.start[nth], arrays.spans.end[nth]
    # Only the period just before says what to expect; after a gap, as in the first, nothing does.
    count[line, BEFORE] = count[line, CHOSEN] if start == before else 0
    span[line, START], span[line, END] = start, end
    count[line, PASSED], count[line, CHOSEN] = 0, 0


@inlined
def may_hold(arrays: RuleArrays, line: int, us: int) -> bool:
    """Return whether a quota may hold something at an instant.

    It holds nothing before a period has shown how much is to be expected.
    """
    count = arrays.counts
    before = count[line, BEFORE] if us < arrays.span[line, END] else count[line, CHOSEN]
    return count[line, HELD] > 0 or before > 0


class BetterOnes(NamedTuple):
    """How many higher ranks are held, and how many more are expected."""

    held: int
    expected: float


@inlined
def better_ones(arrays: RuleArrays, line: int, cell: int, left: int) -> BetterOnes:
    """Return how many events of the period are above the one in a cell.

    If even all that are expected leave something for it, they are not compared with it.
    """
    span, count, rank, expected = arrays.span, arrays.counts, arrays.held.rank[cell], 0.0
    held = count_above(arrays, line, rank)
    if count[line, BEFORE] > 0 and count[line, SIZE] > 0:
        start, end = span[line, START], span[line, END]
        share_left = (end - arrays.held.cell[cell, AT]) / (end - start)
        expected = count[line, BEFORE] * share_left
        # Most events of a quiet day stop here, and their up to 200 ranks are not read.
        if rounded(held + expected) >= left:
            share_above = count_ranks_above(arrays, line, rank) / count[line, SIZE]
            expected = count[line, BEFORE] * share_left * share_above
    return BetterOnes(held, expected)


@inlined
def drop_worst(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int, left: int
) -> None:
    """Drop the worst held event, whose place is taken by the one in a cell."""
    line = row * len(arrays.codes.kind) + place
    arrays.counts[line, HELD] -= 1
    worst = arrays.span[line, SLAB] + arrays.counts[line, HELD]
    index = judge(arrays, output, row, place, worst, OUTRANKED)
    output.verdicts[index, VERDICT_AT] = arrays.held.cell[cell, AT]
    output.verdicts[index, OTHER] = arrays.held.cell[cell, EVENT]
    output.verdicts[index, LEFT] = left


@inlined
def offer_quota(arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int) -> bool:
    """Offer an event; return whether it passes. There must be room to hold it."""
    line, count, codes = row * len(arrays.codes.kind) + place, arrays.counts, arrays.codes
    enter_period(arrays, line, place, arrays.held.cell[cell, AT])
    left = max(0, codes.limit[place] - count[line, PASSED])
    if left == 0:
        index = judge(arrays, output, row, place, cell, USED_UP)
        output.verdicts[index, DETAIL] = arrays.span[line, END]
        return False
    rank, slot = arrays.held.rank[cell], arrays.held.cell[cell, EVENT]
    above, passes = BetterOnes(0, 0.0), True
    if not codes.first[place] and rank < codes.urgent[place]:
        above = better_ones(arrays, line, cell, left)
        passes = rounded(above.held + above.expected) < left
    if passes:
        count[line, PASSED] += 1
        # No more is held than could still pass.
        if count[line, HELD] > left - 1:
            drop_worst(arrays, output, row, place, cell, left - 1)
        return True
    position = list_position(arrays, line, rank, slot)
    if position >= left:  # as many better ones are held as are left: it can never pass
        index = judge(arrays, output, row, place, cell, OUTRANKED)
        output.verdicts[index, LEFT] = left
        return False
    if count[line, HELD] == left:
        drop_worst(arrays, output, row, place, cell, left)
    insert_cell(arrays, line, position, cell, rank)
    index = judge(arrays, output, row, place, cell, EXPECTED)
    output.verdicts[index, UNTIL] = arrays.span[line, END]
    output.verdicts[index, DETAIL], output.verdicts[index, LEFT] = above.held, left
    output.figures[index] = above.expected
    return False


@inlined
def count_choice(arrays: RuleArrays, line: int, place: int, cell: int) -> None:
    """Count a choice of the window, and remember its rank; there must be room."""
    # Called after the decision, which reads the ranks before this one; also for what was dropped.
    enter_period(arrays, line, place, arrays.held.cell[cell, AT])
    arrays.counts[line, CHOSEN] += 1
    push_rank(arrays, line, arrays.held.rank[cell])
