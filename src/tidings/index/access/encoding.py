"""Subscriptions as columns of numbers, from which segments are built."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, compress, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int8s, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.index.access.kernels.records import AMONG, BETWEEN, UNLIKE
from tidings.index.access.vocabulary import Renumbering, Vocabulary, ordered
from tidings.index.protocol import own_score
from tidings.model.conditions.predicate import Condition, Predicate
from tidings.model.records import Subscription

TOGETHER: Final = 2048
"""Subscriptions that are encoded at once; their predicates stay in the cache."""
_COLUMNAR: Final = {"between": 0, "=": 1}
"""The operators whose predicates are encoded together."""
_CONJUNCTIONS: Final[Any] = attrgetter("conjunctions")
_ATTRIBUTE: Final[Any] = attrgetter("attribute")
_OPERATOR: Final[Any] = attrgetter("operator")
_FAMILY: Final[Any] = attrgetter("family")
_OPERAND: Final[Any] = attrgetter("operand")


@dataclass(frozen=True)
class EncodedSubscriptions:
    """Columns of subscriptions, of their conjunctions (rows), and of the checks of these.

    A subscription, a conjunction and a check are each one entry of the columns of their kind; the
    rows of a subscription, and the checks of a row, follow each other.
    """

    numbers: Int32s  # by subscription
    scores: Float64s
    by_id: Int32s  # the subscriptions in order of their ids
    owner: Int32s  # by row: its subscription, as a position
    size: Int32s  # by row: how many checks it has
    term: Int32s  # by check; -1 for a comparison
    slot: Int32s
    low: Int64s
    high: Int64s
    kind: Int8s  # of a comparison, see `records`
    part: AnyArray  # by check: which predicate of the subscription it is, as written
    weight: Float64s  # by check; empty if all weights are 1
    members: Int32s  # the terms of each AMONG and UNLIKE, from its low to its high

    def __len__(self) -> int:
        return len(self.numbers)


def active_parts(subscription: Subscription) -> Iterator[list[tuple[int, float, Predicate]]]:
    """Yield for every conjunction its active predicates: number, weight, predicate.

    Numbers count through all predicates of the subscription, as its `groups` have them.
    """
    if isinstance(subscription.where, Condition):
        number = 0
        for conjunction in subscription.where.conjunctions:
            yield [(number + place, 1.0, part) for place, part in enumerate(conjunction)]
            number += len(conjunction)
        return
    (group,) = subscription.groups
    active = [(number, part) for number, part in enumerate(group) if part.state == "active"]
    if active:  # a conjunction without active predicates never holds
        yield [(number, part.weight, part.predicate) for number, part in active]


class _Checks(NamedTuple):
    """Columns of checks; a check that is not written yet has no term, slot or members."""

    term: Int32s
    slot: Int32s
    low: Float64s
    high: Float64s
    kind: Int8s
    members: Int32s  # how many it has

    @classmethod
    def empty(cls, size: int) -> "_Checks":
        """Return `size` checks that are not written yet."""
        slots, counts = np.full(size, -1, np.int32), np.zeros(size, np.int32)
        bounds = np.zeros(size), np.zeros(size)
        return cls(slots.copy(), slots, *bounds, np.full(size, BETWEEN, np.int8), counts)


class _Parts(NamedTuple):
    """Predicates of one operator, and their places among others."""

    places: Int64s
    predicates: list[Predicate]

    def where(self, chosen: Bools) -> "_Parts":
        """Return those that a mask chooses."""
        if chosen.all():  # as in most batches of subscriptions of one kind
            return self
        predicates = [*compress(self.predicates, chosen.tolist())]
        return _Parts(self.places[chosen], predicates)


class _ColumnBuilder:
    """Checks as columns, so that no object per check outlives its encoding.

    Most predicates are ranges of numbers and equalities. These are encoded column by column, the
    others one by one, in several times the time.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        # Typed arrays grow in place; many small columns would leave gaps in memory.
        self._columns = [array(code) for code in "iiddbi"]
        self._owner, self._part = array("i"), array("i")
        self.size, self.members, self._weight = array("i"), array("i"), array("d")

    def add(self, first: int, subscriptions: Sequence[Subscription]) -> None:
        """Append the checks of some subscriptions, of which the first has this position."""
        wheres = [subscription.where for subscription in subscriptions]
        if not all(type(where) is Condition for where in wheres):
            self._add_active(first, subscriptions)
            return
        conjunctions = [*map(_CONJUNCTIONS, wheres)]
        owners = np.repeat(np.arange(len(wheres)), [*map(len, conjunctions)])
        sizes = self._append([*chain.from_iterable(conjunctions)])
        # Parts are numbered through all conjunctions of their owner.
        before = offsets(np.bincount(owners, sizes, len(wheres)).astype(np.int64))
        parts = np.arange(before[-1]) - np.repeat(before[:-1], np.diff(before))
        self._owner.frombytes((first + owners).astype(np.int32).tobytes())
        self._part.frombytes(parts.astype(np.int32).tobytes())
        if self._weight:
            self._weight.extend(repeat(1.0, len(parts)))

    def _add_active(self, first: int, subscriptions: Sequence[Subscription]) -> None:
        """Append subscriptions some of which have states and weights of predicates."""
        rows, owners, parts = list[Sequence[Predicate]](), list[int](), list[int]()
        self._weight.extend(repeat(1.0, len(self._part) - len(self._weight)))
        for owner, subscription in enumerate(subscriptions, start=first):
            for active in active_parts(subscription):
                numbers, weights, predicates = zip(*active, strict=True)
                rows.append(predicates)
                owners.append(owner)
                parts += numbers
                self._weight.extend(weights)
        self._append(rows)
        self._owner.extend(owners)
        self._part.extend(parts)

    def _append(self, rows: Sequence[Sequence[Predicate]]) -> list[int]:
        """Append the checks of rows; return how many each has."""
        sizes, parts = [*map(len, rows)], [*chain.from_iterable(rows)]
        self.size.extend(sizes)
        checks, whole = _Checks.empty(len(parts)), _Parts(np.arange(len(parts)), parts)
        codes = map(_COLUMNAR.get, map(_OPERATOR, parts), repeat(-1))
        operators = np.fromiter(codes, np.int8, len(parts))
        self._write_ranges(checks, whole.where(operators == _COLUMNAR["between"]))
        equal = whole.where(operators == _COLUMNAR["="])
        checks.term[equal.places] = self._vocabulary.equal_terms(equal.predicates)
        for place in np.flatnonzero((checks.term < 0) & (checks.slot < 0)).tolist():
            term, slot, low, high, members, kind = self._vocabulary.check(parts[place])
            checks.term[place], checks.slot[place] = term, slot
            checks.low[place], checks.high[place] = low, high
            checks.kind[place], checks.members[place] = kind, len(members)
            self.members.extend(members)
        written: list[AnyArray] = [*checks]
        for column, values in zip(self._columns, written, strict=True):
            column.frombytes(values.tobytes())
        return sizes

    def _write_ranges(self, checks: _Checks, ranges: _Parts) -> None:
        """Write ranges of numbers, but for those that are one number."""
        if not ranges.predicates or {*map(_FAMILY, ranges.predicates)} != {"number"}:
            return
        pairs = chain.from_iterable(map(_OPERAND, ranges.predicates))
        bounds = np.fromiter(pairs, np.float64, 2 * len(ranges.predicates)).reshape(-1, 2)
        wide = bounds[:, 0] != bounds[:, 1]
        places, predicates = ranges.where(wide)
        checks.slot[places] = self._vocabulary.number_slots([*map(_ATTRIBUTE, predicates)])
        checks.low[places], checks.high[places] = bounds[wide].T

    @property
    def owner(self) -> Int32s:
        """The owner of each row, as a position."""
        return np.array(self._owner, np.int32)

    @property
    def part(self) -> Int32s:
        """The part of its subscription that each check is."""
        return np.array(self._part, np.int32)

    @property
    def weight(self) -> Float64s:
        """The weight of each check; empty if all are 1."""
        weight = np.array(self._weight, np.float64)
        return np.empty(0) if np.all(weight == 1.0) else weight

    def checks(self) -> tuple[Int32s, Int32s, Int64s, Int64s, Int8s]:
        """Return term, slot, low, high and kind; bounds of members are their positions."""
        term, slot, low, high, kind, count = map(np.array, self._columns)  # of members
        ends = np.cumsum(count, dtype=np.int64)
        low = np.where(count > 0, ends - count, ordered(low))
        return term, slot, low, np.where(count > 0, ends, ordered(high)), kind


