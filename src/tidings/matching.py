"""Match and score: from an event to the subscribers, or the subscriptions, that want it."""

from collections import defaultdict
from collections.abc import Iterable

from tidings import checks
from tidings.errors import InvalidSubscription
from tidings.index import INDEXES
from tidings.model import Event, Match, Subscription
from tidings.policy import Subscriber
from tidings.score import Ranker, Scorer
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed


class Matcher:
    """Subscribers with their subscriptions, in an index, ready to rank events.

    A subscription may come before its subscriber; it is silent until then.
    """

    def __init__(
        self,
        subscribers: Iterable[Subscriber] = (),
        subscriptions: Iterable[Subscription] = (),
        index: str = "scan",
    ) -> None:
        checks.choice("index", index, INDEXES)
        self.index = index
        self._index = INDEXES[index]()
        self.subscribers: dict[str, Subscriber] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self._owned: dict[str, dict[str, Subscription]] = defaultdict(dict)
        self._rankers: dict[tuple[str, Scorer], Ranker] = {}
        for subscriber in subscribers:
            self.subscribe(subscriber)
        for subscription in subscriptions:
            self.add(subscription)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Add a subscriber, or replace it."""
        self.subscribers[subscriber.id] = subscriber
        self._forget(subscriber.id)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions."""
        if subscriber not in self.subscribers:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        del self.subscribers[subscriber]
        for name in list(self._owned[subscriber]):
            self.remove(name)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; an id that is there already is refused."""
        if subscription.id in self.subscriptions:
            raise InvalidSubscription(
                f"subscription {subscription.id!r} is there already; replace it instead"
            )
        self.subscriptions[subscription.id] = subscription
        self._owned[subscription.subscriber][subscription.id] = subscription
        self._index.add(subscription)
        self._forget(subscription.subscriber)

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        if subscription not in self.subscriptions:
            raise InvalidSubscription(f"there is no subscription {subscription!r}")
        gone = self.subscriptions.pop(subscription)
        del self._owned[gone.subscriber][subscription]
        self._index.remove(subscription)
        self._forget(gone.subscriber)

    def subscriptions_of(self, subscriber: str) -> list[Subscription]:
        """Give the subscriptions of one subscriber, in order of their ids."""
        return [each for _, each in sorted(self._owned[subscriber].items())]

    def matches(self, event: Event) -> list[Match]:
        """Give a match for every subscriber that wants the event, in order of their ids."""
        hits = {False: self._owners(event, partial=False), True: self._owners(event, partial=True)}
        found = (
            self._match(subscriber, event, hits[subscriber.policy.scorer.partial])
            for _, subscriber in sorted(self.subscribers.items())
        )
        return [match for match in found if match is not None]

    def top(self, event: Event, k: int, scorer: Scorer) -> list[tuple[str, float]]:
        """Give the k best subscriptions for the event and their scores, ties by smaller id."""
        if isinstance(scorer, Exact):
            return self._index.top(event, k)
        if isinstance(scorer, Relaxed) and scorer.aggregate == "sum":
            return self._index.top_relaxed(event, k)
        return self._index.top(
            event, k, lambda e, hit: self.ranker(hit.subscriber, scorer).score(e, hit)
        )

    def ranker(self, subscriber: str, scorer: Scorer) -> Ranker:
        """Give the scorer, prepared for what the subscriber has now."""
        if (subscriber, scorer) not in self._rankers:
            owner = self.subscribers.get(subscriber)
            owned = list(self._owned[subscriber].values())
            prepared = scorer.prepare(owned, owner.prefers if owner else ())
            self._rankers[subscriber, scorer] = prepared
        return self._rankers[subscriber, scorer]

    def _owners(self, event: Event, *, partial: bool) -> dict[str, list[Subscription]]:
        wanted = any(each.policy.scorer.partial == partial for each in self.subscribers.values())
        found: dict[str, list[Subscription]] = defaultdict(list)
        look = self._index.touching if partial else self._index.matching
        for hit in look(event) if wanted else ():
            found[hit.subscriber].append(hit)
        return found

    def _match(
        self, subscriber: Subscriber, event: Event, hits: dict[str, list[Subscription]]
    ) -> Match | None:
        own = hits.get(subscriber.id)
        if not own:
            return None
        rank = self.ranker(subscriber.id, subscriber.policy.scorer).rank(event, own)
        ids = tuple(hit.id for hit in own)
        return None if rank is None else Match(subscriber.id, event, rank, ids)

    def _forget(self, subscriber: str) -> None:
        """Drop what was prepared for a subscriber whose subscriptions or preferences change."""
        for key in [key for key in self._rankers if key[0] == subscriber]:
            del self._rankers[key]
