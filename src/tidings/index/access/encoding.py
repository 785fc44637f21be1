"""Subscriptions as columns of numbers, from which segments are built."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int8s, Int32s, Int64s
from tidings.index.access.kernels.records import AMONG, UNLIKE
from tidings.index.access.vocabulary import Renumbering, Vocabulary, ordered
from tidings.index.protocol import own_score
from tidings.model.conditions.predicate import Condition, Predicate
from tidings.model.records import Subscription


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


class _ColumnBuilder:
    """Checks appended to typed arrays, so that no object per check outlives its encoding."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._check = vocabulary.check
        self.owner, self.size, self.part = array("i"), array("i"), array("i")
        self.term, self.slot, self.low, self.high = array("i"), array("i"), array("d"), array("d")
        self.count, self.members, self.weight = array("i"), array("i"), array("d")
        self.kind = array("b")

    def add(self, owner: int, subscription: Subscription) -> None:
        """Append the checks of a subscription."""
        if not isinstance(subscription.where, Condition):
            for parts in active_parts(subscription):
                numbers, weights, predicates = zip(*parts, strict=True)
                self._add_row(owner, predicates)
                self.part.extend(numbers)
                self.weight.extend(weights)
            return
        first = 0  # the same without a tuple per predicate
        for conjunction in subscription.where.conjunctions:
            self._add_row(owner, conjunction)
            self.part.extend(range(first, first + len(conjunction)))
            self.weight.extend([1.0] * len(conjunction))
            first += len(conjunction)

    def _add_row(self, owner: int, parts: Sequence[Predicate]) -> None:
        self.owner.append(owner)
        self.size.append(len(parts))
        check, terms, slots = self._check, self.term.append, self.slot.append
        lows, highs, counts = self.low.append, self.high.append, self.count.append
        kinds = self.kind.append
        for part in parts:
            term, slot, low, high, members, kind = check(part)
            terms(term)
            slots(slot)
            lows(low)
            highs(high)
            kinds(kind)
            counts(len(members))
            if members:
                self.members.extend(members)

    def checks(self) -> tuple[Int32s, Int32s, Int64s, Int64s, Int8s]:
        """Return term, slot, low, high and kind; bounds of members are their positions."""
        count = np.array(self.count, np.int64)
        ends = np.cumsum(count)
        return (
            np.array(self.term, np.int32),
            np.array(self.slot, np.int32),
            np.where(count > 0, ends - count, ordered(self.low)),
            np.where(count > 0, ends, ordered(self.high)),
            np.array(self.kind, np.int8),
        )


def encode(
    subscriptions: Sequence[Subscription], numbers: Iterable[int], vocabulary: Vocabulary
) -> EncodedSubscriptions:
    """Encode subscriptions; a microsecond or two for every predicate, in Python."""
    columns = _ColumnBuilder(vocabulary)
    for position, subscription in enumerate(subscriptions):
        columns.add(position, subscription)
    ids = [subscription.id for subscription in subscriptions]
    encoded = EncodedSubscriptions(
        np.array(numbers, np.int32),
        np.array([own_score(subscription) for subscription in subscriptions], np.float64),
        np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
        np.array(columns.owner, np.int32),
        np.array(columns.size, np.int32),
        *columns.checks(),
        np.array(columns.part, np.int32),
        _weights(np.array(columns.weight, np.float64)),
        np.array(columns.members, np.int32),
    )
    vocabulary.count_uses(np.concatenate([encoded.term, encoded.members]), encoded.slot)
    return encoded


def _weights(weight: Float64s) -> Float64s:
    return np.empty(0) if np.all(weight == 1.0) else weight


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


def spans(first: Int64s, last: Int64s) -> Int64s:
    """Return the integers from each first up to its last, one span after the other."""
    size = last - first
    ends = np.cumsum(size)
    whole: Int64s = np.repeat(first - (ends - size), size) + np.arange(ends[-1] if len(ends) else 0)
    return whole


def renumbered(encoded: EncodedSubscriptions, moves: Renumbering) -> EncodedSubscriptions:
    """Return the same in the numbers of another vocabulary."""
    stamped, compared = encoded.term >= 0, (encoded.term < 0) & (encoded.slot >= 0)
    term, slot = encoded.term.copy(), encoded.slot.copy()
    term[stamped] = moves.terms[term[stamped]]
    slot[compared] = moves.slots[slot[compared]]
    return replace(encoded, term=term, slot=slot, members=moves.terms[encoded.members])
