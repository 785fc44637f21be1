"""Strict covers between the conditions of each owner, for many owners at once, as arrays.

Three steps, each for the pairs that the one before leaves over:

    signatures   three words of bits of attributes and values: a few instructions
    boxes        conjunctions of intervals and of single texts and booleans, as sorted entries: a
                 compiled merge
    exact        everything else: `implication.strictly_covers`
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int8s, Int64s, UInt64s
from tidings.compiled.arrays import Ragged, offsets
from tidings.compiled.jit import inner, kernel
from tidings.errors import InvalidSubscription
from tidings.model.conditions.implication import COMPARISONS, Conjunctions, Work, strictly_covers
from tidings.model.conditions.predicate import LIMITS, PATTERNS, PRESENCE, Predicate

EXACT_PAIRS: Final = 1_000_000
"""Pairs of one owner that are compared exactly, at 2 to 5 microseconds each."""
_SIGNATURES_PER_STEP: Final = 200
"""Signatures that are compared in the time of one step of COMPARISONS."""
_LISTS: Final = ("in", "not in")
TOGETHER: Final = 2048
"""Conditions that are written at once; their predicates stay in the cache."""
_ALL: Final = np.uint64((1 << 64) - 1)
_DOMAINS: Final = np.array([*LIMITS.values(), (-np.inf, np.inf)])
_DOMAIN_OF: Final = {family: place for place, family in enumerate(LIMITS)}
_INTERVAL: Final = 0
_VALUE: Final = 1
_KINDS: Final = {
    **{("between", family): _INTERVAL for family in LIMITS},
    **{("=", family): _VALUE for family in ("string", "boolean")},
}
"""The predicates that boxes have; a single number or time is an interval."""
_ATTRIBUTE: Final[Any] = attrgetter("attribute")
_OPERATOR: Final[Any] = attrgetter("operator")
_FAMILY: Final[Any] = attrgetter("family")
_OPERAND: Final[Any] = attrgetter("operand")


class CoverSignatures(NamedTuple):
    """The bits that all conjunctions of a condition have in common.

    If one condition covers another, the other has all its attributes, and a single value wherever
    it has one.
    """

    attributes: UInt64s
    needs: UInt64s
    has: UInt64s


class CoverBoxes(NamedTuple):
    """Conjunctions as ragged arrays of intervals: box i has the entries `starts[i]:starts[i + 1]`.

    starts  0     2        3            a slot is a number for (attribute, family)
    slots   4 9   4        ...          ascending within a box, and different
    lows    3 1   5        ...          the interval as it is written; a text is its number twice
    firsts                              the interval cut to the domain of its family
    """

    is_box: Bools
    starts: Int64s
    slots: Int64s
    lows: Float64s
    highs: Float64s
    firsts: Float64s
    lasts: Float64s


def strictly_covered(conditions: Sequence[Conjunctions], owners: Sequence[Any]) -> Ragged:
    """Return for each condition the others of the same owner that it strictly covers (PREF Def. 4).

    They are a run of their places, in ascending order.
    One covers another strictly if it covers it without being covered back. So a condition is a most
    specific one of some matching conditions if none of its row is among them (PREF 3.2).
    Costs a few instructions for each pair of one owner, some 20 ns for each pair of boxes whose
    signatures allow a cover, and an exact comparison for each other such pair. An owner that needs
    more than EXACT_PAIRS or COMPARISONS is refused.

    >>> from tidings.model.conditions.parser import parse
    >>> texts = ["x > 3", "x > 5 and y = 1", "x > 3 and y = 1", "x > 4"]
    >>> covered = strictly_covered([parse(text).conjunctions for text in texts], [7, 7, 7, 8])
    >>> [covered.run(i).tolist() for i in range(4)]
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
    return Ragged(starts, narrows[order].astype(np.int32))


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


# Conditions as columns, from which covers among many of them are found without Python calls.


