"""Strict covers between the conditions of each owner, for many owners at once, as arrays.

Three steps, each for the pairs that the one before leaves over:

    signatures   bits of attributes and values: a few instructions
    boxes        conjunctions of intervals and single values: a compiled merge of sorted lists
    exact        everything else: `implication.strictly_covers`
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Bools, Int64s
from tidings.compiled.jit import inner, kernel
from tidings.errors import InvalidSubscription
from tidings.model.conditions.cover_columns import ConditionColumns, CoverBoxes, CoverSignatures
from tidings.model.conditions.implication import COMPARISONS, Conjunctions, Work, strictly_covers

EXACT_PAIRS: Final = 1_000_000
"""Pairs of one owner that are compared exactly, at 2 to 5 microseconds each."""
_SIGNATURES_PER_STEP: Final = 200
"""Signatures that are compared in the time of one step of COMPARISONS."""
_LISTS: Final = ("in", "not in")


class CoveredConditions(NamedTuple):
    """For each condition those that it covers: row n is values[starts[n]:starts[n + 1]]."""

    starts: Int64s
    values: AnyArray

    def row(self, number: int) -> AnyArray:
        """Return the conditions that one covers, in ascending order."""
        return self.values[self.starts[number] : self.starts[number + 1]]


def strictly_covered(
    conditions: Sequence[Conjunctions], owners: Sequence[Any]
) -> CoveredConditions:
    """Return for each condition the others of the same owner that it strictly covers (PREF Def. 4).

    One covers another strictly if it covers it without being covered back. So a condition is a most
    specific one of some matching conditions if none of its row is among them (PREF 3.2).
    Costs a few instructions for each pair of one owner, some 20 ns for each pair of boxes whose
    signatures allow a cover, and an exact comparison for each other such pair. An owner that needs
    more than EXACT_PAIRS or COMPARISONS is refused.

    >>> from tidings.model.conditions.parser import parse
    >>> texts = ["x > 3", "x > 5 and y = 1", "x > 3 and y = 1", "x > 4"]
    >>> covered = strictly_covered([parse(text).conjunctions for text in texts], [7, 7, 7, 8])
    >>> [covered.row(i).tolist() for i in range(4)]
    [[1, 2], [], [1], []]
    """
    signatures, boxes = ConditionColumns.of(conditions)
    budget = _Budget(conditions, np.asarray(owners))
    pairs = [np.empty((0, 2), np.int64)]
    for left, right in _pairs_of_owners(np.asarray(owners)):
        for first, second in ((left, right), (right, left)):
            possible = _possible(signatures, first, second)
            wide, narrow = first[possible], second[possible]
            budget.take_pairs(wide)
            by_box = boxes.is_box[wide] & boxes.is_box[narrow]
            covers = np.zeros(len(wide), np.bool_)
            _boxes_cover(boxes, wide, narrow, by_box, covers)
            exact = np.flatnonzero(~by_box)
            budget.take_exact(wide[exact])
            for pair in exact.tolist():
                one, other = int(wide[pair]), int(narrow[pair])
                work = budget.work(one, other)
                covers[pair] = strictly_covers(conditions[one], conditions[other], work)
            pairs.append(np.column_stack((wide[covers], narrow[covers])))
    wides, narrows = np.concatenate(pairs).T
    order = np.lexsort((narrows, wides))
    starts = np.searchsorted(wides[order], np.arange(len(conditions) + 1))
    return CoveredConditions(starts, narrows[order].astype(np.int32))


class _Budget:
    """The comparisons that the conditions of each owner may still take."""

    def __init__(self, conditions: Sequence[Conjunctions], owners: AnyArray) -> None:
        _, self._owner, counts = np.unique(owners, return_inverse=True, return_counts=True)
        self._pairs = counts.astype(np.int64) ** 2 // _SIGNATURES_PER_STEP
        self._exact = np.zeros(len(counts), np.int64)
        self._work = [Work(COMPARISONS) for _ in counts]
        self._conditions = conditions

    def take_pairs(self, wide: Int64s) -> None:
        """Count pairs that signatures leave over, by their first conditions."""
        self._take(self._pairs, wide, COMPARISONS)

    def take_exact(self, wide: Int64s) -> None:
        """Count pairs that are compared exactly, by their first conditions."""
        self._take(self._exact, wide, EXACT_PAIRS)

    def _take(self, used: Int64s, wide: Int64s, most: int) -> None:
        used += np.bincount(self._owner[wide], minlength=len(used))
        if used.max(initial=0) > most:
            raise InvalidSubscription(
                "the scorer preference compares every two subscriptions of a subscriber; those of "
                f"this one take more than {most:,} comparisons of predicates"
            )

    def work(self, one: int, other: int) -> Work | None:
        """Return the budget of the owner of two conditions; None if they take one step."""
        wide, narrow = self._conditions[one], self._conditions[other]
        if _is_one_step(wide) and _is_one_step(narrow):
            return None
        work = self._work[int(self._owner[one])]
        work.take(_list_members(wide) + _list_members(narrow))
        return work


def _is_one_step(condition: Conjunctions) -> bool:
    """Return whether a condition is a single predicate without a list."""
    single = len(condition) == 1 and len(condition[0]) == 1
    return single and condition[0][0].operator not in _LISTS


def _list_members(condition: Conjunctions) -> int:
    """Return the number of values of the lists in a condition."""
    parts = (part for conjunction in condition for part in conjunction)
    return sum(len(part.operand) for part in parts if part.operator in _LISTS)


def _pairs_of_owners(owners: AnyArray) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield all pairs of positions with equal owners, each pair once, as two arrays."""
    order = np.argsort(owners, kind="stable")
    ranked = owners[order]
    ends = np.searchsorted(ranked, ranked, side="right")
    positions = np.arange(len(owners))
    for distance in range(1, len(owners)):
        positions = positions[positions + distance < ends[positions]]
        if not len(positions):
            return
        yield order[positions], order[positions + distance]


def _possible(signatures: CoverSignatures, wide: Int64s, narrow: Int64s) -> Bools:
    """Return which pairs may be covers, by their signatures."""
    extra = signatures.attributes[wide] & ~signatures.attributes[narrow]
    extra |= signatures.needs[wide] & ~signatures.has[narrow]
    possible: Bools = extra == 0
    return possible


@inner
def _box_covers(boxes: CoverBoxes, wide: int, narrow: int) -> bool:
    """Return whether each interval of `wide` contains the one of `narrow` in the same slot."""
    at = boxes.starts[narrow]
    end = boxes.starts[narrow + 1]
    for entry in range(boxes.starts[wide], boxes.starts[wide + 1]):
        while at < end and boxes.slots[at] < boxes.slots[entry]:
            at += 1
        if at == end or boxes.slots[at] != boxes.slots[entry]:
            return False
        if boxes.firsts[at] < boxes.lows[entry] or boxes.lasts[at] > boxes.highs[entry]:
            return False
    return True


@kernel
def _boxes_cover(
    boxes: CoverBoxes, wide: Int64s, narrow: Int64s, chosen: Bools, covers: Bools
) -> None:
    """Write for each chosen pair whether the first strictly covers the second."""
    for pair in range(len(wide)):
        if chosen[pair] and _box_covers(boxes, wide[pair], narrow[pair]):
            covers[pair] = not _box_covers(boxes, narrow[pair], wide[pair])
