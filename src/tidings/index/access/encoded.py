"""Subscriptions as columns of numbers, from which segments are built."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from tidings.index.access.vocabulary import Check, Moves, Vocabulary, ordered
from tidings.index.protocol import own_score
from tidings.kernels.access import Bytes, Floats, Ints, Shorts
from tidings.model import Subscription
from tidings.predicate import Condition, Predicate

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Encoded:
    """Subscriptions, their conjunctions (rows) and the checks of these, one after the other."""

    numbers: Shorts  # of each subscription
    scores: Floats
    by_id: Shorts  # the subscriptions in order of their ids
    owner: Shorts  # of each row: the place of its subscription
    size: Shorts
    entry: Shorts  # of each check; -1 for an interval
    slot: Shorts
    low: Ints
    high: Ints
    differs: Flags
    part: Bytes  # which predicate of the subscription it is, as written
    weight: Floats  # nothing, if all are 1
    members: Shorts  # of each `in` (slot -1), from its low to its high

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


def encode(
    subscriptions: Sequence[Subscription], numbers: Iterable[int], vocabulary: Vocabulary
) -> Encoded:
    """Give subscriptions in numbers."""
    use = vocabulary.use
    owner, size, place, weight = list[int](), list[int](), list[int](), list[float]()
    checks = list[Check]()
    for at, each in enumerate(subscriptions):
        for parts in parts_of(each):
            owner.append(at)
            size.append(len(parts))
            for number, heavy, part in parts:
                place.append(number)
                weight.append(heavy)
                checks.append(use(part))
    ids = [each.id for each in subscriptions]
    found = Encoded(
        np.array(numbers, np.int32),
        np.array([own_score(each) for each in subscriptions], np.float64),
        np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
        np.array(owner, np.int32),
        np.array(size, np.int32),
        *_columns(checks),
        np.array(place, np.int32),
        _weights(np.array(weight, np.float64)),
        np.array(list(chain.from_iterable(each.members for each in checks)), np.int32),
    )
    vocabulary.note_uses(np.concatenate([found.entry, found.members]), found.slot)
    return found


def _columns(checks: list[Check]) -> tuple[Shorts, Shorts, Ints, Ints, Flags]:
    """Give entry, slot, low, high and whether a value must differ; of an `in` where it lies."""
    entry, slot, low, high, members = zip(*checks, strict=True) if checks else ([],) * 5
    count = np.array([len(each) for each in members], np.int64)
    ends = np.cumsum(count)
    tops = np.array(high, np.float64)
    differs = np.isnan(tops)
    return (
        np.array(entry, np.int32),
        np.array(slot, np.int32),
        np.where(count > 0, ends - count, ordered(low)),
        np.where(count > 0, ends, ordered(np.where(differs, 0.0, tops))),
        differs,
    )


def _weights(weight: Floats) -> Floats:
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


def only(given: Encoded, alive: Flags) -> Encoded:
    """Give the subscriptions that are alive."""
    if alive.all():
        return given
    number = np.cumsum(alive, dtype=np.int32) - 1
    rows = alive[given.owner] if len(given.owner) else np.empty(0, np.bool_)
    checks = np.repeat(rows, given.size)
    among = (given.slot == -1) & (given.entry < 0) & checks
    low, high = given.low[checks].copy(), given.high[checks].copy()
    ends = np.cumsum(given.high[among] - given.low[among])
    low[among[checks]], high[among[checks]] = ends - (high - low)[among[checks]], ends
    return Encoded(
        given.numbers[alive],
        given.scores[alive],
        number[given.by_id[alive[given.by_id]]],
        number[given.owner[rows]],
        given.size[rows],
        given.entry[checks],
        given.slot[checks],
        low,
        high,
        given.differs[checks],
        given.part[checks],
        given.weight[checks] if len(given.weight) else given.weight,
        given.members[spans(given.low[among], given.high[among])],
    )


def spans(first: Ints, last: Ints) -> Ints:
    """Give the numbers from each first to before its last, one span after the other."""
    size = last - first
    ends = np.cumsum(size)
    found: Ints = np.repeat(first - (ends - size), size) + np.arange(ends[-1] if len(ends) else 0)
    return found


def renamed(given: Encoded, moves: Moves) -> Encoded:
    """Give the same in the numbers of another vocabulary."""
    stamped, compared = given.entry >= 0, (given.entry < 0) & (given.slot >= 0)
    entry, slot = given.entry.copy(), given.slot.copy()
    entry[stamped] = moves.entries[entry[stamped]]
    slot[compared] = moves.slots[slot[compared]]
    return replace(given, entry=entry, slot=slot, members=moves.entries[given.members])
