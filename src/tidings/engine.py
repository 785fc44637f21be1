"""The engine: all stages wired in one process."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, Final

from tidings import checks, parts
from tidings.courier import Courier, Step, courier
from tidings.errors import InvalidEvent, InvalidSubscription, TidingsError
from tidings.explain import Explanation, Memory, Placement, explain, explain_target
from tidings.feeds import FEEDS, Feeds
from tidings.forms import loads_event, loads_subscriber, loads_subscription
from tidings.intake import Intake
from tidings.matching import Matcher
from tidings.model import Delivery, Event, Subscription
from tidings.policy import Subscriber
from tidings.quality import Quality, Report
from tidings.rows import DeadLetter
from tidings.score import SCORERS, Scorer
from tidings.values import parse_duration_us, parse_time_us

CHUNK: Final = 1024
"""How many steps of a stream are matched at once."""


class Engine:
    """Ranked publish/subscribe in one process.

    `lateness` is how far out of order events may come; older ones go to `late`. What is refused
    goes to `dead_letters` and stops nothing else: a bad event is passed over, a bad command raises.
    The last events that it should `remember` can be explained by their ids. `index` names what
    finds the subscriptions: `scan` looks at all of them, `op`, `access` and `psg` at those that may
    want the event, and `auto` goes from the first to `access` when there are many; the answers are
    the same. `feeds` names how windows are kept: `plain` is an
    object each, `table` is arrays for millions of them; the deliveries are the same. An id that is
    published again is refused for ever, or, with `remember_ids`, until its event is so much older
    than the newest.

    >>> from tidings import Event, Policy, Sliding, Subscriber, Subscription
    >>> engine = Engine()
    >>> engine.subscribe(Subscriber("addison", Policy(k=1, window=Sliding(10))))
    >>> engine.add(Subscription("s1", "addison", where="genre = 'comedy'", prefrank=0.9))
    >>> [d.event for d in engine.publish(Event("e1", {"genre": "comedy"}, published_at=0))]
    ['e1']
    """

    def __init__(
        self,
        lateness: object = "0s",
        remember: int = 10_000,
        index: str = "auto",
        feeds: str = "plain",
        remember_ids: object = None,
    ) -> None:
        checks.choice("feeds", feeds, FEEDS)
        self._wire(Matcher(index=index), FEEDS[feeds]())
        self._intake = Intake(parse_duration_us(lateness), remember_ids)
        self._memory = Memory(remember)

    @property
    def late(self) -> list[Event]:
        """Events that came too late; who takes care of them may clear the list."""
        return self._intake.late

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """What was refused, with the reasons; who takes care of them may clear the list."""
        return self._intake.dead_letters

    def subscribe(self, subscriber: Subscriber | Mapping[str, Any]) -> None:
        """Add a subscriber; an id that is there already is refused."""
        with self._door(subscriber):
            new = subscriber if isinstance(subscriber, Subscriber) else loads_subscriber(subscriber)
            if new.id in self._feeds:
                raise InvalidSubscription(f"subscriber {new.id!r} is there already; replace it")
            self._enrol(new)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber, with its subscriptions and its feed."""
        with self._door(subscriber):
            self._matcher.unsubscribe(subscriber)
            self._feeds.drop(subscriber)
            self._courier.forget(subscriber)
            self._quality.forget(subscriber)

    def add(self, subscription: Subscription | Mapping[str, Any]) -> None:
        """Add a subscription; an id that is there already is refused."""
        with self._door(subscription):
            if not isinstance(subscription, Subscription):
                subscription = loads_subscription(subscription)
            self._matcher.add(subscription)

    def add_many(
        self, subscriptions: Iterable[Subscription | Mapping[str, Any]]
    ) -> list[DeadLetter]:
        """Add all subscriptions that can be added, at once; give what was refused."""
        before, made = len(self.dead_letters), list[Subscription]()
        for each in subscriptions:
            with suppress(TidingsError), self._door(each):
                made.append(each if isinstance(each, Subscription) else loads_subscription(each))
        for refused, error in self._matcher.add_many(made):
            self._intake.refuse(refused, error)
        return self.dead_letters[before:]

    def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        with self._door(subscription):
            self._matcher.remove(subscription)

    def replace(self, new: Subscription | Subscriber | Mapping[str, Any]) -> None:
        """Put a subscription or a subscriber in the place of the one with its id.

        A subscriber with a new policy starts with an empty window.
        """
        with self._door(new):
            if not isinstance(new, Subscription | Subscriber):
                loads = loads_subscription if "subscriber" in new else loads_subscriber
                new = loads(new)
            if isinstance(new, Subscription):
                self._matcher.remove(new.id)
                self._matcher.add(new)
            elif new.policy == self._known(new.id).policy:
                self._matcher.subscribe(new)
            else:
                self._enrol(new)

    def publish(self, event: Event | Mapping[str, Any]) -> list[Delivery]:
        """Publish one event; give what is delivered because of it."""
        return self.publish_many([event])

    def publish_many(self, events: Iterable[Event | Mapping[str, Any]]) -> list[Delivery]:
        """Publish events; any split of a stream into calls gives the same deliveries."""
        steps, due = (
            (step for each in events for step in self._intake.arrive(each)),
            list[Delivery](),
        )
        while chunk := list(islice(steps, CHUNK)):
            due += self._take(chunk)
        return due

    def advance(self, now: object) -> list[Delivery]:
        """Say that it is `now` (a time): periods that have passed are closed."""
        return self._take(self._intake.advance(parse_time_us(now)))

    def feed(self, subscriber: str) -> list[Delivery]:
        """Give a subscriber's list as it stands; nothing changes."""
        return self._feeds.current(subscriber, self._intake.now)

    def quality(self) -> Report:
        """Tell how good deliveries were since this engine was made or restored."""
        return self._quality.report()

    def target(
        self, event: Event | Mapping[str, Any], k: int = 20, scorer: object = "exact"
    ) -> list[tuple[str, float]]:
        """Give the k best subscriptions for an event, with their scores, best first."""
        made = event if isinstance(event, Event) else loads_event(event)
        return self._matcher.top(made, checks.count("k", k), _scorer(scorer))

    def explain(self, subscriber: str, event: str | Event) -> Explanation:
        """Tell why a subscriber got an event, or why not; `print` it to read it in words."""
        self._known(subscriber)
        found = self._memory.event(event) if isinstance(event, str) else event
        if found is None:
            raise InvalidEvent(f"event {event!r} is not among those remembered; give it whole")
        delivery = self._memory.delivery(subscriber, found.id)
        return explain(self._matcher, subscriber, found, delivery)

    def explain_target(
        self, subscription: str, event: Event, k: int = 20, scorer: object = "exact"
    ) -> Placement:
        """Tell where a subscription stands for an event, and what it lacks for the k best."""
        if subscription not in self._matcher.subscriptions:
            raise InvalidSubscription(f"there is no subscription {subscription!r}")
        k = checks.count("k", k)
        return explain_target(self._matcher, event, subscription, k, _scorer(scorer))

    def snapshot(self) -> dict[str, Any]:
        """Give the whole state as JSON, but for what can be explained and what was measured."""
        return {
            "subscribers": [each.to_dict() for each in self._matcher.subscribers.values()],
            "subscriptions": [each.to_dict() for each in self._matcher.subscriptions.values()],
            "feeds": {"kind": self._feeds.name, "state": _text(self._feeds.snapshot())},
            "intake": self._intake.snapshot(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, whatever was here before."""
        people = [loads_subscriber(form) for form in state["subscribers"]]
        wanted = [loads_subscription(form) for form in state["subscriptions"]]
        feeds = FEEDS[state["feeds"]["kind"]]()
        feeds.restore(b64decode(state["feeds"]["state"]))
        self._wire(Matcher(people, wanted, self._matcher.index), feeds)
        self._intake = Intake.restored(state["intake"])

    def _take(self, steps: list[Step]) -> list[Delivery]:
        """Take events in order through all stages; time goes on with each step."""
        due, carried = list[Delivery](), self._way().carry(steps)
        for event, now in steps:
            if event is not None:
                self._memory.note(event)
            delivered = [] if event is None else next(carried)
            delivered += self._feeds.advance(now)
            self._memory.note_deliveries(delivered)
            self._quality.delivered(delivered, self._memory.event)
            due += delivered
        return due

    def _wire(self, matcher: Matcher, feeds: Feeds) -> None:
        """Put the stages together."""
        self._matcher, self._feeds, self._quality = matcher, feeds, Quality()
        self._numbered = matcher.numbered
        self._courier = courier(matcher, feeds, self._quality)

    def _way(self) -> Courier:
        """Give the courier, another one if the matcher has taken another index."""
        if self._matcher.numbered != self._numbered:
            self._numbered = self._matcher.numbered
            self._courier = courier(self._matcher, self._feeds, self._quality)
        return self._courier

    def _known(self, subscriber: str) -> Subscriber:
        if subscriber not in self._matcher.subscribers:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._matcher.subscribers[subscriber]

    def _enrol(self, subscriber: Subscriber) -> None:
        self._matcher.subscribe(subscriber)
        self._feeds.enrol(subscriber)

    @contextmanager
    def _door(self, record: Any) -> Iterator[None]:
        """Keep what is refused, with the reason."""
        try:
            yield
        except TidingsError as error:
            self._intake.refuse(record, error)
            raise


def _text(state: bytes) -> str:
    return b64encode(state).decode()


def _scorer(given: object) -> Scorer:
    return parts.read(SCORERS, "scorer", given)
