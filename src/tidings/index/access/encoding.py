"""Subscriptions as columns of numbers, from which segments are built."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int32s, Int64s
from tidings.index.access.vocabulary import Moves, Vocabulary, ordered
from tidings.index.protocol import own_score
from tidings.model.conditions.predicate import Condition, Predicate
from tidings.model.records import Subscription


@dataclass(frozen=True)
class Encoded:
    """Subscriptions, their conjunctions (rows) and the checks of these, one after the other."""

    numbers: Int32s  # of each subscription
    scores: Float64s
    by_id: Int32s  # the subscriptions in order of their ids
    owner: Int32s  # of each row: the place of its subscription
    size: Int32s
    entry: Int32s  # of each check; -1 for an interval
    slot: Int32s
    low: Int64s
    high: Int64s
    differs: Bools
    part: AnyArray  # which predicate of the subscription it is, as written
    weight: Float64s  # nothing, if all are 1
    members: Int32s  # of each `in` (slot -1), from its low to its high

    def __len__(self) -> int:
        return len(self.numbers)


def parts_of(subscription: Subscription) -> Iterator[list[tuple[int, float, Predicate]]]:
    """Give the active predicates of every conjunction: number, weight, predicate.

    Numbers count through all predicates of the subscription, as its `groups` have them.
    """
    if isinstance(subscription.where, Condition):
        number = 0
        for conjunction in subscription.where.conjunctions:
            yield [(number + at, 1.0, part) for at, part in enumerate(conjunction)]
            number += len(conjunction)
        return
    (group,) = subscription.groups
    active = [(at, part) for at, part in enumerate(group) if part.state == "active"]
    if active:  # a conjunction without active predicates never holds
        yield [(at, part.weight, part.predicate) for at, part in active]


class Columns:
    """Checks as they come, in arrays, so that no object of one outlives it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._use = vocabulary.use
        self.owner, self.size, self.place = array("i"), array("i"), array("i")
        self.entry, self.slot, self.low, self.high = array("i"), array("i"), array("d"), array("d")
        self.count, self.members, self.weight = array("i"), array("i"), array("d")

    def add(self, owner: int, subscription: Subscription) -> None:
        """Append the checks of a subscription."""
        if not isinstance(subscription.where, Condition):
            for parts in parts_of(subscription):
                places, weights, predicates = zip(*parts, strict=True)
                self._row(owner, predicates)
                self.place.extend(places)
                self.weight.extend(weights)
            return
        first = 0
        for conjunction in subscription.where.conjunctions:
            self._row(owner, conjunction)
            self.place.extend(range(first, first + len(conjunction)))
            self.weight.extend([1.0] * len(conjunction))
            first += len(conjunction)

    def _row(self, owner: int, parts: Sequence[Predicate]) -> None:
        self.owner.append(owner)
        self.size.append(len(parts))
        use, entries, slots = self._use, self.entry.append, self.slot.append
        lows, highs, counts = self.low.append, self.high.append, self.count.append
        for part in parts:
            entry, slot, low, high, members = use(part)
            entries(entry)
            slots(slot)
            lows(low)
            highs(high)
            counts(len(members))
            if members:
                self.members.extend(members)

    def checks(self) -> tuple[Int32s, Int32s, Int64s, Int64s, Bools]:
        """Give entry, slot, low, high and whether a value must differ; of an `in` where it lies."""
        count, tops = np.array(self.count, np.int64), np.array(self.high)
        ends, differs = np.cumsum(count), np.isnan(tops)
        return (
            np.array(self.entry, np.int32),
            np.array(self.slot, np.int32),
            np.where(count > 0, ends - count, ordered(self.low)),
            np.where(count > 0, ends, ordered(np.where(differs, 0.0, tops))),
            differs,
        )


def encode(
    subscriptions: Sequence[Subscription], numbers: Iterable[int], vocabulary: Vocabulary
) -> Encoded:
    """Give subscriptions in numbers; a microsecond or two for every predicate, in Python."""
    columns = Columns(vocabulary)
    for at, each in enumerate(subscriptions):
        columns.add(at, each)
    ids = [each.id for each in subscriptions]
    found = Encoded(
        np.array(numbers, np.int32),
        np.array([own_score(each) for each in subscriptions], np.float64),
        np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
        np.array(columns.owner, np.int32),
        np.array(columns.size, np.int32),
        *columns.checks(),
        np.array(columns.place, np.int32),
        _weights(np.array(columns.weight, np.float64)),
        np.array(columns.members, np.int32),
    )
    vocabulary.note_uses(np.concatenate([found.entry, found.members]), found.slot)
    return found


def _weights(weight: Float64s) -> Float64s:
    return np.empty(0) if np.all(weight == 1.0) else weight


def joined(parts: Sequence[Encoded], ids: Sequence[str]) -> Encoded:
    """Put encoded subscriptions together; `ids` by number."""
    before = np.cumsum([0, *map(len, parts)])[:-1]
    members = np.cumsum([0, *(len(part.members) for part in parts)])[:-1]
    moved = [
        _moved(part, shift, places)
        for part, shift, places in zip(parts, before, members, strict=True)
    ]
    if any(len(part.weight) for part in parts):
        moved = [
            each if len(each.weight) else replace(each, weight=np.ones(len(each.entry)))
            for each in moved
        ]
    made = Encoded(
        *(np.concatenate([getattr(each, of.name) for each in moved]) for of in fields(Encoded))
    )
    names = [ids[number] for number in made.numbers[made.by_id].tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)  # runs in order are merged
    return replace(made, by_id=made.by_id[order])


def _moved(part: Encoded, shift: int, members: int) -> Encoded:
    among = part.slot == -1
    among &= part.entry < 0
    step = np.where(among, members, 0)
    return replace(
        part,
        owner=(part.owner + shift).astype(np.int32),
        by_id=(part.by_id + shift).astype(np.int32),
        low=part.low + step,
        high=part.high + step,
    )


def spans(first: Int64s, last: Int64s) -> Int64s:
    """Give the numbers from each first to before its last, one span after the other."""
    size = last - first
    ends = np.cumsum(size)
    found: Int64s = np.repeat(first - (ends - size), size) + np.arange(ends[-1] if len(ends) else 0)
    return found


def renamed(given: Encoded, moves: Moves) -> Encoded:
    """Give the same in the numbers of another vocabulary."""
    stamped, compared = given.entry >= 0, (given.entry < 0) & (given.slot >= 0)
    entry, slot = given.entry.copy(), given.slot.copy()
    entry[stamped] = moves.entries[entry[stamped]]
    slot[compared] = moves.slots[slot[compared]]
    return replace(given, entry=entry, slot=slot, members=moves.entries[given.members])
