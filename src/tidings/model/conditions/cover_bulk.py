"""Strict covers between the conditions of each owner, for many owners at once, as arrays.

Three steps, each for the pairs that the one before leaves over:

    signatures   three words of bits per condition: most pairs differ in some attribute or value
    boxes        conjunctions of intervals of numbers and times: a compiled merge of sorted lists
    exact        everything else: `implication.strictly_covers`
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int64s, UInt64s
from tidings.compiled.jit import inner, kernel
from tidings.errors import InvalidSubscription
from tidings.model.conditions.implication import COMPARISONS, Conjunctions, Work, strictly_covers
from tidings.model.conditions.predicate import LIMITS, PATTERNS, PRESENCE, Predicate

EXACT_PAIRS: Final = 1_000_000
"""Pairs of one owner that are compared exactly, at 2 to 5 microseconds each."""
_SIGNATURES_PER_STEP: Final = 200
"""Signatures that are compared in the time of one step of COMPARISONS."""
_ALL: Final = (1 << 64) - 1
_LISTS: Final = ("in", "not in")


@dataclass(frozen=True)
class _Signatures:
    """The bits that all conjunctions of a condition have in common.

    If one condition covers another, the other has all its attributes, and a single value wherever
    it has one.
    """

    attributes: UInt64s
    needs: UInt64s
    has: UInt64s


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
    signatures, boxes = _signatures(conditions), _boxes(conditions)
    budget = _Budget(conditions, np.asarray(owners))
    pairs = [np.empty((0, 2), np.int64)]
    for one, other in _pairs_of_owners(np.asarray(owners)):
        for first, second in ((one, other), (other, one)):
            possible = _possible(signatures, first, second)
            wide, narrow = first[possible], second[possible]
            budget.take_pairs(wide)
            by_box = boxes.is_box[wide] & boxes.is_box[narrow]
            covers = np.zeros(len(wide), np.bool_)
            _boxes_cover(boxes, wide, narrow, by_box, covers)
            exact = np.flatnonzero(~by_box)
            budget.take_exact(wide[exact])
            for pair in exact.tolist():
                covers[pair] = _exactly_covers(
                    conditions, int(wide[pair]), int(narrow[pair]), budget
                )
            pairs.append(np.column_stack((wide[covers], narrow[covers])))
    wides, narrows = np.concatenate(pairs).T
    order = np.lexsort((narrows, wides))
    starts = np.searchsorted(wides[order], np.arange(len(conditions) + 1))
    return CoveredConditions(starts, narrows[order].astype(np.int32))


def _exactly_covers(
    conditions: Sequence[Conjunctions], wide: int, narrow: int, budget: "_Budget"
) -> bool:
    one_step = budget.is_one_step[wide] and budget.is_one_step[narrow]
    work = None if one_step else budget.work(wide, narrow)
    return strictly_covers(conditions[wide], conditions[narrow], work)


class _Budget:
    """The comparisons that the conditions of each owner may still take."""

    def __init__(self, conditions: Sequence[Conjunctions], owners: AnyArray) -> None:
        _, self._owner, counts = np.unique(owners, return_inverse=True, return_counts=True)
        self._pairs = counts.astype(np.int64) ** 2 // _SIGNATURES_PER_STEP
        self._exact = np.zeros(len(counts), np.int64)
        self._work = [Work(COMPARISONS) for _ in counts]
        self._members = [_list_members(condition) for condition in conditions]
        self.is_one_step = [
            len(condition) == 1
            and len(condition[0]) == 1
            and condition[0][0].operator not in _LISTS
            for condition in conditions
        ]

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

    def work(self, one: int, other: int) -> Work:
        """Return the budget of the owner of two conditions that take more than one step."""
        work = self._work[int(self._owner[one])]
        work.take(self._members[one] + self._members[other])
        return work


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


def _possible(signatures: _Signatures, wide: Int64s, narrow: Int64s) -> Bools:
    """Return which pairs may be covers, by their signatures."""
    extra = signatures.attributes[wide] & ~signatures.attributes[narrow]
    extra |= signatures.needs[wide] & ~signatures.has[narrow]
    possible: Bools = extra == 0
    return possible


class _Boxes(NamedTuple):
    """Conjunctions of intervals as ragged arrays: entries `starts[i]:starts[i + 1]`, by slot.

    starts  0     2        3            a slot is a number for (attribute, family)
    slots   4 9   4        ...          ascending within a box, since a conjunction is folded
    lows    3 1   5        ...          the interval as it is written
    firsts                              the interval cut to the domain of its family
    """

    is_box: Bools
    starts: Int64s
    slots: Int64s
    lows: Float64s
    highs: Float64s
    firsts: Float64s
    lasts: Float64s


def _boxes(conditions: Sequence[Conjunctions]) -> _Boxes:
    is_box = np.zeros(len(conditions), np.bool_)
    starts = np.zeros(len(conditions) + 1, np.int64)
    numbers = dict[tuple[str, str], int]()
    entries = list[tuple[int, float, float, float, float]]()
    for position, conjunctions in enumerate(conditions):
        if len(conjunctions) == 1 and conjunctions[0] and all(map(_is_interval, conjunctions[0])):
            is_box[position] = True
            entries += sorted(_entry(part, numbers) for part in conjunctions[0])
        starts[position + 1] = len(entries)
    slots, *bounds = zip(*entries, strict=True) if entries else [()] * 5
    columns = [np.array(column, np.float64) for column in bounds]
    return _Boxes(is_box, starts, np.array(slots, np.int64), *columns)


def _is_interval(part: Predicate) -> bool:
    return part.operator == "between" and part.family in LIMITS


def _entry(
    part: Predicate, numbers: dict[tuple[str, str], int]
) -> tuple[int, float, float, float, float]:
    low, high = part.operand
    first, last = LIMITS[part.family]
    slot = numbers.setdefault((part.attribute, part.family), len(numbers))
    return slot, low, high, max(low, first), min(high, last)


@inner
def _box_covers(boxes: _Boxes, wide: int, narrow: int) -> bool:
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
def _boxes_cover(boxes: _Boxes, wide: Int64s, narrow: Int64s, chosen: Bools, covers: Bools) -> None:
    """Write for each chosen pair whether the first strictly covers the second."""
    for pair in range(len(wide)):
        if chosen[pair] and _box_covers(boxes, wide[pair], narrow[pair]):
            covers[pair] = not _box_covers(boxes, narrow[pair], wide[pair])


def _signatures(conditions: Sequence[Conjunctions]) -> _Signatures:
    words = chain.from_iterable(map(_signature, conditions))
    columns = np.fromiter(words, np.uint64, 3 * len(conditions)).reshape(-1, 3)
    return _Signatures(*columns.T.copy())


def _signature(conjunctions: Conjunctions) -> tuple[int, int, int]:
    """Return the bits that all conjunctions have.

    Each conjunction of a covered condition has those of one that covers, so those that all have.
    """
    if len(conjunctions) == 1:
        return _bits(conjunctions[0])
    attributes, needs, has = zip(*map(_bits, conjunctions), strict=True)
    return reduce(and_, attributes), reduce(and_, needs), reduce(and_, has)


def _bits(parts: Iterable[Predicate]) -> tuple[int, int, int]:
    attributes = needs = has = 0
    for part in parts:
        if part.operator != "true":
            attributes |= _bit(part.attribute)
        values = _values(part)
        if values is None:
            has = _ALL
        elif len(values) == 1:
            bit = _bit((part.attribute, *values))
            needs, has = needs | bit, has | bit
    return attributes, needs, has


def _bit(value: Hashable) -> int:
    return 1 << (hash(value) & 63)


def _values(part: Predicate) -> Collection[Any] | None:
    """Return the values that a predicate allows, nothing if they are many, None if unsure."""
    operator, operand = part.operator, part.operand
    if operator == "=":
        return (operand,)
    if operator == "between" and part.family != "string":
        return operand[:1] if operand[0] == operand[1] else ()
    if operator == "in":
        return frozenset(operand)
    many = operator in PATTERNS or (operator == "!=" and part.family != "boolean")
    return () if many or operator in PRESENCE else None
