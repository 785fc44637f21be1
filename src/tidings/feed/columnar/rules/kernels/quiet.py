"""The rule `quiet` for many subscribers; see `tidings.rules.quiet`."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.decay import order_key
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
)
from tidings.feed.columnar.rules.kernels.spans import span_at
from tidings.feed.columnar.rules.kernels.verdicts import judge


@inlined
def drop_behind(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, kept: int, us: int
) -> None:
    """Drop all held events but the first ones."""
    line = row * len(arrays.codes.kind) + place
    for position in range(kept, arrays.lists[line, HELD]):
        cell = list_cell(arrays, line, position)
        index = judge(arrays, output, place, cell, QUIET_OUTRANKED)
        output.verdicts[index, VERDICT_AT] = us
        if kept > 0:
            output.verdicts[index, DETAIL] = arrays.held.cell[list_cell(arrays, line, 0), EVENT]
    arrays.lists[line, HELD] = min(kept, arrays.lists[line, HELD])


@inlined
def offer_quiet(arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int) -> bool:
    """Offer an event; return whether it passes. There must be room to hold it.

    If rank alone decides, the list is sorted, and cut to k when it is longer than 2 k.
    """
    line, pool, chain = row * len(arrays.codes.kind) + place, arrays.held, arrays.chain
    at, slot = pool.cell[cell, AT], pool.cell[cell, EVENT]
    nth = span_at(arrays.spans, place, at)
    if nth < 0 or pool.rank[cell] >= arrays.codes.urgent[place]:
        return True
    key = order_key(chain.decay, pool.score[cell], arrays.events.us[slot])
    # A diversifier chooses among all of them in the end, so those come as they came.
    position = arrays.lists[line, HELD] + 0
    if chain.best_only:
        position = list_position(arrays, line, key, slot)
    insert_cell(arrays, line, position, cell, key)
    arrays.end[line] = arrays.spans.end[nth]
    index = judge(arrays, output, place, cell, QUIET_HOURS)
    output.verdicts[index, UNTIL] = arrays.spans.end[nth]
    # By key alone, the order never changes again: what is behind the k best cannot be delivered.
    if chain.best_only and arrays.lists[line, HELD] > 2 * chain.k:
        drop_behind(arrays, output, row, place, chain.k, at)
    return False
