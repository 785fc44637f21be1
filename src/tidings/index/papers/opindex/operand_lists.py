"""Operator lists (TKS 5.1.2): the operands of one operator on one attribute, kept to be found.

Each list tells, of one value, every item whose operand that value satisfies. Operands are put in
once; whoever keeps a list interns its predicates.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

from tidings.model.conditions.predicate import Predicate

T = TypeVar("T")


class Operands(Protocol[T]):
    """The operands of one operator, each with its item."""

    def add(self, operand: Any, item: T) -> None:
        """Put in an operand that is not there."""

    def fill(self, operands: Sequence[Any], items: Sequence[T]) -> None:
        """Put in all operands at once, where none is."""

    def remove(self, operand: Any) -> None:
        """Take out an operand."""

    def holding(self, key: Any) -> Iterable[T]:
        """Give the items whose operands `key` satisfies, once each."""

    def __len__(self) -> int: ...


def kind(part: Predicate) -> str:
    """Name the list that a predicate belongs into: its operator, or the shape of its interval.

    >>> from tidings.model.conditions.predicate import predicate
    >>> kind(predicate("year", "=", 2003)), kind(predicate("year", ">", 2003))
    ('=', '>=')
    """
    if part.operator != "between":
        return part.operator
    low, high = part.operand
    if low == high:
        return "="
    return "<=" if low == -inf else ">=" if high == inf else "between"


def operand(part: Predicate) -> Any:
    """Give what the list of the predicate's kind holds of it."""
    if part.operator != "between":
        return part.operand
    low, high = part.operand
    return {"=": low, "<=": high, ">=": low}.get(kind(part), part.operand)


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
    """`!=`: all but one; as long as the answer."""

    def holding(self, key: Any) -> Iterable[T]:
        return (item for operand, item in self._items.items() if operand != key)


class Members(Generic[T]):
    """`in`: every member leads to the lists that have it; O(answer)."""

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
    """Operands in order, their items beside them."""

    def __init__(self) -> None:
        self._operands: list[Any] = []
        self._items: list[T] = []

    def __len__(self) -> int:
        return len(self._operands)

    def add(self, operand: Any, item: T) -> None:
        at = bisect_left(self._operands, operand)
        self._operands.insert(at, operand)
        self._items.insert(at, item)

    def fill(self, operands: Sequence[Any], items: Sequence[T]) -> None:
        order = sorted(range(len(operands)), key=operands.__getitem__)
        self._operands = [operands[at] for at in order]
        self._items = [items[at] for at in order]

    def remove(self, operand: Any) -> None:
        at = bisect_left(self._operands, operand)
        del self._operands[at], self._items[at]


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
    """Intervals sorted by their low ends; those that begin by the key are looked at."""

    def __init__(self) -> None:
        self._lows: list[Any] = []
        self._rest: list[tuple[Any, T]] = []

    def __len__(self) -> int:
        return len(self._lows)

    def add(self, operand: tuple[Any, Any], item: T) -> None:
        at = bisect_left(self._lows, operand[0])
        self._lows.insert(at, operand[0])
        self._rest.insert(at, (operand[1], item))

    def fill(self, operands: Sequence[tuple[Any, Any]], items: Sequence[T]) -> None:
        order = sorted(range(len(operands)), key=lambda at: operands[at][0])
        self._lows = [operands[at][0] for at in order]
        self._rest = [(operands[at][1], items[at]) for at in order]

    def remove(self, operand: tuple[Any, Any]) -> None:
        at = bisect_left(self._lows, operand[0])
        while self._rest[at][0] != operand[1]:
            at += 1
        del self._lows[at], self._rest[at]

    def holding(self, key: Any) -> Iterable[T]:
        return (item for high, item in self._rest[: bisect_right(self._lows, key)] if high >= key)


class _Parts(Generic[T]):
    """Texts by a dict, and how many there are of each length, to try the lengths present."""

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
        self._lengths -= Counter([len(operand)])  # drops what falls to 0


class Prefix(_Parts[T]):
    """`prefix`: the key's beginnings of the lengths present."""

    def holding(self, key: str) -> Iterable[T]:
        items = self._items
        parts = [key[:length] for length in self._lengths if length <= len(key)]
        return [items[part] for part in parts if part in items]


class Suffix(_Parts[T]):
    """`suffix`: the key's endings of the lengths present."""

    def holding(self, key: str) -> Iterable[T]:
        items, size = self._items, len(key)
        parts = [key[size - length :] for length in self._lengths if length <= size]
        return [items[part] for part in parts if part in items]


class Substring(_Parts[T]):
    """`substring`: the key's windows of every length present; or every operand, if those are fewer.

    O(length of the key x lengths present), whatever the number of operands.
    """

    def holding(self, key: str) -> Iterable[T]:
        items = self._items
        if len(items) < len(key):
            return [item for part, item in items.items() if part in key]
        parts = {
            key[at : at + length] for length in self._lengths for at in range(len(key) - length + 1)
        }
        return [items[part] for part in parts if part in items]


OPERANDS: Final[dict[str, Callable[[], Operands[Any]]]] = {
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
}
