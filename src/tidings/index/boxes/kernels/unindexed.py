"""Boxes in no order, weighed one by one: what came since an index over many was built."""

from typing import Final

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inlined, inner, kernel
from tidings.index.boxes.kernels.quantize import Alive, Asked, is_alive
from tidings.index.boxes.kernels.relaxed_blocks import held_weight
from tidings.index.boxes.kernels.score_bounds import is_over
from tidings.index.boxes.kernels.topk_heap import Found, best_offer

Pile = tuple[Float64s, Float64s, Int64s]
"""Rows as blocks have them, without weights for exact matching; what each may score at most, which
is what it scores in exact matching; the ids."""

SUM, MAX, EXACT = range(3)
CERTAIN: Final = 1.0


@inner
def all_hold(packed: Float64s, place: int, asked: Asked, row: int) -> bool:
    """Say whether every predicate of a box holds for an event; free ones have low > high."""
    below, above = asked[2], asked[3]
    for each in range(below.shape[1]):
        low, high = packed[place, 3 * each], packed[place, 3 * each + 1]
        if not (low <= below[row, each] and above[row, each] <= high) and low <= high:
            return False
    return True


@inlined
def pile_score(pile: Pile, place: int, asked: Asked, row: int, how: int) -> float:
    """Give the score of a box for an event, or -1 where it does not match."""
    if how != EXACT:
        return held_weight(pile[0], place, asked, row, how == MAX)
    return pile[1][place] if all_hold(pile[0], place, asked, row) else -1.0


@kernel
def pile_many(pile: Pile, size: int, asked: Asked, alive: Alive, how: int, found: Found) -> None:
    """Offer to each event the first `size` boxes, those that may come among its best; O(size)."""
    for row in range(len(found[2]) if found[0].shape[1] > 0 else 0):
        peak = CERTAIN if how == EXACT else asked[5][row]
        for place in range(size):
            if is_over(pile[1][place], pile[2][place], peak, found, row):
                continue
            if is_alive(alive, place):
                score = pile_score(pile, place, asked, row, how)
                if score >= 0:
                    best = (found[0], found[1], row)
                    found[2][row] = best_offer(best, found[2][row], score, pile[2][place])
