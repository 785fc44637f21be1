"""Subscriptions as columns of numbers, from which segments are built."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, chain, compress, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int8s, Int32s, Int64s
from tidings.compiled.arrays import distinct, offsets, stable_order
from tidings.index.access.kernels.records import AMONG, BETWEEN, UNLIKE
from tidings.index.access.vocabulary import Renumbering, Vocabulary, ordered
from tidings.model.conditions.predicate import (
    FOLDED,
    PATTERNS,
    PRESENCE,
    Condition,
    Predicate,
)
from tidings.model.records import Subscription

TOGETHER: Final = 2048
"""Subscriptions that are encoded at once; their predicates stay in the cache."""
_SAME_TERMS: Final = {"=", *PATTERNS, *FOLDED, *PRESENCE}
"""The operators whose predicates are terms, under the operator and the operand."""
_ID: Final[Any] = attrgetter("id")
_SCORE: Final[Any] = attrgetter("score")
_WHERE: Final[Any] = attrgetter("where")
_CONJUNCTIONS: Final[Any] = attrgetter("conjunctions")
_GROUP: Final[Any] = attrgetter("attribute", "operator", "family")
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


class _Group(NamedTuple):
    """What predicates that are encoded together have in common."""

    attribute: str
    operator: str
    family: str

    @property
    def is_range(self) -> bool:
        """Whether they are intervals of a slot."""
        return self.operator == "between" and self.family != "string"


class _Groups(dict[tuple[str, str, str], int]):
    """Numbers of groups; a group gets the next one when it is first looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.by_number = list[_Group]()

    def __missing__(self, group: tuple[str, str, str]) -> int:
        number = self[group] = len(self.by_number)
        self.by_number.append(_Group(*group))
        return number


class _Batch(NamedTuple):
    """Predicates that are encoded at once; groups and operands change for single values."""

    parts: Sequence[Predicate]
    operands: list[Any]
    groups: Int32s
    checks: _Checks
    members: dict[int, Sequence[int]]  # by place


class _ColumnBuilder:
    """Checks as columns, so that no object per check outlives its encoding.

    Predicates are encoded group by group, and all ranges at once. Only the few that have operators
    of other kinds are encoded one by one, in several times the time.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        # Typed arrays grow in place; many small columns would leave gaps in memory.
        self._columns = [array(code) for code in "iiddbi"]
        self._owner, self._part = array("i"), array("i")
        self.size, self.members, self._weight = array("i"), array("i"), array("d")
        self._groups = _Groups()

    def add(self, first: int, subscriptions: Sequence[Subscription]) -> None:
        """Append the checks of some subscriptions, of which the first has this position."""
        wheres = [*map(_WHERE, subscriptions)]
        if {*map(type, wheres)} != {Condition}:
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
        numbers = map(self._groups.__getitem__, map(_GROUP, parts))
        groups = np.fromiter(numbers, np.int32, len(parts))
        batch = _Batch(parts, [*map(_OPERAND, parts)], groups, _Checks.empty(len(parts)), {})
        self._write_ranges(batch)
        self._write_others(batch)
        for place, members in sorted(batch.members.items()):
            batch.checks.members[place] = len(members)
            self.members.extend(members)
        written: list[AnyArray] = [*batch.checks]
        for column, values in zip(self._columns, written, strict=True):
            column.frombytes(values.tobytes())
        return sizes

    def _write_ranges(self, batch: _Batch) -> None:
        """Write the ranges; those of a single value move to the group of equal values."""
        _, operands, groups, checks, _ = batch
        is_range = np.array([group.is_range for group in self._groups.by_number], np.bool_)[groups]
        places = np.flatnonzero(is_range)
        pairs = chain.from_iterable(compress(operands, is_range.tolist()))
        low, high = np.fromiter(pairs, np.float64, 2 * len(places)).reshape(-1, 2).T
        wide = low != high
        ranges, single = places[wide], places[~wide]
        checks.slot[ranges] = self._by_group(groups[ranges], self._slot)
        checks.low[ranges], checks.high[ranges] = low[wide], high[wide]
        groups[single] = self._by_group(groups[single], self._equal)
        for place, value in zip(single.tolist(), low[~wide].tolist(), strict=True):
            operands[place] = value

    def _by_group(self, groups: Int32s, number: Callable[[_Group], int]) -> Int32s:
        """Return a number of each group, which is asked for once."""
        numbers = np.empty(len(self._groups), np.int32)
        for group in distinct(groups, len(numbers)).tolist():
            numbers[group] = number(self._groups.by_number[group])
        return numbers[groups]

    def _slot(self, group: _Group) -> int:
        terms = self._vocabulary.family_terms(group.attribute, group.family)
        return self._vocabulary.slot(group.attribute, terms)

    def _equal(self, group: _Group) -> int:
        return self._groups[group.attribute, "=", group.family]

    def _write_others(self, batch: _Batch) -> None:
        """Write the checks that are not written yet, group by group."""
        rest = np.flatnonzero(batch.checks.slot < 0)
        rest = rest[stable_order(batch.groups[rest], len(self._groups))]
        of_rest, places, terms = batch.groups[rest], rest.tolist(), list[int]()
        ends = np.flatnonzero(np.diff(of_rest, append=-1)) + 1
        for group, end in zip(of_rest[ends - 1].tolist(), ends.tolist(), strict=True):
            some = places[len(terms) : end]
            terms += self._write_group(batch, self._groups.by_number[group], some)
        batch.checks.term[rest] = terms

    def _write_group(self, batch: _Batch, group: _Group, places: Sequence[int]) -> list[int]:
        """Write the checks of one group but for their terms, which are returned; -1 for none."""
        vocabulary, (name, operator, family) = self._vocabulary, group
        if operator in _SAME_TERMS:
            operands = [*map(batch.operands.__getitem__, places)]
            return vocabulary.terms_of(name, family, operator, operands)
        if operator == "in":
            lists = [[*batch.operands[place]] for place in places]
            members = vocabulary.terms_of(name, family, "=", [*chain.from_iterable(lists)])
            ends = [*accumulate(map(len, lists), initial=0)]
            for place, first, end in zip(places, ends, ends[1:], strict=False):
                batch.members[place] = members[first:end]
            batch.checks.kind[places] = AMONG
            return [-1] * len(places)
        return [self._write_check(batch, place) for place in places]

    def _write_check(self, batch: _Batch, place: int) -> int:
        """Write one check of any kind but for its term, which is returned; -1 for none."""
        checks = batch.checks
        term, slot, low, high, members, kind = self._vocabulary.check(batch.parts[place])
        checks.slot[place], checks.kind[place] = slot, kind
        checks.low[place], checks.high[place] = low, high
        if members:
            batch.members[place] = members
        return term

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
    ids = [*map(_ID, subscriptions)]
    scores = np.array([*map(_SCORE, subscriptions)], np.float64)
    encoded = EncodedSubscriptions(
        np.array(numbers, np.int32),
        np.where(np.isnan(scores), 1.0, scores),  # the score of a subscription without one
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
    if len(parts) == 1:
        return parts[0]
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
