"""Turns of a run: what windows chose from an offer is one of them."""

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.rules.kernels.layout import Turns


@kernel
def choice_turns(
    order: Int64s, subscriber: AnyArray, row: Int32s, slots: Int32s, us: Int64s, turns: Turns
) -> int:
    """Write the turns of picks, given by the offer from which each was chosen; return how many.

    `row` is by subscriber, `slots` by offer, and `us` by slot.
    """
    # One pass instead of a dozen array operations, each of which has a fixed cost.
    count = 0
    for pick in range(len(order)):
        if pick == 0 or order[pick] != order[pick - 1]:
            turns.row[count], turns.order[count] = row[subscriber[pick]], order[pick]
            turns.us[count], turns.first[count] = us[slots[order[pick]]], pick
            count += 1
    turns.first[count] = len(order)
    return count
