"""Operator lists (TKS 5.1.2): the operands of one operator on one attribute, searchable by value.

A list returns, for a value, every item whose operand that value satisfies. Each operand is added
once; the owner of a list interns its predicates.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

from tidings.model.conditions.predicate import FOLDED, NEGATIONS, Predicate

T = TypeVar("T")


class OperandList(Protocol[T]):
    """The operands of one operator, each with its item."""

    def add(self, operand: Any, item: T) -> None:
        """Add an operand that is not in the list."""

    def fill(self, operands: Sequence[Any], items: Sequence[T]) -> None:
        """Fill an empty list with all operands at once."""

    def remove(self, operand: Any) -> None:
        """Remove an operand."""

    def holding(self, key: Any) -> Iterable[T]:
        """Return the items whose operands `key` satisfies, once each."""

    def __len__(self) -> int: ...


def list_kind(predicate: Predicate) -> str:
    """Return the kind of list that a predicate belongs to: its operator, or its interval's shape.

    >>> from tidings.model.conditions.predicate import predicate
    >>> list_kind(predicate("year", "=", 2003)), list_kind(predicate("year", ">", 2003))
    ('=', '>=')
    """
    if predicate.operator != "between":
        return predicate.operator
    low, high = predicate.operand
    if low == high:
        return "="
    return "<=" if low == -inf else ">=" if high == inf else "between"


def list_operand(predicate: Predicate) -> Any:
    """Return the operand under which a predicate is listed."""
    if predicate.operator != "between":
        return predicate.operand
    low, high = predicate.operand
    return {"=": low, "<=": high, ">=": low}.get(list_kind(predicate), predicate.operand)


class Equal(Generic[T]):
    """`=`: a dict; O(1)."""

    def __init__(self) -> None:
        self._items: dict[Any, T] = {}

    def __len__(self) -> int:
        return len(self._items)

    def add(self, operand: Any, item: T) -> None:
        self._items[operand] = item

    def fill(self, operands: Sequence[Any], items: Sequence[T]) -> None:
        self._items = dict(zip(operands, items, strict=True))

    def remove(self, operand: Any) -> None:
        del self._items[operand]

    def holding(self, key: Any) -> Iterable[T]:
        return (self._items[key],) if key in self._items else ()


class Unequal(Equal[T]):
    """`!=`: all operands but one; O(answer)."""

    def holding(self, key: Any) -> Iterable[T]:
        return (item for operand, item in self._items.items() if operand != key)


class Members(Generic[T]):
    """`in`: every member leads to the operands that have it; O(answer)."""

    def __init__(self) -> None:
        self._items: dict[Any, dict[frozenset[Any], T]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def add(self, operand: frozenset[Any], item: T) -> None:
        for member in operand:
            self._items.setdefault(member, {})[operand] = item

    def fill(self, operands: Sequence[frozenset[Any]], items: Sequence[T]) -> None:
        for operand, item in zip(operands, items, strict=True):
            self.add(operand, item)

    def remove(self, operand: frozenset[Any]) -> None:
        for member in operand:
            del self._items[member][operand]
            if not self._items[member]:
                del self._items[member]

    def holding(self, key: Any) -> Iterable[T]:
        return self._items.get(key, {}).values()


class _Sorted(Generic[T]):
    """Operands in ascending order, with their items in a parallel list."""

    def __init__(self) -> None:
        self._operands: list[Any] = []
        self._items: list[T] = []

    def __len__(self) -> int:
        return len(self._operands)

    def add(self, operand: Any, item: T) -> None:
        place = bisect_left(self._operands, operand)
        self._operands.insert(place, operand)
        self._items.insert(place, item)

    def fill(self, operands: Sequence[Any], items: Sequence[T]) -> None:
        order = sorted(range(len(operands)), key=operands.__getitem__)
        self._operands = [operands[position] for position in order]
        self._items = [items[position] for position in order]

    def remove(self, operand: Any) -> None:
        place = bisect_left(self._operands, operand)
        del self._operands[place], self._items[place]


class Less(_Sorted[T]):
    """`<`: the operands above the key; O(log n + answer)."""

    def holding(self, key: Any) -> Iterable[T]:
        return self._items[bisect_right(self._operands, key) :]


class AtMost(_Sorted[T]):
    """`<=`: the operands from the key on."""

    def holding(self, key: Any) -> Iterable[T]:
        return self._items[bisect_left(self._operands, key) :]


class Greater(_Sorted[T]):
    """`>`: the operands below the key."""

    def holding(self, key: Any) -> Iterable[T]:
        return self._items[: bisect_left(self._operands, key)]


class AtLeast(_Sorted[T]):
    """`>=`: the operands up to the key."""

    def holding(self, key: Any) -> Iterable[T]:
        return self._items[: bisect_right(self._operands, key)]


class Between(Generic[T]):
    """`between`: intervals sorted by low; those with a low up to the key are tested."""

    def __init__(self) -> None:
        self._lows: list[Any] = []
        self._rest: list[tuple[Any, T]] = []

    def __len__(self) -> int:
        return len(self._lows)

    def add(self, operand: tuple[Any, Any], item: T) -> None:
        place = bisect_left(self._lows, operand[0])
        self._lows.insert(place, operand[0])
        self._rest.insert(place, (operand[1], item))

    def fill(self, operands: Sequence[tuple[Any, Any]], items: Sequence[T]) -> None:
        order = sorted(range(len(operands)), key=lambda position: operands[position][0])
        self._lows = [operands[position][0] for position in order]
        self._rest = [(operands[position][1], items[position]) for position in order]

    def remove(self, operand: tuple[Any, Any]) -> None:
        place = bisect_left(self._lows, operand[0])
        while self._rest[place][0] != operand[1]:
            place += 1
        del self._lows[place], self._rest[place]

    def holding(self, key: Any) -> Iterable[T]:
        return (item for high, item in self._rest[: bisect_right(self._lows, key)] if high >= key)


class _Parts(Generic[T]):
    """Strings in a dict, and the count of each length: only lengths in use are tried."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}
        self._lengths: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, operand: str, item: T) -> None:
        self._items[operand] = item
        self._lengths[len(operand)] += 1

    def fill(self, operands: Sequence[str], items: Sequence[T]) -> None:
        self._items = dict(zip(operands, items, strict=True))
        self._lengths = Counter(map(len, self._items))

    def remove(self, operand: str) -> None:
        del self._items[operand]
        self._lengths -= Counter([len(operand)])  # drops counts of 0


