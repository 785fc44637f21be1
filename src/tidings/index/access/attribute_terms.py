"""What is known of one attribute: who asks for which of its values, in numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, Final, NamedTuple

from tidings.index.operand_lists import OPERANDS, OperandList
from tidings.model.values import Key

UNNAMED: Final = -1.0  # the code of a string or boolean that no `!=` names


NUMBER, FLOAT, PAIR = 32, 24, 56
"""Bytes of the objects that a dict or a list of them holds beside itself."""


@dataclass
class Side:
    """One family of an attribute: entries to stamp, and a slot for values to compare."""

    equal: dict[Any, int] = field(default_factory=dict)
    others: dict[tuple[str, Any], int] = field(default_factory=dict)
    lists: dict[str, OperandList[int]] = field(default_factory=dict)
    codes: dict[Any, float] = field(default_factory=dict)  # of what some `!=` names
    slot: int = -1
    sorted_keys: list[float] | None = None

    def add(self, shape: str, operand: Any, entry: int) -> None:
        """Put in a predicate that is not there."""
        if shape == "=":
            self.equal[operand] = entry
            self.sorted_keys = None
            return
        self.others[shape, operand] = entry
        if shape not in self.lists:
            self.lists[shape] = OPERANDS[shape]()
        self.lists[shape].add(operand, entry)

    def fill(self, shape: str, operands: Sequence[Any], entries: Sequence[int]) -> None:
        """Put in all predicates of a shape that has none, other than `=`."""
        self.others |= {
            (shape, operand): entry for operand, entry in zip(operands, entries, strict=True)
        }
        self.lists[shape] = OPERANDS[shape]()
        self.lists[shape].fill(operands, entries)

    def entries(self, key: Key) -> list[int]:
        """Give the entries that a value stamps."""
        found = [self.equal[key]] if key in self.equal else []
        for operands in self.lists.values():
            found += operands.holding(key)
        return found

    def within(self, low: float, high: float) -> list[int]:
        """Give the entries of the values from low to high."""
        if self.sorted_keys is None:
            self.sorted_keys = sorted(self.equal)
        keys = self.sorted_keys
        return [self.equal[key] for key in keys[bisect_left(keys, low) : bisect_right(keys, high)]]

    @property
    def nbytes(self) -> int:
        """Bytes of dicts and numbers; operands belong to the subscriptions, but not their pairs.

        The lists hold the operands of `others` once more.
        """
        held = sum(map(getsizeof, (self.equal, self.others, self.codes, self.sorted_keys)))
        numbers = NUMBER * (len(self.equal) + len(self.others)) + FLOAT * len(self.codes)
        return held + numbers + PAIR * len(self.others) + getsizeof(self.others)


Attribute = dict[str, Side]
"""An attribute by families."""


class Ear(NamedTuple):
    """What the common values of an attribute say, ready to hear them."""

    words: dict[str, int]  # strings met lately: their phrases
    slot: int  # of numbers
    equal: dict[Any, int]  # of numbers
