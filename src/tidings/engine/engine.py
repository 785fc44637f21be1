"""The engine: all stages wired in one process."""

import logging
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from threading import RLock
from typing import Any, Final

from tidings.engine import snapshot
from tidings.engine.explain import Explanation, Memory, Placement, explain, explain_target
from tidings.engine.handoff import Matched, Step
from tidings.engine.intake import LOGGER, Intake, Latest, Notice, Terms
from tidings.engine.quality import Report
from tidings.engine.stages import Failed, Stages
from tidings.errors import InvalidForm, InvalidSubscription, TidingsError, shown
from tidings.feed import FEEDS
from tidings.feed.policy_key import same_feed
from tidings.formats.binary import reading
from tidings.formats.json_forms import loads_subscriber, loads_subscription
from tidings.model import named_parts, validate
from tidings.model.dead_letter import DeadLetter
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import parse_duration_us, parse_time_us
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.score import SCORERS, Scorer

CHUNK: Final = 1024
"""How many steps of a stream are matched at once."""
RECORDS: Final = CHUNK // 2
"""How many records are taken at once; most make two steps."""


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

    An event without `published_at` gets the time of the `clock` (epoch seconds), and never one
    before the watermark. With `future`, a duration, an event that is published further beyond the
    clock is refused and moves no watermark. Forms and objects above the `limits` are refused.

    Any number of threads may use one engine: calls wait for each other, but `target` by `exact` or
    `relaxed` over `access` for nobody. A function of a user that the engine calls, such as an
    aggregate, must not call it back, which is refused. A subscriber whose policy fails is named in
    `set_aside` and in a dead letter, and is not served until it is replaced; the others are.

    >>> from tidings import Event, Policy, Sliding, Subscriber, Subscription
    >>> engine = Engine()
    >>> engine.subscribe(Subscriber("addison", Policy(k=1, window=Sliding(10))))
    >>> engine.add(Subscription("s1", "addison", where="genre = 'comedy'", prefrank=0.9))
    >>> [d.event for d in engine.publish(Event("e1", {"genre": "comedy"}, published_at=0))]
    ['e1']
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        lateness: object = "0s",
        remember: int = 10_000,
        index: str = "auto",
        feeds: str = "plain",
        remember_ids: object = None,
        *,
        limits: Limits = TRUSTED,
        future: object = None,
        clock: Callable[[], object] = time.time,
    ) -> None:
        validate.choice("feeds", feeds, FEEDS)
        check_limits(limits)
        if not callable(clock):
            raise TidingsError(f"clock must be a function that returns a time, not {shown(clock)}")
        terms = Terms(limits, clock, None if future is None else parse_duration_us(future))
        self._stages = Stages(Matcher(index=index), FEEDS[feeds]())
        self._intake = Intake(parse_duration_us(lateness), remember_ids, terms)
        self._memory = Memory(validate.count("remember", remember, low=0))
        self._lock = RLock()
        self._busy = False
        self._steps: deque[Step] = deque()  # left over where a call was interrupted
        self._owed: list[Delivery] = []  # made, but returned by no call yet
        self._told: dict[str, str] = {}

    @property
    def late(self) -> Latest[Event]:
        """The last events that came too late; who takes care of them may clear the list.

        `late.total` counts all of them.
        """
        return self._intake.late

    @property
    def dead_letters(self) -> Latest[DeadLetter]:
        """The last that was refused, with the reasons; who takes care of it may clear the list.

        `dead_letters.total` counts all.
        """
        return self._intake.dead_letters

    @property
    def set_aside(self) -> dict[str, str]:
        """Subscribers that are not served because their policies failed, with the reasons."""
        with self._turn():
            return self._stages.set_aside

    def subscribe(self, subscriber: Subscriber | Mapping[str, Any]) -> None:
        """Add a subscriber; an id that is there already is refused."""
        with self._turn(), self._intake.door(subscriber):
            new = self._subscriber(subscriber)
            if new.id in self._stages.feeds:
                raise InvalidSubscription(
                    f"subscriber {shown(new.id)} is there already; replace it"
                )
            self._stages.enrol(new)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber, with its subscriptions and its feed."""
        with self._turn(), self._intake.door(subscriber):
            self._stages.leave(_id("a subscriber", subscriber))

    def add(self, subscription: Subscription | Mapping[str, Any]) -> None:
        """Add a subscription; an id that is there already is refused."""
        with self._turn(), self._intake.door(subscription):
            self._stages.matcher.add(self._subscription(subscription))

    def add_many(
        self, subscriptions: Iterable[Subscription | Mapping[str, Any]]
    ) -> list[DeadLetter]:
        """Add all subscriptions that can be added, at once; give what was refused."""
        given = list(_iterated(subscriptions))
        made, refused = list[Subscription](), list[DeadLetter]()
        with self._turn():
            for each in given:
                try:
                    made.append(self._subscription(each))
                except Exception as error:  # noqa: BLE001 - a form may hold objects of a user's own
                    refused.append(self._intake.refuse(each, error))
            for bad, reason in self._stages.matcher.add_many(made):
                refused.append(self._intake.refuse(bad, reason))
        return refused

    def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        with self._turn(), self._intake.door(subscription):
            self._stages.remove(_id("a subscription", subscription))

    def replace(self, new: Subscription | Subscriber | Mapping[str, Any]) -> None:
        """Put a subscription or a subscriber in the place of the one with its id.

        A subscriber with another window, decay, diversifier or k starts with an empty window.
        Another scorer ranks what comes from now on; the window stays. What fails changes nothing.
        """
        with self._turn(), self._intake.door(new):
            form = isinstance(new, Mapping) and "subscriber" in new
            if form or isinstance(new, Subscription):
                self._stages.matcher.replace(self._subscription(new))
                return
            made = self._subscriber(new)
            known = self._known(made.id)
            if same_feed(made.policy, known.policy) and made.id not in self._stages.set_aside:
                self._stages.matcher.subscribe(made)
            else:
                self._stages.enrol(made)

    def publish(self, event: Event | Mapping[str, Any]) -> list[Delivery]:
        """Publish one event; give what is delivered because of it."""
        return self.publish_many([event])

    def publish_many(self, events: Iterable[Event | Mapping[str, Any]]) -> list[Delivery]:
        """Publish events; any split of a stream into calls gives the same deliveries.

        Some hundred are taken at once. If the iterator raises an error, those that were taken
        together with the missing one are as if they had never come, and may be published again;
        the deliveries of those before are returned by the next call.
        """
        due, records = list[Delivery](), iter(_iterated(events))
        try:
            while chunk := list(islice(records, RECORDS)):  # beside the lock: it is a user's code
                with self._turn():
                    for record in chunk:
                        self._steps.extend(self._intake.arrive(record))
                    due += self._taken()
        except BaseException:
            with self._lock:
                self._owed[:0] = due
            raise
        return due

    def advance(self, now: object) -> list[Delivery]:
        """Say that it is `now` (a time): periods that have passed are closed."""
        us = parse_time_us(now)
        with self._turn():
            self._steps.extend(self._intake.advance(us))
            return self._taken()

    def feed(self, subscriber: str) -> list[Delivery]:
        """Give a subscriber's list as it stands; nothing changes."""
        with self._turn():
            name = _id("a subscriber", subscriber)
            return self._stages.feeds.current(name, self._intake.now)

    def quality(self) -> Report:
        """Tell how good deliveries were since this engine was made or restored."""
        with self._turn():
            return self._stages.quality.report()

    def target(
        self, event: Event | Mapping[str, Any], k: int = 20, scorer: object = "exact"
    ) -> list[tuple[str, float]]:
        """Give the k best subscriptions for an event, with their scores, best first."""
        made, ranks = self._intake.read(event), _scorer(scorer)
        validate.count("k", k)
        matcher = self._stages.matcher
        if matcher.answers_beside_changes(ranks):
            return matcher.top(made, min(k, len(matcher.subscriptions) + 1), ranks)
        with self._turn():
            matcher = self._stages.matcher
            return matcher.top(made, min(k, len(matcher.subscriptions) + 1), ranks)

    def explain(self, subscriber: str, event: str | Event | Mapping[str, Any]) -> Explanation:
        """Tell why a subscriber got an event, or why not; `print` it to read it in words."""
        with self._turn():
            self._known(subscriber)
            recall, read = self._memory.recall, self._intake.read
            found = recall(event) if isinstance(event, str) else read(event)
            delivery = self._memory.delivery(subscriber, found.id)
            return explain(self._stages.matcher, subscriber, found, delivery)

    def explain_target(
        self,
        subscription: str,
        event: Event | Mapping[str, Any],
        k: int = 20,
        scorer: object = "exact",
    ) -> Placement:
        """Tell where a subscription stands for an event, and what it lacks for the k best."""
        validate.count("k", k)
        name, ranks = _id("a subscription", subscription), _scorer(scorer)
        with self._turn():
            made = self._intake.read(event)
            return explain_target(self._stages.matcher, made, name, k, ranks)

    def snapshot(self) -> dict[str, Any]:
        """Give the whole state as JSON, but for what can be explained and what was measured."""
        with self._turn():
            self._owed = self._taken()
            stages = self._stages
            state = {
                "subscribers": [each.to_dict() for each in stages.matcher.subscribers.values()],
                "subscriptions": [each.to_dict() for each in stages.matcher.subscriptions.values()],
                "feeds": {
                    "kind": stages.feeds.name,
                    "state": b64encode(stages.feeds.snapshot()).decode(),
                },
                "intake": self._intake.snapshot(),
            }
            owed = [each.to_dict() for each in self._owed]
            return snapshot.sealed(state | ({"owed": owed} if owed else {}))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, whatever was here before.

        One that is damaged or of another version is refused, and the engine stays as it was.
        """
        with self._turn():
            limits = self._intake.terms.limits
            with reading(snapshot.NAME):
                found = snapshot.opened(state)
                people = [loads_subscriber(form, limits) for form in found.subscribers]
                wanted = [loads_subscription(form, limits) for form in found.subscriptions]
                validate.choice("the kind of feeds", found.kind, FEEDS)
                feeds = FEEDS[found.kind]()
                feeds.restore(found.feeds)
                snapshot.check_same([each.id for each in people], feeds)
                stages = Stages(Matcher(people, wanted, self._stages.matcher.index), feeds)
                intake = Intake.restored(found.intake, self._intake.terms)
                owed = [_delivery(form) for form in found.owed]
            self._stages, self._intake, self._owed = stages, intake, owed
            self._steps.clear()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one thread in at a time; a call from within a call would see half of a change."""
        with self._lock:
            if self._busy:
                raise TidingsError("the engine was called from within one of its own calls")
            self._busy = True
            try:
                yield
            finally:
                self._note_set_aside()
                notices, self._intake.notices = self._intake.notices, []
                self._busy = False
        for notice in notices:
            logging.getLogger(notice.logger).warning(
                notice.text
            )  # beside the lock, since a handler is a user's code

    def _taken(self) -> list[Delivery]:
        """Take all waiting steps through the stages; return what is delivered, and what is owed.

        If something is raised, the steps that are left are taken by the next call.
        """
        while self._steps:
            chunk = list(islice(self._steps, CHUNK))
            matched = self._stages.match([each.event for each in chunk if each.event is not None])
            at = 0
            for step in chunk:
                self._steps.popleft()  # a step is never taken twice, whatever comes of it
                if step.event is not None:
                    self._offer(matched, at, step)
                    at += 1
                self._hand_over(self._stages.advance(step.now))
        owed, self._owed = self._owed, []
        return owed

    def _offer(self, matched: Matched, at: int, step: Step) -> None:
        event = step.event
        assert event is not None
        try:
            self._memory.note(event)
            self._hand_over(self._stages.offer(matched, at, event, step.now))
        except Failed as error:
            self._intake.fail(event, error)
        except BaseException as error:
            self._intake.fail(event, TidingsError(f"event {event.id}: interrupted by {error!r}"))
            raise

    def _hand_over(self, delivered: list[Delivery]) -> None:
        self._owed += delivered
        self._stages.note(delivered, self._memory)

    def _note_set_aside(self) -> None:
        """Write a dead letter, and warn, of each subscriber that was set aside in this call."""
        now = self._stages.set_aside
        if now != self._told:
            for name in sorted(now.keys() - {*self._told}):
                subscriber = self._stages.matcher.subscribers.get(name, name)
                error = InvalidSubscription(f"subscriber {name} was set aside: {now[name]}")
                self._intake.refuse(subscriber, error)
                self._intake.notices.append(Notice(LOGGER, str(error)))
            self._told = now

    def _subscriber(self, given: object) -> Subscriber:
        """Read a subscriber; the policy of an object is held against the limits as well."""
        limits = self._intake.terms.limits
        if not isinstance(given, Subscriber):
            return loads_subscriber(given, limits)  # type: ignore[arg-type]
        policy = given.policy
        parts_of = (policy.k, policy.scorer, policy.decay, policy.window, policy.diversify)
        Policy(*parts_of, limits=limits)
        limits.check("prefers", len(given.prefers), "prefers", InvalidSubscription)
        return given

    def _subscription(self, given: object) -> Subscription:
        limits = self._intake.terms.limits
        if not isinstance(given, Subscription):
            return loads_subscription(given, limits)  # type: ignore[arg-type]
        limits.check("any_predicates", len(given.any or ()), "any", InvalidSubscription)
        conjunctions = given.conjunctions
        limits.check("conjunctions", len(conjunctions), "the conjunctions", InvalidSubscription)
        total = sum(map(len, conjunctions))
        limits.check("predicates", total, "the predicates", InvalidSubscription)
        return given

    def _known(self, subscriber: str) -> Subscriber:
        name = _id("a subscriber", subscriber)
        if name not in self._stages.matcher.subscribers:
            raise InvalidSubscription(f"there is no subscriber {shown(name)}")
        return self._stages.matcher.subscribers[name]


def _id(what: str, given: object) -> str:
    """Return an id; refuse what cannot be one."""
    if not validate.is_a(given, str):
        raise InvalidSubscription(f"{what} is named by a string, not {shown(given)}")
    return validate.plain_text(given)  # type: ignore[arg-type]


def _iterated(given: Any) -> Iterable[Any]:
    """Return what can be iterated over; refuse a single record, which would be taken apart."""
    is_a = validate.is_a
    if is_a(given, Iterable) and not is_a(given, str | bytes | Mapping):
        return given  # type: ignore[no-any-return]
    raise InvalidForm(f"many are given as a list or another iterable, not {shown(given)}")


def _delivery(form: Mapping[str, Any]) -> Delivery:
    return Delivery(
        form["subscriber"],
        form["event"],
        form["rank"],
        form["position"],
        form["window"],
        tuple(form["matched"]),
        form["sequence"],
        parse_time_us(form["delivered_at"]),
    )


def _scorer(given: object) -> Scorer:
    return named_parts.read(SCORERS, "scorer", given)
