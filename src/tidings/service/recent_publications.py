"""The recent publications of a tenant, and replays of them for previews and explanations."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

from tidings.diversify.distance import Overlap
from tidings.diversify.hashed_distances import hash_events
from tidings.engine.subscriber_replay import InterestReplay, RecordedSteps, record
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.service.durable_engine import read_event
from tidings.store import EngineStep, Store

_REPLAYS: Final = 16
"""The number of interests whose matches are kept."""


class Interest(NamedTuple):
    """A subscriber and its subscriptions."""

    subscriber: Subscriber
    subscriptions: Sequence[Subscription]


class RecentStream(NamedTuple):
    """The last publications that the pipeline has processed, and its last step."""

    step: EngineStep
    events: list[Event]


class RecentPublications:
    """The last publications that the pipeline has processed, parsed once."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most = store, most
        self._events: deque[Event] = deque(maxlen=most)
        self._last = 0
        self._lock = Lock()

    def events(self) -> list[Event]:
        """Return the last publications, in the order in which they were accepted."""
        return self.stream().events

    def stream(self) -> RecentStream:
        """Return the last publications, with the step up to which they were processed."""
        with self._lock:
            step, new = self._store.log.last(), list[Event]()
            first = max(self._last, step.upto - self._most)
            for number, form in self._store.publications.after(first, self._most, step.upto):
                self._last = number
                with suppress(ValueError, TypeError, LookupError):  # it has become a dead letter
                    if form is not None:
                        new.append(read_event(form))
            # Events keep their hashes, so that the first replay does not compute all of them.
            hash_events(new, Overlap())
            self._events += new
            return RecentStream(step, list(self._events))


class Replays:
    """Replays of the recent publications, kept until the pipeline takes its next step.

    A replay keeps the matches of its subscriber: moving a slider asks repeatedly with the same
    subscriptions, and only the policy changes. The replay of the next step matches only what is
    new.
    """

    def __init__(self, recent: RecentPublications, lateness: str) -> None:
        self._recent, self._lateness = recent, lateness
        self._step: EngineStep | None = None
        self._recording = RecordedSteps((), record(()).now)
        self._replays: OrderedDict[object, InterestReplay] = OrderedDict()
        self._earlier: OrderedDict[object, InterestReplay] = OrderedDict()
        self._lock = Lock()

    def of(self, *interests: Interest) -> list[InterestReplay]:
        """Return replays of the same recording; the policies of the interests do not matter."""
        with self._lock:
            step, events = self._recent.stream()
            if step != self._step:
                self._recording = record(events, self._lateness, step.clock_us)
                self._step = step
                self._replays, self._earlier = OrderedDict(), self._replays
            replays = [self._replay(interest) for interest in interests]
            while len(self._replays) > _REPLAYS:
                self._replays.popitem(last=False)
            return replays

    def _replay(self, interest: Interest) -> InterestReplay:
        owner, subscriptions = interest
        key = (owner.id, owner.prefers, tuple(subscriptions))
        if key not in self._replays:
            earlier = self._earlier.pop(key, None)
            replay = InterestReplay(self._recording, owner.id, subscriptions, owner.prefers)
            self._replays[key] = earlier.on(self._recording) if earlier else replay
        self._replays.move_to_end(key)
        return self._replays[key]
