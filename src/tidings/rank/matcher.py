"""Match and score: from an event to the subscribers, or the subscriptions, that want it.

`Matcher` decides which index answers. With the index `access` the compiled rank methods of `bulk`
do both. With any other index each scorer ranks its own subscriber in Python, which is the
definition.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.errors import (
    InvalidPolicy,
    InvalidSubscription,
    TidingsError,
    clipped,
    described,
    shown,
)
from tidings.index import INDEXES, Index
from tidings.index.access import Access
from tidings.index.access.description import AccessDescription
from tidings.index.scan import Scan
from tidings.model import validate
from tidings.model.records import Event, Match, Subscription
from tidings.policy import Subscriber
from tidings.rank.bulk import BulkRanker
from tidings.rank.bulk.protocol import Unranked
from tidings.rank.matches import Matches
from tidings.rank.target_index import TargetChoice, Targets, TopColumns
from tidings.score import Ranker, Scorer
from tidings.score.exact import Exact
from tidings.score.protocol import checked_rank
from tidings.score.relaxed import Relaxed

AUTO: Final = "auto"
MANY: Final = 1000
"""From this many subscriptions on, compiled kernels are worth the time that they take to load."""
SEVERAL: Final = 100
"""From this many on they are faster, and worth that time once `SCANNED` subscriptions were tested.

