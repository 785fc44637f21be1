"""Subscriptions as columns of numbers, from which segments are built."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int8s, Int32s, Int64s
from tidings.index.access.kernels.records import AMONG, UNLIKE
from tidings.index.access.vocabulary import Renumbering, Vocabulary, ordered
from tidings.index.protocol import own_score
from tidings.model.conditions.predicate import Condition, Predicate
from tidings.model.records import Subscription

TOGETHER: Final = 2048
"""Subscriptions whose checks are objects at the same time; these stay in the cache."""


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

    def add(self, first: int, subscriptions: Sequence[Subscription]) -> None:
        """Append the checks of some subscriptions, of which the first has this position.

        Whole columns at a time: a call for each number would take most of the time.
        """
        rows, owners, parts = list[Sequence[Predicate]](), list[int](), list[int]()
        weights = list[float]()
        for owner, subscription in enumerate(subscriptions, start=first):
            where, before = subscription.where, 0
            if not isinstance(where, Condition):
                for active in active_parts(subscription):
                    numbers, row_weights, predicates = zip(*active, strict=True)
                    rows.append(predicates)
                    owners.append(owner)
                    parts += numbers
                    weights += row_weights
                continue
            for conjunction in where.conjunctions:
                rows.append(conjunction)
                owners.append(owner)
                after = before + len(conjunction)
                parts += range(before, after)
                before = after
            weights += [1.0] * before
        self._append(rows)
        self.owner.extend(owners)
        self.part.extend(parts)
        self.weight.extend(weights)

    def _append(self, rows: Sequence[Sequence[Predicate]]) -> None:
        """Append the checks of rows."""
        self.size.extend(map(len, rows))
        checks = [*map(self._check, chain.from_iterable(rows))]
        if not checks:
            return
        term, slot, low, high, members, kind = zip(*checks, strict=True)
        self.term.extend(term)
        self.slot.extend(slot)
        self.low.extend(low)
        self.high.extend(high)
        self.kind.extend(kind)
        self.count.extend(map(len, members))
        self.members.extend(chain.from_iterable(members))

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
    for first in range(0, len(subscriptions), TOGETHER):
        columns.add(first, subscriptions[first : first + TOGETHER])
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


def renumbered(encoded: EncodedSubscriptions, moves: Renumbering) -> EncodedSubscriptions:
    """Return the same in the numbers of another vocabulary."""
    stamped, compared = encoded.term >= 0, (encoded.term < 0) & (encoded.slot >= 0)
    term, slot = encoded.term.copy(), encoded.slot.copy()
    term[stamped] = moves.terms[term[stamped]]
    slot[compared] = moves.slots[slot[compared]]
    return replace(encoded, term=term, slot=slot, members=moves.terms[encoded.members])