class Prefix(_Parts[T]):
    """`prefix`: looks up the key's prefixes of the lengths in use."""

    def holding(self, key: str) -> Iterable[T]:
        items = self._items
        parts = [key[:length] for length in self._lengths if length <= len(key)]
        return [items[part] for part in parts if part in items]


class Suffix(_Parts[T]):
    """`suffix`: looks up the key's suffixes of the lengths in use."""

    def holding(self, key: str) -> Iterable[T]:
        items, size = self._items, len(key)
        parts = [key[size - length :] for length in self._lengths if length <= size]
        return [items[part] for part in parts if part in items]


class Substring(_Parts[T]):
    """`substring`: looks up the key's windows of the lengths in use, or tests every operand.

    O(length of the key x lengths in use), or O(operands) if they are fewer.
    """

    def holding(self, key: str) -> Iterable[T]:
        items = self._items
        if len(items) < len(key):
            return [item for part, item in items.items() if part in key]
        parts = {
            key[start : start + length]
            for length in self._lengths
            for start in range(len(key) - length + 1)
        }
        return [items[part] for part in parts if part in items]


class CaseFolded(Generic[T]):
    """A list of case-folded operands, which looks up the folded key."""

    def __init__(self, operands: OperandList[T]) -> None:
        self._operands = operands
        self.add, self.fill, self.remove = operands.add, operands.fill, operands.remove

    def __len__(self) -> int:
        return len(self._operands)

    def holding(self, key: str) -> Iterable[T]:
        return self._operands.holding(key.casefold())


class Negated(Generic[T]):
    """All operands but those that a list of the positive operator returns; O(operands)."""

    def __init__(self, operands: OperandList[Any]) -> None:
        self._excluded = operands
        self._items: dict[Any, T] = {}

    def __len__(self) -> int:
        return len(self._items)

    def add(self, operand: Any, item: T) -> None:
        self._items[operand] = item
        self._excluded.add(operand, operand)

    def fill(self, operands: Sequence[Any], items: Sequence[T]) -> None:
        self._items = dict(zip(operands, items, strict=True))
        self._excluded.fill(operands, operands)

    def remove(self, operand: Any) -> None:
        del self._items[operand]
        self._excluded.remove(operand)

    def holding(self, key: Any) -> Iterable[T]:
        excluded = set(self._excluded.holding(key))
        return [item for operand, item in self._items.items() if operand not in excluded]


def _case_folded(operator: str) -> OperandList[Any]:
    return CaseFolded(OPERANDS[FOLDED[operator]]())


def _negated(operator: str) -> OperandList[Any]:
    return Negated(OPERANDS[NEGATIONS[operator]]())


OPERANDS: Final[dict[str, Callable[[], OperandList[Any]]]] = {
    "=": Equal,
    "!=": Unequal,
    "<": Less,
    "<=": AtMost,
    ">": Greater,
    ">=": AtLeast,
    "between": Between,
    "prefix": Prefix,
    "suffix": Suffix,
    "substring": Substring,
    "in": Members,
    **{operator: partial(_case_folded, operator) for operator in FOLDED},
    **{operator: partial(_negated, operator) for operator in NEGATIONS},
}
