"""The terms of one attribute, and a cache of the terms that each text satisfies.

A term is a predicate that an event either stamps or not: `=`, `is null`, `is not null`, `true`, and
the predicates of strings other than negations. A negation needs a term too: what it negates, which
for numbers can be an `in`. Equal predicates share one term.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from sys import getsizeof
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray
from tidings.index.access.kernels.records import CachedTerms
from tidings.index.operand_lists import OPERANDS, OperandList
from tidings.model.conditions.predicate import PRESENCE
from tidings.model.values import Key

UNNAMED: Final = -1.0  # the code of a string or boolean that no `!=` names
MOST_TEXTS: Final = 1 << 17
MOST_TERMS: Final = 1 << 22

INT_BYTES, FLOAT_BYTES, PAIR_BYTES = 32, 24, 56
"""Sizes of the objects that a dict or a list refers to, which `getsizeof` of it leaves out."""


@dataclass
class FamilyTerms:
    """The terms of one family of values (number, string ...) of an attribute, and its slot."""

    equal: dict[Any, int] = field(default_factory=dict)
    others: dict[tuple[str, Any], int] = field(default_factory=dict)
    lists: dict[str, OperandList[int]] = field(default_factory=dict)
    codes: dict[Any, float] = field(default_factory=dict)  # of keys that some `!=` names
    slot: int = -1
    sorted_keys: list[float] | None = None

    def add(self, shape: str, operands: Sequence[Any], terms: Sequence[int]) -> None:
        """Add predicates of one shape that are new."""
        if shape == "=":
            self.equal.update(zip(operands, terms, strict=True))
            self.sorted_keys = None
            return
        if shape not in self.lists:
            self.fill(shape, operands, terms)
            return
        self.others.update(zip(zip(repeat(shape), operands), terms, strict=False))
        for operand, term in zip(operands, terms, strict=True):
            self.lists[shape].add(operand, term)

    def fill(self, shape: str, operands: Sequence[Any], terms: Sequence[int]) -> None:
        """Add all predicates of a shape other than `=`, which must have none so far."""
        self.others |= {
            (shape, operand): term for operand, term in zip(operands, terms, strict=True)
        }
        if shape not in PRESENCE:
            self.lists[shape] = OPERANDS[shape]()
            self.lists[shape].fill(operands, terms)

    def satisfied(self, key: Key) -> list[int]:
        """Return the terms that a value stamps."""
        terms = [self.equal[key]] if key in self.equal else []
        for operands in self.lists.values():
            terms += operands.holding(key)
        return terms

    def listing(self, low: float, high: float) -> list[int]:
        """Return the terms of `in` with a member from low to high; O(members)."""
        return [
            term
            for (shape, operand), term in self.others.items()
            if shape == "in" and any(low <= member <= high for member in operand)
        ]

    def within(self, low: float, high: float) -> list[int]:
        """Return the `=` terms of the values from low to high."""
        if self.sorted_keys is None:
            self.sorted_keys = sorted(self.equal)
        keys = self.sorted_keys
        return [self.equal[key] for key in keys[bisect_left(keys, low) : bisect_right(keys, high)]]

    @property
    def nbytes(self) -> int:
        """Bytes of dicts and numbers; operands belong to the subscriptions, but not their pairs.

        The lists hold the operands of `others` again.
        """
        dicts = sum(map(getsizeof, (self.equal, self.others, self.codes, self.sorted_keys)))
        ints = INT_BYTES * (len(self.equal) + len(self.others))
        floats, pairs = FLOAT_BYTES * len(self.codes), PAIR_BYTES * len(self.others)
        return dicts + ints + floats + pairs + getsizeof(self.others)


class OtherTerms(NamedTuple):
    """The terms of an attribute that few attributes have."""

    lists: OperandList[int] | None  # of numbers: those of an `in` that some `not in` negates
    present: int  # the term of `is not null`, or -1


@dataclass(frozen=True, slots=True)
class AttributeEncoder:
    """The fast path of an attribute: encodes strings met lately, and numbers, without the lock.

    Fields with slots are read in a few nanoseconds; to unpack a NamedTuple takes a hundred.
    """

    texts: dict[str, int]  # strings met lately, by their numbers in the cache
    slot: int  # of numbers
    equal: dict[Any, int]  # terms of numbers
    others: OtherTerms | None  # None if there are none
    equal_texts: dict[Any, int] | None  # terms of strings, if these have no others and no slot


class TermCache:
    """The terms of texts met lately, in arrays that only grow; text 0 satisfies nothing.

    A full cache is replaced by an empty one, which bounds its memory. Readers keep the arrays that
    they started with: a larger copy replaces them, and what was written never changes.
    """

    def __init__(self) -> None:
        self.table = CachedTerms(
            np.zeros(1024, np.int32),
            np.zeros(4096, np.int32),
            np.full(1024, -1, np.int32),
            np.zeros(1024, np.int64),
        )
        self.longest = 0
        self._size, self._terms, self._added = 1, 0, 0

    @property
    def full(self) -> bool:
        """Whether it is time for a new cache."""
        return self._added > MOST_TEXTS or self._terms > MOST_TERMS

    def add(self, terms: Sequence[int], slot: int, code: int) -> int:
        """Add a text; return its number.

        A text that satisfies nothing counts towards `full` too, since the caller remembers it.
        """
        self._added += 1
        if not terms and slot < 0:
            return 0
        number, end = self._size, self._terms + len(terms)
        start, stored, slots, codes = self.table
        if number + 2 > len(start):
            start, slots, codes = doubled(start), doubled(slots), doubled(codes)
        while end > len(stored):
            stored = doubled(stored)
        stored[self._terms : end] = terms
        start[number + 1], slots[number], codes[number] = end, slot, code
        self.table = CachedTerms(start, stored, slots, codes)
        self._size, self._terms = number + 1, end
        self.longest = max(self.longest, len(terms))
        return number

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(column.nbytes for column in self.table)


def doubled(array: AnyArray) -> AnyArray:
    """Return a copy of twice the length, padded with zeros."""
    return np.concatenate([array, np.zeros_like(array)])