class ConditionColumns(NamedTuple):
    """The signature of each condition, and those that are boxes."""

    signatures: CoverSignatures
    boxes: CoverBoxes

    @classmethod
    def of(cls, conditions: Sequence[Conjunctions]) -> "ConditionColumns":
        """Return conditions as columns; up to a microsecond for each predicate."""
        numbers, signatures, boxes = _Numbers({}, {}), list[CoverSignatures](), list[CoverBoxes]()
        for first in range(0, max(1, len(conditions)), TOGETHER):
            parts = _Parts.of(conditions[first : first + TOGETHER])
            signatures.append(_signatures(parts))
            boxes.append(_boxes(parts, numbers))
        is_box, _, *entries = map(np.concatenate, zip(*boxes, strict=True))
        starts = offsets(np.concatenate([np.diff(chunk.starts) for chunk in boxes]))
        words = map(np.concatenate, zip(*signatures, strict=True))
        return cls(CoverSignatures(*words), CoverBoxes(is_box, starts, *entries))


class _Numbers(NamedTuple):
    """The numbers of pairs of an attribute and a family, and those of texts and booleans."""

    slots: dict[Hashable, int]
    values: dict[Hashable, int]


class _Parts(NamedTuple):
    """The predicates of all conjunctions of some conditions, one after the other, as columns.

    `kind` is -1 for those that boxes do not have. The parts of conjunction c start at `starts[c]`,
    the conjunctions of condition i at `conjunctions[i]`.
    """

    predicates: Sequence[Predicate]
    attributes: Sequence[str]
    families: Sequence[str]
    kind: Int8s
    starts: Int64s
    conjunctions: Int64s

    @classmethod
    def of(cls, conditions: Sequence[Conjunctions]) -> "_Parts":
        """Return the predicates of conditions."""
        conjunctions = [*chain.from_iterable(conditions)]
        predicates = [*chain.from_iterable(conjunctions)]
        families = [*map(_FAMILY, predicates)]
        kinds = map(_KINDS.get, zip(map(_OPERATOR, predicates), families, strict=True), repeat(-1))
        return cls(
            predicates,
            [*map(_ATTRIBUTE, predicates)],
            families,
            np.fromiter(kinds, np.int8, len(predicates)),
            offsets([*map(len, conjunctions)]),
            offsets([*map(len, conditions)]),
        )

    def operands(self, places: Int64s) -> Iterator[Any]:
        """Yield the operands of some predicates."""
        return map(_OPERAND, map(self.predicates.__getitem__, places.tolist()))

    def bounds(self, intervals: Int64s) -> Float64s:
        """Return the bounds of some predicates that are intervals, in rows of two."""
        bounds = chain.from_iterable(self.operands(intervals))
        return np.fromiter(bounds, np.float64, 2 * len(intervals)).reshape(-1, 2)


def _boxes(parts: _Parts, numbers: _Numbers) -> CoverBoxes:
    """Return the conditions that are boxes, with their entries."""
    sizes, single = np.diff(parts.starts), np.diff(parts.conjunctions) == 1
    conjunction = np.repeat(np.arange(len(sizes)), sizes)
    slots = _numbered([*zip(parts.attributes, parts.families, strict=True)], numbers.slots)
    order = np.lexsort((slots, conjunction))
    repeated = (np.diff(slots[order]) == 0) & (np.diff(conjunction[order]) == 0)
    is_whole = sizes > 0
    is_whole[conjunction[parts.kind < 0]] = False
    is_whole[conjunction[order][1:][repeated]] = False  # a list may have two texts at once
    first = parts.conjunctions[:-1]
    is_box = single & is_whole[first]
    in_box = np.zeros(len(sizes), np.bool_)
    in_box[first[is_box]] = True
    entries = order[in_box[conjunction[order]]]
    lows, highs = _intervals(parts, numbers)
    domains = np.fromiter(map(_DOMAIN_OF.get, parts.families, repeat(-1)), np.int8, len(lows))
    least, most = _DOMAINS[domains].T
    columns = lows, highs, np.maximum(lows, least), np.minimum(highs, most)
    starts = offsets(np.where(is_box, sizes[first], 0))
    return CoverBoxes(is_box, starts, slots[entries], *(column[entries] for column in columns))


