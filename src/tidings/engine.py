"""The engine: all stages wired in one process."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from tidings import checks, parts
from tidings.errors import InvalidSubscription, TidingsError
from tidings.explain import Explanation, Memory, Placement, explain, explain_target
from tidings.feeds import FEEDS
from tidings.feeds.policies import same_feed
from tidings.forms import loads_event, loads_subscriber, loads_subscription
from tidings.intake import Intake
from tidings.matching import Matcher
from tidings.model import Delivery, Event, Subscription
from tidings.policy import Subscriber
from tidings.quality import Report
from tidings.rows import DeadLetter
from tidings.score import SCORERS, Scorer
from tidings.stages import Stages
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
        self._stages = Stages(Matcher(index=index), FEEDS[feeds]())
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
        with self._intake.door(subscriber):
            new = subscriber if isinstance(subscriber, Subscriber) else loads_subscriber(subscriber)
            if new.id in self._stages.feeds:
                raise InvalidSubscription(f"subscriber {new.id!r} is there already; replace it")
            self._stages.enrol(new)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber, with its subscriptions and its feed."""
        with self._intake.door(subscriber):
            self._stages.leave(subscriber)

    def add(self, subscription: Subscription | Mapping[str, Any]) -> None:
        """Add a subscription; an id that is there already is refused."""
        with self._intake.door(subscription):
            if not isinstance(subscription, Subscription):
                subscription = loads_subscription(subscription)
            self._stages.matcher.add(subscription)

    def add_many(
        self, subscriptions: Iterable[Subscription | Mapping[str, Any]]
    ) -> list[DeadLetter]:
        """Add all subscriptions that can be added, at once; give what was refused."""
        before, made = len(self.dead_letters), list[Subscription]()
        for each in subscriptions:
            with suppress(TidingsError), self._intake.door(each):
                made.append(each if isinstance(each, Subscription) else loads_subscription(each))
        for refused, error in self._stages.matcher.add_many(made):
            self._intake.refuse(refused, error)
        return self.dead_letters[before:]

    def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        with self._intake.door(subscription):
            self._stages.matcher.remove(subscription)

    def replace(self, new: Subscription | Subscriber | Mapping[str, Any]) -> None:
        """Put a subscription or a subscriber in the place of the one with its id.

        A subscriber with another window, decay, diversifier or k starts with an empty window.
        Another scorer ranks what comes from now on; the window stays.
        """
        with self._intake.door(new):
            if not isinstance(new, Subscription | Subscriber):
                loads = loads_subscription if "subscriber" in new else loads_subscriber
                new = loads(new)
            if isinstance(new, Subscription):
                self._stages.matcher.remove(new.id)
                self._stages.matcher.add(new)
            elif same_feed(new.policy, self._known(new.id).policy):
                self._stages.matcher.subscribe(new)
            else:
                self._stages.enrol(new)

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
            due += self._stages.take(chunk, self._memory)
        return due

    def advance(self, now: object) -> list[Delivery]:
        """Say that it is `now` (a time): periods that have passed are closed."""
        return self._stages.take(self._intake.advance(parse_time_us(now)), self._memory)

    def feed(self, subscriber: str) -> list[Delivery]:
        """Give a subscriber's list as it stands; nothing changes."""
        return self._stages.feeds.current(subscriber, self._intake.now)

    def quality(self) -> Report:
        """Tell how good deliveries were since this engine was made or restored."""
        return self._stages.quality.report()

    def target(
        self, event: Event | Mapping[str, Any], k: int = 20, scorer: object = "exact"
    ) -> list[tuple[str, float]]:
        """Give the k best subscriptions for an event, with their scores, best first."""
        made = event if isinstance(event, Event) else loads_event(event)
        return self._stages.matcher.top(made, checks.count("k", k), _scorer(scorer))

    def explain(self, subscriber: str, event: str | Event) -> Explanation:
        """Tell why a subscriber got an event, or why not; `print` it to read it in words."""
        self._known(subscriber)
        found = self._memory.recall(event) if isinstance(event, str) else event
        delivery = self._memory.delivery(subscriber, found.id)
        return explain(self._stages.matcher, subscriber, found, delivery)

    def explain_target(
        self, subscription: str, event: Event, k: int = 20, scorer: object = "exact"
    ) -> Placement:
        """Tell where a subscription stands for an event, and what it lacks for the k best."""
        k = checks.count("k", k)
        return explain_target(self._stages.matcher, event, subscription, k, _scorer(scorer))

    def snapshot(self) -> dict[str, Any]:
        """Give the whole state as JSON, but for what can be explained and what was measured."""
        return {
            "subscribers": [each.to_dict() for each in self._stages.matcher.subscribers.values()],
            "subscriptions": [
                each.to_dict() for each in self._stages.matcher.subscriptions.values()
            ],
            "feeds": {
                "kind": self._stages.feeds.name,
                "state": b64encode(self._stages.feeds.snapshot()).decode(),
            },
            "intake": self._intake.snapshot(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, whatever was here before."""
        people = [loads_subscriber(form) for form in state["subscribers"]]
        wanted = [loads_subscription(form) for form in state["subscriptions"]]
        feeds = FEEDS[state["feeds"]["kind"]]()
        feeds.restore(b64decode(state["feeds"]["state"]))
        self._stages = Stages(Matcher(people, wanted, self._stages.matcher.index), feeds)
        self._intake = Intake.restored(state["intake"])

    def _known(self, subscriber: str) -> Subscriber:
        if subscriber not in self._stages.matcher.subscribers:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._stages.matcher.subscribers[subscriber]


def _scorer(given: object) -> Scorer:
    return parts.read(SCORERS, "scorer", given)
