"""Ranks one by one, for scorers that have no compiled form."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.dead_letter import Failure, try_call
from tidings.model.records import Event, Subscription
from tidings.rank.bulk.protocol import Asked, Owner, Unranked, checked_rank
from tidings.rank.matches import Matches
from tidings.score import Ranker, Scorer

Match = tuple[int, float, list[int]]


@dataclass(frozen=True)
class Unprepared:
    """Stands for a scorer that could not be prepared: it fails for what its owner matches only."""

    error: Exception

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Raise what was raised."""
        raise self.error

    def score(self, event: Event, hit: Subscription) -> float:
        """Raise what was raised."""
        raise self.error


class OneByOne:
    """Asks each owner's own ranker; for scorers that look at whole matches, or at partial ones."""

    def __init__(self, *, partial: bool) -> None:
        self.partial = partial
        self._rankers: dict[int, Ranker] = {}
        self._owner: dict[int, int] = {}
        self.failed: dict[int, Exception] = {}
        """The owners whose scorers raised an error; they get no ranks until they are laid anew."""

    def takes(self, scorer: Scorer) -> bool:
        """Take any scorer that asks the index the same."""
        return scorer.partial == self.partial

    def lay(self, owners: Sequence[Owner]) -> None:
        """Prepare the scorers."""
        for owner in owners:
            owned, prefers = list(owner.owned.values()), owner.subscriber.prefers
            ranker: Ranker | Failure = try_call(owner.scorer.prepare, owned, prefers)
            if isinstance(ranker, Failure):
                ranker = Unprepared(ranker.error)
            self._rankers[owner.number] = ranker
            self.failed.pop(owner.number, None)
            self._owner |= dict.fromkeys(owner.owned, owner.number)

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions."""
        for number in numbers:
            self._owner.pop(number, None)

    def forget(self, owner: int) -> None:
        """Forget the ranker of an owner."""
        self._rankers.pop(owner, None)
        self.failed.pop(owner, None)

    def rank(self, asked: Asked) -> Matches:
        """Rank each event for each owner of something that was found."""
        found = [list(self._matches(asked, at)) for at in range(len(asked.events))]
        matches = [match for each in found for match in each]
        return Matches(
            np.cumsum([0, *map(len, found)]),
            np.array([owner for owner, _, _ in matches], np.int32),
            np.array([rank for _, rank, _ in matches], np.float64),
            np.cumsum([0, *(len(numbers) for _, _, numbers in matches)]),
            np.array([each for _, _, numbers in matches for each in numbers], np.int32),
        )

    def _matches(self, asked: Asked, event: int) -> Iterator[Match]:
        held, hits = asked.held, defaultdict[int, dict[int, Subscription]](dict)
        for number in held.numbers[held.starts[event] : held.starts[event + 1]].tolist():
            if number in self._owner:
                hits[self._owner[number]][number] = asked.subscriptions[number]
        for owner, own in hits.items():
            rank = self._rank(asked, event, owner, list(own.values()))
            if rank is not None:
                yield owner, rank, list(own)

    def _rank(self, asked: Asked, event: int, owner: int, hits: list[Subscription]) -> float | None:
        """Return what an owner's ranker says; None if it fails."""
        if owner in self.failed:
            return None
        rank = try_call(self._rankers[owner].rank, asked.events[event], hits)
        if not isinstance(rank, Failure):
            rank = try_call(checked_rank, rank)
        if not isinstance(rank, Failure):
            return rank
        if asked.unranked is None:
            self.failed[owner] = rank.error
        else:
            asked.unranked.append(Unranked(event, owner, rank.reason))
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of the records: two numbers a subscription, and no arrays."""
        return 16 * len(self._owner)
