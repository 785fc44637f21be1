"""Match and score: from an event to the subscribers, or the subscriptions, that want it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tidings.errors import InvalidPolicy, InvalidSubscription, TidingsError, described, shown
from tidings.index import INDEXES, Index
from tidings.index.access import Access
from tidings.model import validate
from tidings.model.records import Event, Match, Subscription
from tidings.policy import Subscriber
from tidings.rank.bulk import Fanout
from tidings.rank.bulk.protocol import Unranked, checked_rank
from tidings.rank.matches import Matches
from tidings.score import Ranker, Scorer
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

AUTO: Final = "auto"
MANY: Final = 1000
"""With so many subscriptions, compiled kernels are worth the time that they take to load."""
PREPARED: Final = 8
"""Scorers that are kept prepared for one subscriber."""
Refusal = tuple[Subscription, InvalidSubscription]


class Matcher:
    """Subscribers with their subscriptions, in an index, ready to rank events.

    A subscription may come before its subscriber; it is silent until then. The index `auto` is a
    scan for few subscriptions, and `access` from the first time that there are many. A subscriber
    whose scorer fails is set aside: it gets no matches until it is subscribed anew.
    """

    def __init__(
        self,
        subscribers: Iterable[Subscriber] = (),
        subscriptions: Iterable[Subscription] = (),
        index: str = AUTO,
    ) -> None:
        validate.choice("index", index, (*INDEXES, AUTO))
        self.index = index
        self._use(INDEXES["scan" if index == AUTO else index]())
        self.subscribers: dict[str, Subscriber] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.set_aside: dict[str, str] = {}
        """Subscribers whose scorers raised an error, with what it said."""
        self._owned: dict[str, dict[str, Subscription]] = {}
        self._rankers: dict[str, dict[Scorer, Ranker]] = {}
        for subscriber in subscribers:
            self.subscribe(subscriber)
        for _, error in self.add_many(subscriptions):
            raise error

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what is wanted, by whom; the index is built anew where it arrives."""
        parts = (list(self.subscribers.values()), list(self.subscriptions.values()), self.index)
        return (Matcher, parts)

    def _use(self, index: Index) -> None:
        self._index = index
        self._access = index if isinstance(index, Access) else None
        self._fanout = None if self._access is None else Fanout(self._access, self._set_aside)

    def _grow(self) -> None:
        """Go on with an index that does not look at all subscriptions."""
        self._use(Access(self.subscriptions.values()))
        for each in self.subscribers.values():
            if self._fanout:
                self._fanout.subscribe(each)
        self.set_aside.clear()  # who still fails will be set aside again

    def subscribe(self, subscriber: Subscriber) -> None:
        """Add a subscriber, or replace it."""
        self.subscribers[subscriber.id] = subscriber
        self._rankers.pop(subscriber.id, None)
        self.set_aside.pop(subscriber.id, None)
        if self._fanout:
            self._fanout.subscribe(subscriber)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions."""
        if subscriber not in self.subscribers:
            raise InvalidSubscription(f"there is no subscriber {shown(subscriber)}")
        del self.subscribers[subscriber]
        self.set_aside.pop(subscriber, None)
        self._rankers.pop(subscriber, None)
        if self._fanout:
            self._fanout.unsubscribe(subscriber)
        self._remove(list(self._owned.get(subscriber, ())))

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; an id that is there already is refused."""
        self._note(subscription)
        try:
            self._index_all([subscription])
        except BaseException:
            self._forget(subscription.id)
            raise

    def add_many(self, subscriptions: Iterable[Subscription]) -> list[Refusal]:
        """Add all whose ids are new, at once; give the others, with the reasons."""
        noted, refused = list[Subscription](), list[Refusal]()
        for each in subscriptions:
            try:
                self._note(each)
                noted.append(each)
            except InvalidSubscription as error:
                refused.append((each, error))
        try:
            self._index_all(noted)
        except BaseException:
            for each in noted:
                self._forget(each.id)
            raise
        return refused

    def replace(self, subscription: Subscription) -> None:
        """Put a subscription in the place of the one with its id; if that fails, nothing changes.

        An index other than `access` has no such change: the old one is added again.
        """
        old = self._there(subscription.id)
        if self._access is not None:
            self._access.replace(subscription)
        else:
            self._index.remove(old.id)
            try:
                self._index.add(subscription)
            except BaseException:
                self._index.add(old)
                raise
        self._forget(old.id)
        self._note(subscription)

    def _index_all(self, subscriptions: Sequence[Subscription]) -> None:
        if self._access is None and self.index == AUTO and len(self.subscriptions) >= MANY:
            self._grow()
        elif self._access is not None:
            self._access.add_many(subscriptions)
        else:
            for each in subscriptions:
                self._index.add(each)

    def _note(self, subscription: Subscription) -> None:
        if subscription.id in self.subscriptions:
            raise InvalidSubscription(
                f"subscription {shown(subscription.id)} is there already; replace it instead"
            )
        self.subscriptions[subscription.id] = subscription
        self._owned.setdefault(subscription.subscriber, {})[subscription.id] = subscription
        self._rankers.pop(subscription.subscriber, None)

    def _there(self, subscription: str) -> Subscription:
        if subscription not in self.subscriptions:
            raise InvalidSubscription(f"there is no subscription {shown(subscription)}")
        return self.subscriptions[subscription]

    def _forget(self, subscription: str) -> None:
        """Take back what was noted of a subscription."""
        gone = self.subscriptions.pop(subscription)
        owned = self._owned[gone.subscriber]
        del owned[subscription]
        if not owned:
            del self._owned[gone.subscriber]
        self._rankers.pop(gone.subscriber, None)

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        self._there(subscription)
        self._remove([subscription])

    def _remove(self, subscriptions: Sequence[str]) -> None:
        if self._access is not None:
            self._access.remove_many(subscriptions)
        else:
            for each in subscriptions:
                self._index.remove(each)
        for each in subscriptions:
            self._forget(each)

    def subscriptions_of(self, subscriber: str) -> list[Subscription]:
        """Give the subscriptions of one subscriber, in order of their ids."""
        return [each for _, each in sorted(self._owned.get(subscriber, {}).items())]

    def matches(self, event: Event) -> list[Match]:
        """Give a match for every subscriber that wants the event, in order of their ids."""
        if self._access is not None and self._fanout:
            return _named(self._access, self._fanout, event)
        hits = {False: self._owners(event, partial=False), True: self._owners(event, partial=True)}
        found = (
            self._match(subscriber, event, hits[subscriber.policy.scorer.partial])
            for _, subscriber in sorted(self.subscribers.items())
        )
        return [match for match in found if match is not None]

    @property
    def numbered(self) -> tuple[Access, Fanout] | None:
        """The index and the fan-out, where their answers are numbers."""
        if self._access is None or self._fanout is None:
            return None
        return self._access, self._fanout

    def wanted(self, events: Sequence[Event], unranked: list[Unranked] | None = None) -> Matches:
        """Give the same for many events in numbers, without an object for each match.

        Where `unranked` is given, a scorer that fails is noted there, and nobody is set aside.
        """
        if self._fanout is None:
            raise TidingsError(f"the index {self.index!r} has no numbers; 'access' has")
        return self._fanout.rank(events, unranked)

    def top(self, event: Event, k: int, scorer: Scorer) -> list[tuple[str, float]]:
        """Give the k best subscriptions for the event and their scores, ties by smaller id."""
        if type(scorer) is Exact:
            return self._index.top(event, k)
        if type(scorer) is Relaxed and scorer.aggregate == "sum":
            return self._index.top_relaxed(event, k)
        try:
            return self._index.top(
                event,
                k,
                lambda e, hit: checked_rank(self.ranker(hit.subscriber, scorer).score(e, hit)),
            )
        except TidingsError:
            raise
        except Exception as error:  # a scorer may call any function of a user
            raise InvalidPolicy(f"the scorer failed: {described(error)}") from error

    def answers_beside_changes(self, scorer: Scorer) -> bool:
        """Tell whether `top` may be asked by one thread while another changes the matcher."""
        by_index = type(scorer) is Exact or (type(scorer) is Relaxed and scorer.aggregate == "sum")
        return by_index and self._access is not None

    def ranker(self, subscriber: str, scorer: Scorer) -> Ranker:
        """Give the scorer, prepared for what the subscriber has now."""
        prepared = self._rankers.setdefault(subscriber, {})
        if scorer not in prepared:
            if len(prepared) >= PREPARED:
                prepared.clear()
            owner = self.subscribers.get(subscriber)
            owned = list(self._owned.get(subscriber, {}).values())
            prepared[scorer] = scorer.prepare(owned, owner.prefers if owner else ())
        return prepared[scorer]

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
        if not own or subscriber.id in self.set_aside:
            return None
        try:
            ranker = self.ranker(subscriber.id, subscriber.policy.scorer)
            rank = checked_rank(ranker.rank(event, own))
        except Exception as error:  # noqa: BLE001 - a scorer may call any function of a user
            self._set_aside(subscriber.id, error)
            return None
        ids = tuple(hit.id for hit in own)
        return None if rank is None else Match(subscriber.id, event, rank, ids)

    def _set_aside(self, subscriber: str, error: Exception) -> None:
        """Note who gets no matches any more; a fan-out has stopped to rank for it."""
        self.set_aside[subscriber] = f"its scorer failed: {described(error)}"


def _named(index: Access, fanout: Fanout, event: Event) -> list[Match]:
    """Give what the fan-out found, with names for numbers."""
    wanted = fanout.rank([event]).of(0)
    named = [
        (fanout.names[owner], rank, sorted(index.named(matched))) for owner, rank, matched in wanted
    ]
    return [Match(name, event, rank, tuple(ids)) for name, rank, ids in sorted(named)]
