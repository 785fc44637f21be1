"""Ranks one by one, for scorers without a compiled form."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidings.model.dead_letter import Failure, try_call
from tidings.model.records import Event, Subscription
from tidings.rank.bulk.protocol import Owner, RankRequest, Unranked, checked_rank
from tidings.rank.matches import Matches
from tidings.score import Ranker, Scorer


@dataclass(frozen=True)
class Unprepared:
    """Stands for a scorer that could not be prepared; it fails only for matches of its owner."""

    error: Exception

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Raise the error of the preparation."""
        raise self.error

    def score(self, event: Event, hit: Subscription) -> float:
        """Raise the error of the preparation."""
        raise self.error


class _Ranked(NamedTuple):
    """One match: a subscriber, its rank, and the subscriptions that matched."""

    owner: int
    rank: float
    numbers: list[int]


class PythonMethod:
    """Calls each owner's own ranker, for scorers of whole matches, or for those of partial ones."""

    def __init__(self, *, partial: bool) -> None:
        self.partial = partial
        self._rankers: dict[int, Ranker] = {}
        self._owner: dict[int, int] = {}
        self.failed: dict[int, Exception] = {}
        """Owners whose scorers raised an error; they get no ranks until their next update."""

    def supports(self, scorer: Scorer) -> bool:
        """Return whether a scorer needs the same hits."""
        return scorer.partial == self.partial

    def update(self, owners: Sequence[Owner]) -> None:
        """Prepare the scorers."""
        for owner in owners:
            subscriptions = list(owner.subscriptions.values())
            prepare = owner.scorer.prepare
            ranker: Ranker | Failure = try_call(prepare, subscriptions, owner.subscriber.prefers)
            if isinstance(ranker, Failure):
                ranker = Unprepared(ranker.error)
            self._rankers[owner.number] = ranker
            self.failed.pop(owner.number, None)
            self._owner |= dict.fromkeys(owner.subscriptions, owner.number)

    def remove(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._owner.pop(number, None)

    def forget(self, owner: int) -> None:
        """Forget the ranker of an owner."""
        self._rankers.pop(owner, None)
        self.failed.pop(owner, None)

    def rank(self, request: RankRequest) -> Matches:
        """Rank each event for each owner of a hit."""
        by_event = [list(self._ranked(request, event)) for event in range(len(request.events))]
        ranked = [match for matches in by_event for match in matches]
        return Matches(
            np.cumsum([0, *map(len, by_event)]),
            np.array([match.owner for match in ranked], np.int32),
            np.array([match.rank for match in ranked], np.float64),
            np.cumsum([0, *(len(match.numbers) for match in ranked)]),
            np.array([number for match in ranked for number in match.numbers], np.int32),
        )

    def _ranked(self, request: RankRequest, event: int) -> Iterator[_Ranked]:
        hits, owned = request.hits, defaultdict[int, dict[int, Subscription]](dict)
        for number in hits.numbers[hits.starts[event] : hits.starts[event + 1]].tolist():
            if number in self._owner:
                owned[self._owner[number]][number] = request.subscriptions[number]
        for owner, own in owned.items():
            rank = self._rank(request, event, owner, list(own.values()))
            if rank is not None:
                yield _Ranked(owner, rank, list(own))

    def _rank(
        self, request: RankRequest, event: int, owner: int, hits: list[Subscription]
    ) -> float | None:
        """Return the rank of an owner's ranker; None if it fails."""
        if owner in self.failed:
            return None
        rank = try_call(self._rankers[owner].rank, request.events[event], hits)
        if not isinstance(rank, Failure):
            rank = try_call(checked_rank, rank)
        if not isinstance(rank, Failure):
            return rank
        if request.unranked is None:
            self.failed[owner] = rank.error
        else:
            request.unranked.append(Unranked(event, owner, rank.reason))
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of the records: two numbers per subscription, and no arrays."""
        return 16 * len(self._owner)
