"""Which conditions of one owner strictly cover which, for many owners at once, as arrays.

Most pairs are told apart by signatures: words of bits for each condition, of its attributes and of
its single values. `cover.strictly_covers` judges the rest.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int32s, UInt64s
from tidings.model.conditions.implication import COMPARISONS, Conjunctions, Work, strictly_covers
from tidings.model.conditions.predicate import PATTERNS, Predicate

_ALL: Final = (1 << 64) - 1


@dataclass(frozen=True)
class Covered:
    """For condition i, `covered[starts[i]:starts[i + 1]]` are those of its owner that it covers.

    They are strictly covered (cover without being covered back), and in ascending order. So i is
    a most specific one of some matching conditions if none of these is among them (PREF 3.2).
    """

    starts: Int32s
    covered: Int32s

    def of(self, condition: int) -> Int32s:
        """Give the conditions that one strictly covers."""
        return self.covered[self.starts[condition] : self.starts[condition + 1]]


@dataclass(frozen=True)
class _Signatures:
    """What a condition needs and has in all its conjunctions, as bits.

    If one covers another, the other has its attributes, and a single value for each of its own.
    """

    attributes: UInt64s
    needs: UInt64s
    has: UInt64s


def strictly_covered(conditions: Sequence[Conjunctions], owners: Sequence[Any]) -> Covered:
    """Find for each condition the others of the same owner that it strictly covers (PREF Def. 4).

    Costs a few instructions for each pair of one owner, and an exact comparison for the few pairs
    whose signatures allow a cover.

    >>> from tidings.model.conditions.parser import parse
    >>> texts = ["x > 3", "x > 5 and y = 1", "x > 3 and y = 1", "x > 4"]
    >>> found = strictly_covered([parse(text).conjunctions for text in texts], [7, 7, 7, 8])
    >>> [found.of(i).tolist() for i in range(4)]
    [[1, 2], [], [1], []]
    """
    signatures = _signatures(conditions)
    allowance = _Allowance(conditions, np.asarray(owners))
    small = [
        len(each) == 1 and len(each[0]) == 1 and each[0][0].operator != "in" for each in conditions
    ]
    pairs = [
        (wide, narrow)
        for one, other in _neighbours(np.asarray(owners))
        for first, second in ((one, other), (other, one))
        for wide, narrow in _possible(signatures, first, second, allowance)
        if strictly_covers(
            conditions[wide],
            conditions[narrow],
            None if small[wide] and small[narrow] else allowance.work(wide, narrow),
        )
    ]
    found = np.array(sorted(pairs), np.int32).reshape(-1, 2)
    starts = np.searchsorted(found[:, 0], np.arange(len(conditions) + 1))
    return Covered(starts.astype(np.int32), np.ascontiguousarray(found[:, 1]))


class _Allowance:
    """How much the conditions of each owner may still be compared with each other."""

    def __init__(self, conditions: Sequence[Conjunctions], owners: npt.NDArray[Any]) -> None:
        _, self._owner, counts = np.unique(owners, return_inverse=True, return_counts=True)
        # Signatures tell pairs apart, some hundred in the time of one comparison.
        self._steps = counts.astype(np.int64) ** 2 // 200
        self._work = [Work(COMPARISONS) for _ in counts]
        self._members = [_members(condition) for condition in conditions]

    def check(self, wide: npt.NDArray[Any]) -> None:
        """Count pairs that are compared next, by their first conditions."""
        self._steps += np.bincount(self._owner[wide], minlength=len(self._steps))
        if self._steps.max(initial=0) > COMPARISONS:
            Work(0).take(1)

    def work(self, one: int, other: int) -> Work:
        """Return what is left for the owner of two conditions that take more than one step."""
        work = self._work[int(self._owner[one])]
        work.take(self._members[one] + self._members[other])
        return work


def _members(condition: Conjunctions) -> int:
    """Return the number of values of lists in a condition."""
    parts = (part for conjunction in condition for part in conjunction)
    return sum(len(part.operand) for part in parts if part.operator == "in")


def _neighbours(owners: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
    """Give all pairs of places with equal owners, each pair once, in arrays."""
    order = np.argsort(owners, kind="stable")
    ranked = owners[order]
    ends = np.searchsorted(ranked, ranked, side="right")
    places = np.arange(len(owners))
    for distance in range(1, len(owners)):
        places = places[places + distance < ends[places]]
        if not len(places):
            return
        yield order[places], order[places + distance]


def _possible(
    signatures: _Signatures, wide: Any, narrow: Any, allowance: _Allowance
) -> Iterator[tuple[int, int]]:
    """Give the pairs of which the first may cover the second, by their signatures."""
    extra = signatures.attributes[wide] & ~signatures.attributes[narrow]
    extra |= signatures.needs[wide] & ~signatures.has[narrow]
    maybe = extra == 0
    allowance.check(wide[maybe])
    return zip(wide[maybe].tolist(), narrow[maybe].tolist(), strict=True)


def _signatures(conditions: Sequence[Conjunctions]) -> _Signatures:
    words = chain.from_iterable(map(_signature, conditions))
    columns = np.fromiter(words, np.uint64, 3 * len(conditions)).reshape(-1, 3)
    return _Signatures(*columns.T.copy())


def _signature(conjunctions: Conjunctions) -> tuple[int, int, int]:
    """Give the bits that all conjunctions have.

    Each conjunction of a covered condition has those of one that covers, so those that all have.
    """
    if len(conjunctions) == 1:
        return _bits(conjunctions[0])
    attributes, needs, has = zip(*map(_bits, conjunctions), strict=True)
    return reduce(and_, attributes), reduce(and_, needs), reduce(and_, has)


def _bits(parts: Iterable[Predicate]) -> tuple[int, int, int]:
    attributes = needs = has = 0
    for part in parts:
        attributes |= _bit(part.attribute)
        values = _values(part)
        if values is None:
            has = _ALL
        elif len(values) == 1:
            bit = _bit((part.attribute, *values))
            needs, has = needs | bit, has | bit
    return attributes, needs, has


def _bit(thing: Hashable) -> int:
    return 1 << (hash(thing) & 63)


def _values(part: Predicate) -> Collection[Any] | None:
    """Give the values that a predicate allows, nothing if they are many, None if unsure."""
    operator, operand = part.operator, part.operand
    if operator == "=":
        return (operand,)
    if operator == "between" and part.family != "string":
        return operand[:1] if operand[0] == operand[1] else ()
    if operator == "in":
        return frozenset(operand)
    many = operator in PATTERNS or (operator == "!=" and part.family != "boolean")
    return () if many else None