def _intervals(parts: _Parts, numbers: _Numbers) -> tuple[Float64s, Float64s]:
    """Return both ends of each interval; of a single text or boolean its number, twice."""
    lows, highs = np.zeros(len(parts.kind)), np.zeros(len(parts.kind))
    intervals = np.flatnonzero(parts.kind == _INTERVAL)
    values = np.flatnonzero(parts.kind == _VALUE)
    lows[intervals], highs[intervals] = parts.bounds(intervals).T
    lows[values] = highs[values] = _numbered([*parts.operands(values)], numbers.values)
    return lows, highs


def _numbered(keys: Sequence[Hashable], numbers: dict[Hashable, int]) -> Int64s:
    """Return the numbers of keys, adding those that are new."""
    for key in dict.fromkeys(keys):
        numbers.setdefault(key, len(numbers))
    return np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))


def _signatures(parts: _Parts) -> CoverSignatures:
    """Return the bits that all conjunctions of each condition have.

    Each conjunction of a covered condition has those of one that covers, so those that all have.
    """
    return CoverSignatures(*(_shared_bits(parts, bits) for bits in _bits(parts)))


def _shared_bits(parts: _Parts, bits: UInt64s) -> UInt64s:
    """Return by condition what its conjunctions share of the bits that some part of each has."""
    if len(parts.conjunctions) == 1:
        return np.empty(0, np.uint64)
    by_conjunction = np.bitwise_or.reduceat(np.append(bits, np.uint64(0)), parts.starts[:-1])
    by_conjunction[np.diff(parts.starts) == 0] = 0
    shared: UInt64s = np.bitwise_and.reduceat(by_conjunction, parts.conjunctions[:-1])
    return shared


def _bits(parts: _Parts) -> tuple[UInt64s, UInt64s, UInt64s]:
    """Return for each part the bit of its attribute, and those of values that it needs and has."""
    attributes, intervals = _hash_bits(parts.attributes), np.flatnonzero(parts.kind == _INTERVAL)
    needs, has = np.zeros(len(attributes), np.uint64), np.zeros(len(attributes), np.uint64)
    lows, highs = parts.bounds(intervals).T
    points, texts = lows == highs, np.flatnonzero(parts.kind == _VALUE)
    for places, values in (
        (intervals[points], lows[points].tolist()),
        (texts, parts.operands(texts)),
    ):
        names = map(parts.attributes.__getitem__, places.tolist())
        needs[places] = has[places] = _hash_bits([*zip(names, values, strict=True)])
    for place in np.flatnonzero(parts.kind < 0).tolist():
        part = parts.predicates[place]
        known = _values(part)
        if part.operator == "true":
            attributes[place] = 0
        if known is None:
            has[place] = _ALL
        elif len(known) == 1:
            needs[place] = has[place] = _hash_bits([(part.attribute, *known)])[0]
    return attributes, needs, has


def _hash_bits(keys: Sequence[Hashable]) -> UInt64s:
    """Return for each key one of 64 bits."""
    hashes = np.fromiter(map(hash, keys), np.int64, len(keys))
    return np.uint64(1) << (hashes & 63).astype(np.uint64)


def _values(part: Predicate) -> Collection[Any] | None:
    """Return the values that a predicate allows, nothing if they are many, None if unsure.

    Intervals, and single texts and booleans, are not asked for.
    """
    if part.operator == "in":
        return frozenset(part.operand)
    many = part.operator in PATTERNS or (part.operator == "!=" and part.family != "boolean")
    return () if many or part.operator in PRESENCE else None
