"""The memtable of a live index: recent boxes in insertion order, scored one by one."""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inlined, inner, kernel
from tidings.index.boxes.kernels.quantize import CodedEvents, Liveness, is_alive
from tidings.index.boxes.kernels.relaxed_layout import packed_score
from tidings.index.boxes.kernels.score_bounds import is_over
from tidings.index.boxes.kernels.topk_heap import TopkHeaps, topk_offer

SUM, MAX, EXACT = range(3)
"""How boxes are scored: by the sum or the greatest of their weights, or by their own score."""
CERTAIN: Final = 1.0


class MemtableRows(NamedTuple):
    """Packed rows as in `relaxed_layout`, with weights 0 for exact matching, and their ids."""

    packed: Float64s
    most: Float64s
    """The greatest score possible; in exact matching the score itself."""
    ids: Int64s


@inner
def all_hold(packed: Float64s, place: int, events: CodedEvents, row: int) -> bool:
    """Return whether every predicate of a box holds for an event; free ones have low > high."""
    below, above = events.below, events.above
    for attribute in range(below.shape[1]):
        low, high = packed[place, 3 * attribute], packed[place, 3 * attribute + 1]
        holds = low <= below[row, attribute] and above[row, attribute] <= high
        # Packed free attributes hold for no value, as relaxed scores need it; here they ask for
        # none.
        if not holds and low <= high:
            return False
    return True


@inlined
def memtable_score(
    rows: MemtableRows, place: int, events: CodedEvents, row: int, scoring: int
) -> float:
    """Return the score of a box for an event, or -1 where it does not match."""
    if scoring != EXACT:
        return packed_score(rows.packed, place, events, row, scoring == MAX)
    return rows.most[place] if all_hold(rows.packed, place, events, row) else -1.0


@kernel
def search_memtable(
    rows: MemtableRows,
    size: int,
    events: CodedEvents,
    liveness: Liveness,
    scoring: int,
    best: TopkHeaps,
) -> None:
    """Offer to each event those of the first `size` boxes that may enter its top k; O(size)."""
    for row in range(len(best.sizes) if best.scores.shape[1] > 0 else 0):
        peak = CERTAIN if scoring == EXACT else events.peaks[row]
        for place in range(size):
            # The bound costs two reads, the score as many as there are attributes.
            if is_over(rows.most[place], rows.ids[place], peak, best, row):
                continue
            if is_alive(liveness, place):
                score = memtable_score(rows, place, events, row, scoring)
                if score >= 0:
                    topk_offer(best, row, score, rows.ids[place])
