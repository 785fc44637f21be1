"""Matching that variants share: each event is looked up once, and ranked once for each scorer.

    events --Access--> hits --BulkRanker--> Matches of scorer A --> variants with scorer A
                            --BulkRanker--> Matches of scorer B --> variants with scorer B

Variants differ in decay, window, diversity, k and rules far more often than in their scorers, and
what follows matching costs little in comparison.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tidings.errors import clipped, described
from tidings.index.access import Access
from tidings.index.access.query import FoundHits
from tidings.index.access.snapshot import Listener
from tidings.lab.variants import Variant
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.bulk import BulkRanker
from tidings.rank.matches import Matches


class SharedHits:
    """An index that looks up a batch of events once, however many rankers ask for it."""

    def __init__(self, index: Access) -> None:
        self._index = index
        self._events: Sequence[Event] = ()
        self._found: dict[str, FoundHits] = {}

    def listen(self, listener: Listener) -> None:
        """Register a stage that follows the numbers of the index."""
        self._index.listen(listener)

    def matching_many(self, events: Sequence[Event]) -> FoundHits:
        """Return the subscriptions that cover each event."""
        return self._once("matching", events, self._index.matching_many)

    def touching_many(self, events: Sequence[Event]) -> FoundHits:
        """Return the subscriptions that each event touches."""
        return self._once("touching", events, self._index.touching_many)

    def _once(
        self,
        kind: str,
        events: Sequence[Event],
        look_up: Callable[[Sequence[Event]], FoundHits],
    ) -> FoundHits:
        if events is not self._events:
            self._events, self._found = events, {}
        if kind not in self._found:
            self._found[kind] = look_up(events)
        return self._found[kind]


class SharedMatcher:
    """Ranks events for some subscribers by the scorers of all variants.

    `ranking_of` has for each variant the number of its ranking: variants in which every subscriber
    has the same scorer share one. Subscribers are numbered as they are listed, and so are
    subscriptions.
    """

    def __init__(
        self,
        subscribers: Sequence[Subscriber],
        subscriptions: Sequence[Subscription],
        variants: Sequence[Variant],
    ) -> None:
        index = Access(subscriptions)
        self._hits, self.failed = SharedHits(index), dict[int, dict[str, str]]()
        rankings = [
            tuple(variant.policy_of(subscriber).scorer for subscriber in subscribers)
            for variant in variants
        ]
        distinct = list(dict.fromkeys(rankings))
        self.ranking_of = [distinct.index(ranking) for ranking in rankings]
        first = [variants[self.ranking_of.index(number)] for number in range(len(distinct))]
        self._rankers = [
            self._ranker(number, variant, subscribers) for number, variant in enumerate(first)
        ]
        self._positions = _Positions(subscriptions)
        index.listen(self._positions)

    @property
    def rankings(self) -> int:
        """The number of different rankings."""
        return len(self._rankers)

    def match(self, events: Sequence[Event]) -> list[Matches]:
        """Return the matches of events by each ranking."""
        matches = [ranker.rank(events) for ranker in self._rankers]
        places = self._positions.places
        return [ranked._replace(matched=places[ranked.matched]) for ranked in matches]

    def _ranker(
        self, number: int, variant: Variant, subscribers: Sequence[Subscriber]
    ) -> BulkRanker:
        failed = self.failed.setdefault(number, {})

        def set_aside(subscriber: str, error: Exception) -> None:
            failed[subscriber] = clipped(f"its scorer failed: {described(error)}")

        ranker = BulkRanker(self._hits, set_aside)
        for subscriber in subscribers:
            policy = variant.policy_of(subscriber)
            ranker.subscribe(Subscriber(subscriber.id, policy, subscriber.prefers))
        return ranker


class _Positions:
    """The places of subscriptions in their list, by their numbers in the index."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self._place = {subscription.id: place for place, subscription in enumerate(subscriptions)}
        self.places = np.zeros(len(subscriptions), np.int32)

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        if len(numbers) and max(numbers) >= len(self.places):
            self.places = np.resize(self.places, max(numbers) + 1)
        self.places[list(numbers)] = [self._place[added.id] for added in subscriptions]

    def on_removed(self, numbers: Sequence[int]) -> None:
        """Do nothing: no subscription leaves a recording."""