def encode(
    subscriptions: Sequence[Subscription], numbers: Iterable[int], vocabulary: Vocabulary
) -> EncodedSubscriptions:
    """Encode subscriptions; up to a microsecond for every predicate, in Python."""
    columns = _ColumnBuilder(vocabulary)
    for first in range(0, len(subscriptions), TOGETHER):
        columns.add(first, subscriptions[first : first + TOGETHER])
    ids = [subscription.id for subscription in subscriptions]
    encoded = EncodedSubscriptions(
        np.array(numbers, np.int32),
        np.array([own_score(subscription) for subscription in subscriptions], np.float64),
        np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
        columns.owner,
        np.array(columns.size, np.int32),
        *columns.checks(),
        columns.part,
        columns.weight,
        np.array(columns.members, np.int32),
    )
    vocabulary.count_uses(np.concatenate([encoded.term, encoded.members]), encoded.slot)
    return encoded


def joined(parts: Sequence[EncodedSubscriptions], ids: Sequence[str]) -> EncodedSubscriptions:
    """Concatenate encoded subscriptions; `ids` by number."""
    before = np.cumsum([0, *map(len, parts)])[:-1]
    members = np.cumsum([0, *(len(part.members) for part in parts)])[:-1]
    shifted = [
        _shifted(part, shift, member_shift)
        for part, shift, member_shift in zip(parts, before, members, strict=True)
    ]
    if any(len(part.weight) for part in parts):
        shifted = [
            part if len(part.weight) else replace(part, weight=np.ones(len(part.term)))
            for part in shifted
        ]
    whole = EncodedSubscriptions(
        *(
            np.concatenate([getattr(part, column.name) for part in shifted])
            for column in fields(EncodedSubscriptions)
        )
    )
    names = [ids[number] for number in whole.numbers[whole.by_id].tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)  # merges runs that are in order
    return replace(whole, by_id=whole.by_id[order])


def _shifted(part: EncodedSubscriptions, shift: int, members: int) -> EncodedSubscriptions:
    """Move positions of subscriptions, and of members, by what comes before this part."""
    step = np.where((part.kind == AMONG) | (part.kind == UNLIKE), members, 0)
    return replace(
        part,
        owner=(part.owner + shift).astype(np.int32),
        by_id=(part.by_id + shift).astype(np.int32),
        low=part.low + step,
        high=part.high + step,
    )


def renumbered(encoded: EncodedSubscriptions, moves: Renumbering) -> EncodedSubscriptions:
    """Return the same in the numbers of another vocabulary."""
    stamped, compared = encoded.term >= 0, (encoded.term < 0) & (encoded.slot >= 0)
    term, slot = encoded.term.copy(), encoded.slot.copy()
    term[stamped] = moves.terms[term[stamped]]
    slot[compared] = moves.slots[slot[compared]]
    return replace(encoded, term=term, slot=slot, members=moves.terms[encoded.members])
