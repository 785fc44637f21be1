"""The rule `quiet` for many subscribers; see `tidings.rules.quiet`."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.timing import order_key
from tidings.feed.columnar.rules.kernels.held_list import (
    insert_cell,
    list_cell,
    list_position,
)
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    DETAIL,
    EVENT,
    HELD,
    QUIET_HOURS,
    QUIET_OUTRANKED,
    UNTIL,
    VERDICT_AT,
    RuleArrays,
    RuleOutput,
    judge,
)
from tidings.feed.columnar.rules.kernels.spans import span_at


@inlined
def drop_outranked(
    arrays: RuleArrays, output: RuleOutput, place: int, cell: int, us: int, better: int
) -> None:
    """Write that the event of a cell is dropped, since the one of another cell is better."""
    index = judge(arrays, output, place, cell, QUIET_OUTRANKED)
    output.verdicts[index, VERDICT_AT] = us
    output.verdicts[index, DETAIL] = arrays.held.cell[better, EVENT]


@inlined
def drop_behind(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, kept: int, us: int
) -> None:
    """Drop all held events but the first ones."""
    line = row * len(arrays.codes.kind) + place
    for position in range(kept, arrays.lists[line, HELD]):
        cell = list_cell(arrays, line, position)
        if kept > 0:
            drop_outranked(arrays, output, place, cell, us, list_cell(arrays, line, 0))
        else:
            index = judge(arrays, output, place, cell, QUIET_OUTRANKED)
            output.verdicts[index, VERDICT_AT] = us
    arrays.lists[line, HELD] = min(kept, arrays.lists[line, HELD])


@inlined
def offer_quiet(arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int) -> bool:
    """Offer an event; return whether it passes. There must be room to hold it.

    If rank alone decides, the list is sorted, and never longer than k: by key alone the order does
    not change, so what is behind the k best cannot be delivered.
    """
    line, pool, chain = row * len(arrays.codes.kind) + place, arrays.held, arrays.chain
    at, slot, lists = pool.cell[cell, AT], pool.cell[cell, EVENT], arrays.lists
    nth = span_at(arrays.spans, place, at)
    if nth < 0 or pool.rank[cell] >= arrays.codes.urgent[place]:
        return True
    index = judge(arrays, output, place, cell, QUIET_HOURS)
    output.verdicts[index, UNTIL] = arrays.spans.end[nth]
    arrays.end[line] = arrays.spans.end[nth]
    key = order_key(chain.decay, pool.score[cell], arrays.events.us[slot])
    # A diversifier chooses among all of them in the end, so those come as they came.
    position = lists[line, HELD] + 0
    if chain.best_only:
        position = list_position(arrays, line, key, slot)
        if lists[line, HELD] >= chain.k:
            # Only the worst one is read: its cell is the one that was prefetched.
            worst = list_cell(arrays, line, lists[line, HELD] - 1)
            if position >= chain.k:
                drop_outranked(arrays, output, place, cell, at, worst)
                return False
            drop_outranked(arrays, output, place, worst, at, cell)
            lists[line, HELD] -= 1
    insert_cell(arrays, line, position, cell, key)
    return False
