"""Turns of a run: what windows chose from an offer is one of them."""

from typing import Final, NamedTuple

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import kernel
from tidings.compiled.simd import prefetch
from tidings.feed.columnar.rules.kernels.layout import Turns

AHEAD: Final = 16
"""Picks ahead for which the numbers of a subscriber are requested: they lie anywhere in memory."""


class RuleNumbers(NamedTuple):
    """The group of a call, and the group and row of each subscriber."""

    group: int
    groups: Int32s
    rows: Int32s


@kernel
def choice_turns(
    order: Int64s,
    subscriber: AnyArray,
    rules: RuleNumbers,
    slots: Int32s,
    us: Int64s,
    turns: Turns,
) -> int:
    """Write the turns of picks, given by the offer from which each was chosen; return how many.

    Return -1 if a subscriber belongs to another group. `slots` is by offer, and `us` by slot.
    """
    # One pass instead of a dozen array operations, each of which has a fixed cost.
    count, last = 0, len(order) - 1
    for pick in range(len(order)):
        ahead = int64(subscriber[min(pick + AHEAD, last)])
        prefetch(rules.groups, ahead)
        prefetch(rules.rows, ahead)
        owner = int64(subscriber[pick])
        if rules.groups[owner] != rules.group:
            return -1
        if pick == 0 or order[pick] != order[pick - 1]:
            turns.row[count], turns.subscriber[count] = rules.rows[owner], owner
            turns.order[count], turns.us[count] = order[pick], us[slots[order[pick]]]
            turns.first[count] = pick
            count += 1
    turns.first[count] = len(order)
    return count