Loading them takes 0.05 s of processor time, and 5 s where they have to be compiled first; a scan
tests a subscription in about a microsecond.
"""
SCANNED: Final = 2_000_000
AT_ONCE: Final = 32
BATCHED: Final = 1000
"""This many events in batches of at least AT_ONCE are worth it, however few subscriptions exist."""
PREPARED: Final = 8
"""How many scorers are kept prepared for one subscriber."""
_SLOW: Final = "scans had taken long"
Refusal = tuple[Subscription, InvalidSubscription]


@dataclass(frozen=True)
class MatchPlan:
    """The structures that find the subscriptions of an event, and why they were chosen."""

    index: str
    reason: str
    subscriptions: int
    subscribers: int
    access: AccessDescription | None = None
    targets: tuple[TargetChoice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as they are written as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        counts = f"{_count(self.subscriptions, 'subscription')}, "
        counts += _count(self.subscribers, "subscriber")
        lines = [f"{counts}: the index {self.index!r}, since {self.reason}."]
        lines += [] if self.access is None else [str(self.access)]
        return "\n".join([*lines, *(f"target by {choice}" for choice in self.targets)])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Matcher:
    """Subscribers with their subscriptions, in an index, ready to rank events.

    A subscription may be added before its subscriber; it has no effect until then. The index `auto`
    is a scan for few subscriptions, and `access` from the first time that there are many, that the
    scan has taken long, or that many events came together. A subscriber whose scorer fails is set
    aside: it gets no matches until it subscribes again.
    """

    def __init__(
        self,
        subscribers: Iterable[Subscriber] = (),
        subscriptions: Iterable[Subscription] = (),
        index: str = AUTO,
    ) -> None:
        validate.choice("index", index, (*INDEXES, AUTO))
        self.index = index
        self.subscribers: dict[str, Subscriber] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self._use(INDEXES["scan" if index == AUTO else index]())
        self.set_aside: dict[str, str] = {}
        """Subscribers whose scorers raised an error, with its message."""
        self._owned: dict[str, dict[str, Subscription]] = {}
        self._rankers: dict[str, dict[Scorer, Ranker]] = {}
        self._kinds: frozenset[bool] | None = None  # after a change: None
        self._scanned = self._batched = 0
        self._reason = ""  # for which the scan was replaced
        self._few: Scan | None = None  # for single events beside the access index
        for subscriber in subscribers:
            self.subscribe(subscriber)
        for _, error in self.add_many(subscriptions):
            raise error

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle subscribers and subscriptions; the index is rebuilt on arrival."""
        parts = (list(self.subscribers.values()), list(self.subscriptions.values()), self.index)
        return (Matcher, parts)

    def _use(self, index: Index) -> None:
        self._index = index
        self._access = index if isinstance(index, Access) else None
        self._ranker = self.targets = None
        if self._access is not None:
            self._ranker = BulkRanker(self._access, self._set_aside)
            self.targets = Targets(self._access, self.subscriptions)

    def _grow(self, reason: str) -> None:
        """Replace the scan by the access index, for a reason."""
        self._reason = reason
        self._use(Access(self.subscriptions.values()))
        for subscriber in self.subscribers.values():
            if self._ranker:
                self._ranker.subscribe(subscriber)
        self.set_aside.clear()  # a subscriber that still fails will be set aside again

    def subscribe(self, subscriber: Subscriber) -> None:
        """Add a subscriber, or replace it."""
        self.subscribers[subscriber.id] = subscriber
        self._kinds = None
        self._rankers.pop(subscriber.id, None)
        self.set_aside.pop(subscriber.id, None)
        if self._ranker:
            self._ranker.subscribe(subscriber)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions."""
        if subscriber not in self.subscribers:
            raise InvalidSubscription(f"there is no subscriber {shown(subscriber)}")
        del self.subscribers[subscriber]
        self._kinds = None
        self.set_aside.pop(subscriber, None)
        self._rankers.pop(subscriber, None)
        if self._ranker:
            self._ranker.unsubscribe(subscriber)
        self._remove(list(self._owned.get(subscriber, ())))

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; an id that exists already is refused."""
        self._note(subscription)
        self._index_all([subscription])

    def add_many(self, subscriptions: Iterable[Subscription]) -> list[Refusal]:
        """Add all whose ids are new, at once; return the others, with the reasons."""
        accepted, refused = list[Subscription](), list[Refusal]()
        for subscription in subscriptions:
            try:
                self._note(subscription)
                accepted.append(subscription)
            except InvalidSubscription as error:
                refused.append((subscription, error))
        self._index_all(accepted)
        return refused

    def replace(self, subscription: Subscription) -> None:
        """Replace the subscription with this id; if that fails, nothing changes.

        Other indexes than `access` cannot replace: after a failure the old one is added again.
        """
        old = self._present(subscription.id)
        with self._changing([subscription], [old.id]):
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
        """Index noted subscriptions; if that fails, forget them again."""
        with self._changing(subscriptions):
            try:
                self._add_to_index(subscriptions)
            except BaseException:
                for subscription in subscriptions:
                    self._forget(subscription.id)
                raise

    def _add_to_index(self, subscriptions: Sequence[Subscription]) -> None:
        if self._access is not None:
            self._access.add_many(subscriptions)
        elif self.index == AUTO and len(self.subscriptions) >= MANY:
            self._grow(f"there were {MANY:,} subscriptions or more")
        else:
            for subscription in subscriptions:
                self._index.add(subscription)

    def _changing(
        self, added: Sequence[Subscription] = (), removed: Sequence[str] = ()
    ) -> AbstractContextManager[None]:
        """Let the target index follow a change of the access index and of the noted records.

        Other threads may build a target index at any time, from what is noted.
        """
        return nullcontext() if self.targets is None else self.targets.changing(added, removed)

    def _note(self, subscription: Subscription) -> None:
        """Enter a subscription that is about to be indexed."""
        if subscription.id in self.subscriptions:
            raise InvalidSubscription(
                f"subscription {shown(subscription.id)} already exists; replace it instead"
            )
        self.subscriptions[subscription.id] = subscription
        owned = self._owned.get(subscription.subscriber)
        if owned is None:
            owned = self._owned[subscription.subscriber] = {}
        owned[subscription.id] = subscription
        self._few = None
        if self._rankers:
            self._rankers.pop(subscription.subscriber, None)

    def _present(self, subscription: str) -> Subscription:
        if subscription not in self.subscriptions:
            raise InvalidSubscription(f"there is no subscription {shown(subscription)}")
        return self.subscriptions[subscription]

    def _forget(self, subscription: str) -> None:
        """Undo `_note`."""
        removed = self.subscriptions.pop(subscription)
        self._few = None
        owned = self._owned[removed.subscriber]
        del owned[subscription]
        if not owned:
            del self._owned[removed.subscriber]
        self._rankers.pop(removed.subscriber, None)

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        self._present(subscription)
        self._remove([subscription])

    def _remove(self, subscriptions: Sequence[str]) -> None:
        with self._changing(removed=subscriptions):
            if self._access is not None:
                self._access.remove_many(subscriptions)
            else:
                for name in subscriptions:
                    self._index.remove(name)
            for name in subscriptions:
                self._forget(name)

    def subscriptions_of(self, subscriber: str) -> list[Subscription]:
        """Return the subscriptions of one subscriber, in order of their ids."""
        return [subscription for _, subscription in sorted(self._owned.get(subscriber, {}).items())]

    def matches(self, event: Event) -> list[Match]:
        """Return a match for every subscriber that wants the event, in order of their ids."""
        if self._is_slow_scan():
            self._grow(_SLOW)
        if self._access is not None and self._ranker and not self.scans_single:
            return _named(self._access, self._ranker, event)
        matches = list[Match]()
        for partial in self._scorer_kinds():
            for name, hits in self._hits(event, partial=partial).items():
                owner = self.subscribers.get(name)
                if owner is not None and owner.policy.scorer.partial == partial:
                    match = self._match(owner, event, hits)
                    matches += [match] if match is not None else []
        return sorted(matches, key=lambda match: match.subscriber)

    def _is_slow_scan(self, events: int = 1) -> bool:
        """Count the subscriptions that a scan tests; return whether they have become too many."""
        if self.index != AUTO or self._access is not None or len(self.subscriptions) < SEVERAL:
            return False
        self._scanned += events * len(self.subscriptions)
        return self._scanned > SCANNED

    def note_batch(self, events: int) -> None:
        """Replace the scan if events that come together have become many."""
        if self.index != AUTO or self._access is not None or events < AT_ONCE:
            return
        self._batched += events
        if self._batched > BATCHED and self.subscriptions:
            self._grow("many events came together")

    @property
    def scans_single(self) -> bool:
        """Whether a scan takes less time for one event than kernels."""
        return self.index == AUTO and len(self.subscriptions) < SEVERAL

    def _scorer_kinds(self) -> frozenset[bool]:
        """Return whether there are scorers of whole matches (False) and of partial ones (True)."""
        if self._kinds is None:
            self._kinds = frozenset(
                subscriber.policy.scorer.partial for subscriber in self.subscribers.values()
            )
        return self._kinds

    @property
    def compiled(self) -> tuple[Access, BulkRanker] | None:
        """The index and the ranker, if they are compiled: their answers are numbers."""
        if self._access is None or self._ranker is None:
            return None
        return self._access, self._ranker

    def match_many(
        self, events: Sequence[Event], unranked: list[Unranked] | None = None
    ) -> Matches:
        """Return the matches of many events as columns, without an object per match.

        Where `unranked` is a list, failures of scorers are appended to it, and no subscriber is set
        aside.
        """
        if self._ranker is None:
            raise TidingsError(f"the index {self.index!r} does not match in bulk; use 'access'")
        return self._ranker.rank(events, unranked)

    def match_counts(self, events: Sequence[Event]) -> dict[str, int]:
        """Return how many of these events each subscription matches; 0 for those without any."""
        counts = dict.fromkeys(self.subscriptions, 0)
        if self.compiled is not None:
            index, ranker = self.compiled
            numbers, times = np.unique(ranker.rank(events).matched, return_counts=True)
            counts.update(zip(index.ids(numbers.tolist()), times.tolist(), strict=True))
            return counts
        for event in events:
            for match in self.matches(event):
                for name in match.matched:
                    counts[name] += 1
        return counts

    def top(self, event: Event, k: int, scorer: Scorer) -> list[tuple[str, float]]:
        """Return the k best subscriptions for the event and their scores, ties by smaller id."""
        return self.top_many([event], k, scorer)[0]

    def top_many(
        self, events: Sequence[Event], k: int, scorer: Scorer
    ) -> list[list[tuple[str, float]]]:
        """Return the result of `top` for each event; many at once take less time each."""
        if self._is_slow_scan(len(events)):
            self._grow(_SLOW)
        if self.targets is not None and _ranks_by_index(scorer):
            return self.targets.top_many(events, k, scorer)
        return [self._top(event, k, scorer) for event in events]

    def top_rows(
        self, rows_of: Callable[[Sequence[str]], Float64s | None], k: int, scorer: Scorer
    ) -> TopColumns | None:
        """Return it as columns for rows of numbers; None if no structure can answer those.

        `rows_of` returns the rows for some attributes, or None if the events are more than numbers.
        """
        if self.targets is None or not _ranks_by_index(scorer):
            return None
        return self.targets.top_rows(rows_of, k, scorer)

    def _top(self, event: Event, k: int, scorer: Scorer) -> list[tuple[str, float]]:
        if type(scorer) is Exact:
            return self._index.top(event, k)
        if _ranks_by_index(scorer):
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

    def describe(self) -> MatchPlan:
        """Return which structures answer, and why."""
        counts = len(self.subscriptions), len(self.subscribers)
        if self.index != AUTO:
            reason = "it was asked for"
        elif self._access is None:
            reason = f"there are fewer than {MANY:,} subscriptions, and scans have not taken long"
        else:
            reason = self._reason
        name = (
            "access" if self._access is not None else "scan" if self.index == AUTO else self.index
        )
        access = None if self._access is None else self._access.describe()
        return MatchPlan(
            name, reason, *counts, access, () if self.targets is None else self.targets.describe()
        )

    def answers_beside_changes(self, scorer: Scorer) -> bool:
        """Return whether `top` may run in one thread while another changes the matcher."""
        return _ranks_by_index(scorer) and self._access is not None

    def ranker(self, subscriber: str, scorer: Scorer) -> Ranker:
        """Return the scorer, prepared for the present subscriptions of the subscriber."""
        prepared = self._rankers.setdefault(subscriber, {})
        if scorer not in prepared:
            if len(prepared) >= PREPARED:
                prepared.clear()
            owner = self.subscribers.get(subscriber)
            owned = list(self._owned.get(subscriber, {}).values())
            prepared[scorer] = scorer.prepare(owned, owner.prefers if owner else ())
        return prepared[scorer]

    def _hits(self, event: Event, *, partial: bool) -> dict[str, list[Subscription]]:
        """Return by subscriber the subscriptions that cover the event, or that it touches."""
        hits: dict[str, list[Subscription]] = defaultdict(list)
        index = self._index
        if self._access is not None and self.scans_single:
            index = self._few = self._few or Scan(self.subscriptions.values())
        look = index.touching if partial else index.matching
        for hit in look(event):
            hits[hit.subscriber].append(hit)
        return hits

    def _match(
        self, subscriber: Subscriber, event: Event, own: Sequence[Subscription]
    ) -> Match | None:
        if subscriber.id in self.set_aside:
            return None
        try:
            ranker = self.ranker(subscriber.id, subscriber.policy.scorer)
            rank = checked_rank(ranker.rank(event, own))
        except Exception as error:  # noqa: BLE001 - a scorer may call any function of a user
            self._set_aside(subscriber.id, error)
            if self._ranker:
                self._ranker.ignore(subscriber.id)
            return None
        ids = tuple(hit.id for hit in own)
        return None if rank is None else Match(subscriber.id, event, rank, ids)

    def _set_aside(self, subscriber: str, error: Exception) -> None:
        """Record a subscriber that gets no more matches; a bulk ranker has dropped it."""
        self.set_aside[subscriber] = clipped(f"its scorer failed: {described(error)}")


def _ranks_by_index(scorer: Scorer) -> bool:
    """Return whether indexes know the scores of a scorer."""
    return type(scorer) is Exact or (type(scorer) is Relaxed and scorer.aggregate == "sum")


def _named(index: Access, ranker: BulkRanker, event: Event) -> list[Match]:
    """Return the matches of one event with names instead of numbers."""
    rows = sorted(
        (ranker.names[subscriber], rank, sorted(index.ids(matched)))
        for subscriber, rank, matched in ranker.rank([event]).rows(0)
    )
    return [Match(name, event, rank, tuple(ids)) for name, rank, ids in rows]
