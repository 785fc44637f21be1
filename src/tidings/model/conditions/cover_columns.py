"""Conditions as columns, from which covers among many of them are found without Python calls.

signatures   three words of bits per condition: most pairs differ in some attribute or value
boxes        conjunctions of intervals and of single texts and booleans, as sorted entries
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int8s, Int64s, UInt64s
from tidings.compiled.arrays import offsets
from tidings.model.conditions.implication import Conjunctions
from tidings.model.conditions.predicate import LIMITS, PATTERNS, PRESENCE, Predicate

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
