"""The engine: ranked publish/subscribe in one process.

A call takes the lock, reads its records (`intake`), and passes the steps of the stream through the
stages (`stages`). Deliveries that a failed call did not return are returned by the next one.
"""

import logging
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from threading import RLock
from typing import Any, Final

import pyarrow as pa

from tidings.compiled.array_types import Float64s
from tidings.engine import snapshot
from tidings.engine.explain import (
    Explanation,
    Placement,
    complete,
    explain,
    explain_target,
    explain_targets,
)
from tidings.engine.intake import LOGGER, Intake, Latest, Notice, Terms
from tidings.engine.memory import Memory
from tidings.engine.quality import Report
from tidings.engine.stages import Stages, Step, StepRun
from tidings.engine.standing import Recollection
from tidings.errors import (
    InvalidEvent,
    InvalidForm,
    InvalidSubscription,
    TidingsError,
    prefix_errors,
    shown,
)
from tidings.feed import FEEDS
from tidings.feed.columnar.deliveries import DuePage
from tidings.formats.arrow import (
    DELIVERIES,
    TARGETS_BY_EVENT,
    read_event_numbers,
    read_valid_events,
    targets_by_event,
    validated,
)
from tidings.formats.binary import reading
from tidings.formats.json_forms import loads_subscriber, loads_subscription, read_policy
from tidings.index.arguments import MAX_RESULTS
from tidings.model import named_parts, validate
from tidings.model.conditions.predicate import Condition
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.event_columns import detach
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.profile import Profile
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import parse_duration_us, parse_time_us
from tidings.policy import DEFAULT_POLICY, Policy, Subscriber
from tidings.rank.matcher import Matcher, MatchPlan
from tidings.rank.target_index import TopColumns
from tidings.score import SCORERS, Scorer

CHUNK: Final = 1024
"""Steps of the stream that are matched at once."""
TARGETED: Final = 1 << 15
"""The most rows of a table whose targets are found at once."""
RECORDS: Final = CHUNK - 1
"""Records that are read at once; in order they make one step each, and one for the last moment."""


class Engine:
    """Ranked publish/subscribe in one process.

    `lateness` is how far out of order events may arrive; older ones go to `late`. Refused records
    go to `dead_letters`: a bad event is skipped, a bad command raises. The last `remember` events
    can be explained by id. `index` is the structure that finds subscriptions: `scan` checks all of
    them, `op`, `access` and `psg` only candidates, and `auto` switches from `scan` to `access` when
    there are many, or scanning has taken long; the answers are the same. `feeds` is the form of
    windows: `plain` keeps one object per subscriber, `table` keeps arrays for millions of them; the
    deliveries are the same. An event id can be published once, or, with `remember_ids`, again once
    its event is older than the newest by that duration.

    An event without `published_at` gets the time of the `clock` (epoch seconds), but never a time
    before the watermark. With `future`, a duration, an event published further ahead of the clock
    is refused and does not move the watermark. Records above the `limits` are refused.

    An engine is thread-safe: calls wait for each other, except for `target` by `exact` or `relaxed`
    over `access`, which does not wait. User functions that the engine calls, such as an aggregate,
    must not call the engine; such a call is refused. A subscriber whose policy fails is listed in
    `set_aside` and in a dead letter, and is not served until it is replaced.

    An owner of subscriptions that is not a subscriber has the `default_policy` until it subscribes;
    with None, its subscriptions have no effect until then.

    >>> from tidings import Event, Policy, Sliding, Subscriber, Subscription
    >>> engine = Engine()
    >>> engine.subscribe(Subscriber("addison", Policy(k=1, window=Sliding(10))))
    >>> engine.add(Subscription("s1", "addison", where="genre = 'comedy'", prefrank=0.9))
    >>> [d.event for d in engine.publish(Event("e1", {"genre": "comedy"}, published_at=0))]
    ['e1']
    """

    def __init__(  # noqa: PLR0913 - independent settings, all with defaults
        self,
        lateness: object = "0s",
        remember: int = 10_000,
        index: str = "auto",
        feeds: str = "table",
        remember_ids: object = None,
        *,
        limits: Limits = TRUSTED,
        future: object = None,
        clock: Callable[[], object] = time.time,
        default_policy: Policy | Mapping[str, Any] | None = DEFAULT_POLICY,
    ) -> None:
        validate.choice("feeds", feeds, FEEDS)
        check_limits(limits)
        if not callable(clock):
            raise TidingsError(f"clock must be a function that returns a time, not {shown(clock)}")
        terms = Terms(limits, clock, None if future is None else parse_duration_us(future))
        default = None if default_policy is None else read_policy(default_policy, limits)
        self._stages = Stages(Matcher(index=index), FEEDS[feeds](), default)
        self._intake = Intake(parse_duration_us(lateness), remember_ids, terms)
        self._profile = Profile()
        self._memory = Memory(validate.count("remember", remember, low=0))
        self._lock = RLock()
        self._busy = False
        self._steps: deque[Step] = deque()  # not empty after a call was interrupted
        self._owed: list[DuePage] = []  # not yet returned by any call
        self._reported_aside: dict[str, str] = {}

    @property
    def late(self) -> Latest[Event]:
        """The last events that arrived too late. Callers may clear the list.

        `late.total` counts all of them.
        """
        return self._intake.late

    @property
    def dead_letters(self) -> Latest[DeadLetter]:
        """The last refused records, with the reasons. Callers may clear the list.

        `dead_letters.total` counts all of them.
        """
        return self._intake.dead_letters

    @property
    def set_aside(self) -> dict[str, str]:
        """Subscribers that are not served because their policies failed, with the reasons."""
        with self._turn():
            return self._stages.set_aside

    def subscribe(self, subscriber: Subscriber | Mapping[str, Any]) -> None:
        """Add a subscriber; an id that exists already is refused."""
        with self._turn(), self._intake.recording_refusal(subscriber):
            new = self._subscriber(subscriber)
            if new.id in self._stages.owners_by_default:
                self._update(new)
                return
            if new.id in self._stages.feeds:
                raise InvalidSubscription(f"subscriber {shown(new.id)} exists already; use replace")
            self._enrol(new)

    def unsubscribe(self, subscriber: str) -> None:
        """Remove a subscriber, its subscriptions and its feed."""
        with self._turn(), self._intake.recording_refusal(subscriber):
            name = _id("a subscriber", subscriber)
            owned = [
                subscription.id for subscription in self._stages.matcher.subscriptions_of(name)
            ]
            self._stages.remove_subscriber(name)
            self._memory.note_left(name, owned)

    def pause(self, subscriber: str) -> None:
        """Pause a subscriber: its windows keep running, and what would be due is dropped."""
        self._set_paused(subscriber, paused=True)

    def resume(self, subscriber: str) -> None:
        """Resume a paused subscriber; what was dropped is not delivered later."""
        self._set_paused(subscriber, paused=False)

    def add(self, subscription: Subscription | Mapping[str, Any]) -> None:
        """Add a subscription; an id that exists already is refused."""
        with self._turn(), self._intake.recording_refusal(subscription):
            new = self._subscription(subscription)
            self._stages.add_subscription(new)
            self._memory.note_added([new.id])

    def add_many(
        self, subscriptions: Iterable[Subscription | Mapping[str, Any]]
    ) -> list[DeadLetter]:
        """Add subscriptions in one step; return a dead letter for each that is refused."""
        records = list(_records(subscriptions))
        valid, refused = list[Subscription](), list[DeadLetter]()
        with self._turn():
            for record in records:
                try:
                    valid.append(self._subscription(record))
                except Exception as error:  # noqa: BLE001 - a form may hold foreign objects
                    refused.append(self._intake.refuse(record, error))
            present = self._stages.matcher.subscriptions
            new = [record.id for record in valid if record.id not in present]
            for subscription, reason in self._stages.add_subscriptions(valid):
                refused.append(self._intake.refuse(subscription, reason))
            self._memory.note_added(new)
        return refused

    def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        with self._turn(), self._intake.recording_refusal(subscription):
            name = _id("a subscription", subscription)
            old = self._stages.matcher.subscriptions.get(name)
            self._stages.remove_subscription(name)
            if old is not None:
                self._memory.note_changed(old.subscriber, name)

    def replace(self, new: Subscription | Subscriber | Mapping[str, Any]) -> None:
        """Replace the subscription or subscriber that has the same id.

        A subscriber with another window, decay, diversifier or k starts with an empty window.
        Another scorer ranks later events and keeps the window. A replacement that is refused
        changes nothing.
        """
        with self._turn(), self._intake.recording_refusal(new):
            is_form = isinstance(new, Mapping) and "subscriber" in new
            if is_form or isinstance(new, Subscription):
                self._replace_subscription(self._subscription(new))
                return
            subscriber = self._subscriber(new)
            self._existing(subscriber.id)
            self._update(subscriber)

    def publish(self, event: Event | Mapping[str, Any]) -> list[Delivery]:
        """Publish one event; return the deliveries that it causes."""
        return self.publish_many([event])

    def publish_many(
        self, events: Iterable[Event | Mapping[str, Any] | BadRecord]
    ) -> list[Delivery]:
        """Publish events; any split of a stream into calls gives the same deliveries.

        Events are read in chunks. If the iterator raises an error, the chunk that was being read is
        not published and can be published again; deliveries of earlier chunks are returned by the
        next call.
        """
        return _objects(self._publish(_records(events)))

    def publish_table(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Publish the rows of an Arrow table; return the deliveries as another one.

        Each row is an event: the columns `id`, `published_at` and, optionally, `sequence` and
        `content`; every other column is an attribute. The result has the columns of a delivery,
        `window` and `content` as JSON text. It holds what `publish_many` returns, in the same
        order, without an object for each delivery. A row that is refused is a dead letter; a table
        without these columns is refused as a whole.
        """
        limits = self._intake.terms.limits
        records = read_valid_events(validated(table), limits=limits, attaches=True)
        pages = self._publish(records)
        return pa.concat_tables([DELIVERIES.empty_table(), *(page.table() for page in pages)])

    def _publish(self, records: Iterator[Any]) -> list[DuePage]:
        """Publish records chunk by chunk; return all that is due."""
        due = list[DuePage]()
        try:
            while chunk := list(islice(records, RECORDS)):  # outside the lock: it is a user's code
                with self._turn():
                    self._steps.extend(self._intake.arrive_many(chunk))
                    due += self._run_steps()
                detach(record for record in chunk if type(record) is Event)
        except BaseException:
            with self._lock:
                self._owed[:0] = due
            raise
        return due

    def advance(self, now: object) -> list[Delivery]:
        """Advance the stream to `now` (a time), and close the periods that end by then."""
        us = parse_time_us(now)
        with self._turn():
            self._steps.extend(self._intake.advance(us))
            due = self._run_steps()
        return _objects(due)

    def feed(self, subscriber: str) -> list[Delivery]:
        """Return the current list of a subscriber; nothing changes."""
        with self._turn():
            name = _id("a subscriber", subscriber)
            return self._stages.feeds.current(name, self._intake.now)

    def quality(self) -> Report:
        """Return the quality of the deliveries since the engine was created or restored."""
        with self._turn():
            return self._stages.quality.report()

    def diagnose(self) -> Diagnosis:
        """Compare the subscriptions with the events since the engine was created or restored.

        The result names attributes that no event has, types and values that no event has, and
        subscriptions that never matched; `print` it to read it. Of many events the values are a
        sample.
        """
        with self._turn():
            matcher = self._stages.matcher
            matched = self._stages.quality.matched_subscriptions
            subscribers = matcher.subscribers

            def counts_parts(subscription: Subscription) -> bool:
                owner = subscribers.get(subscription.subscriber)
                return owner is not None and owner.policy.scorer.partial

            subscriptions = matcher.subscriptions.values()
            return diagnose(subscriptions, self._profile, matched, counts_parts)

    def match_counts(self, events: Iterable[Event | Mapping[str, Any]]) -> dict[str, int]:
        """Return how many of these events each subscription matches; nothing is published."""
        read = self._intake.read_many(_records(events))
        with self._turn():
            return self._stages.matcher.match_counts(read)

    def target(
        self, event: Event | Mapping[str, Any], k: int = 20, scorer: object = "exact"
    ) -> list[tuple[str, float]]:
        """Return the k best subscriptions for an event, with their scores, best first."""
        return self.target_many([event], k, scorer)[0]

    def target_many(
        self, events: Iterable[Event | Mapping[str, Any]], k: int = 20, scorer: object = "exact"
    ) -> list[list[tuple[str, float]]]:
        """Return the k best subscriptions for each event; many at once take less time each."""
        read, ranks = self._intake.read_many(_records(events)), _scorer(scorer)
        validate.count("k", k)
        matcher = self._stages.matcher
        if matcher.answers_beside_changes(ranks):
            return matcher.top_many(read, min(k, len(matcher.subscriptions) + 1), ranks)
        with self._turn():
            matcher = self._stages.matcher
            return matcher.top_many(read, min(k, len(matcher.subscriptions) + 1), ranks)

    def target_table(
        self, table: pa.Table | pa.RecordBatch, k: int = 20, scorer: object = "exact"
    ) -> pa.Table:
        """Return the k best subscriptions for each row of an Arrow table, as another one.

        Rows are events as in `publish_table`; one that is refused raises an error. The result has a
        row for each: the id of the `event`, and lists of `subscription` and `score`, best first.
        Subscriptions are dictionary-encoded. Where boxes answer numbers, no object is made for
        an event or an answer.
        """
        ranks = _scorer(scorer)
        validate.count("k", k)
        whole = validated(table)
        whole = whole if isinstance(whole, pa.Table) else pa.Table.from_batches([whole])
        batches = whole.to_batches(max_chunksize=self._targeted_at_once(whole, k))
        if not batches:
            read_valid_events(whole)  # refuses a table without the columns of events
        tables = [self._target_batch(batch, k, ranks) for batch in batches]
        return pa.concat_tables(tables) if tables else TARGETS_BY_EVENT.empty_table()

    def _targeted_at_once(self, table: pa.Table, k: int) -> int:
        """Return how many rows are read as columns: not more bytes than one record may have."""
        limits = self._intake.terms.limits
        answers = MAX_RESULTS // min(k, len(self._stages.matcher.subscriptions) + 1)
        most_bytes = min(limits.record_bytes, limits.string_bytes)
        fitting: int = table.num_rows * most_bytes // max(1, table.nbytes)
        return max(1, min(TARGETED, answers, fitting))

    def _target_batch(self, batch: pa.RecordBatch, k: int, scorer: Scorer) -> pa.Table:
        matcher, limits = self._stages.matcher, self._intake.terms.limits
        most, ids = min(k, len(matcher.subscriptions) + 1), batch.column("id")
        if not matcher.answers_beside_changes(scorer):
            tops = None
        else:

            def rows_of(names: Sequence[str]) -> Float64s | None:
                numbers = read_event_numbers(batch, names, limits=limits, is_validated=True)
                return None if numbers is None else numbers.rows

            tops = matcher.top_rows(rows_of, most, scorer)
        if tops is None:
            records = read_valid_events(batch, limits=limits, attaches=True)
            events = [_whole(record) for record in records]
            tops = TopColumns.of(self.target_many(events, k, scorer))
            detach(events)
            ids = pa.array([event.id for event in events], pa.string())
        return targets_by_event(ids, *tops)

    def describe(self) -> MatchPlan:
        """Return which structures find subscriptions, and why; `print` the result to read it."""
        with self._turn():
            return self._stages.matcher.describe()

    def explain(self, subscriber: str, event: str | Event | Mapping[str, Any]) -> Explanation:
        """Explain why a subscriber did or did not get an event; `print` the result to read it."""
        with self._turn():
            self._existing(subscriber)
            if validate.is_a(event, str):
                whole = self._memory.recall(validate.plain_text(event))  # type: ignore[arg-type]
            else:
                whole = self._intake.read(event)
            delivery = self._memory.delivery(subscriber, whole.id)
            dropped = self._memory.dropped(subscriber, whole.id)
            matcher, now = self._stages.matcher, self._intake.now

            def recollect() -> Recollection:
                has_rules = self._memory.has_rules(matcher.subscribers[subscriber])
                if (delivery or dropped) and not has_rules:
                    return Recollection(None, (), None)
                return self._memory.recollect(matcher, subscriber, whole.id, now)

            explanation = explain(matcher, subscriber, whole, delivery)
            aside = self._stages.set_aside.get(subscriber)
            return complete(explanation, aside, dropped, recollect)

    def explain_target(
        self,
        subscription: str,
        event: Event | Mapping[str, Any],
        k: int = 20,
        scorer: object = "exact",
    ) -> Placement:
        """Explain the position of a subscription for an event, and its distance to the k best."""
        validate.count("k", k)
        name, ranks = _id("a subscription", subscription), _scorer(scorer)
        with self._turn():
            read = self._intake.read(event)
            return explain_target(self._stages.matcher, read, name, k, ranks)

    def explain_targets(
        self,
        event: Event | Mapping[str, Any],
        k: int = 20,
        scorer: object = "exact",
        others: int = 20,
    ) -> list[Placement]:
        """Explain the k best subscriptions for an event, and what the nearest others lack.

        Others with a score come first, then those of which the fewest predicates fail.
        """
        validate.count("k", k)
        validate.count("others", others, low=0)
        ranks = _scorer(scorer)
        with self._turn():
            read = self._intake.read(event)
            return explain_targets(self._stages.matcher, read, k, ranks, others)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON, without remembered events and quality."""
        with self._turn():
            self._owed = self._run_steps()
            stages = self._stages
            state = {
                "subscribers": _forms(stages.matcher.subscribers.values()),
                "subscriptions": _forms(stages.matcher.subscriptions.values()),
                "feeds": {
                    "kind": stages.feeds.name,
                    "state": b64encode(stages.feeds.snapshot()).decode(),
                },
                "intake": self._intake.snapshot(),
            }
            optional = {
                "owners_by_default": sorted(stages.owners_by_default),
                "owed": _forms(_objects(self._owed)),
            }
            return snapshot.sealed(
                state | {name: value for name, value in optional.items() if value}
            )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the state by a snapshot.

        One that is damaged or has another version is refused, and the engine is unchanged.
        """
        with self._turn():
            limits = self._intake.terms.limits
            with reading(snapshot.NAME):
                fields = snapshot.opened(state)
                subscribers = [loads_subscriber(form, limits) for form in fields.subscribers]
                subscriptions = [loads_subscription(form, limits) for form in fields.subscriptions]
                validate.choice("the kind of feeds", fields.kind, FEEDS)
                feeds = FEEDS[fields.kind]()
                feeds.restore(fields.feeds)
                snapshot.check_same([subscriber.id for subscriber in subscribers], feeds)
                index = self._stages.matcher.index
                matcher = Matcher(subscribers, subscriptions, index)
                stages = Stages(matcher, feeds, self._stages.default_policy)
                stages.owners_by_default.update(fields.owners_by_default)
                intake = Intake.restored(fields.intake, self._intake.terms)
                owed = [Delivery.from_dict(form) for form in fields.owed]
            self._stages, self._intake, self._owed = stages, intake, [DuePage.of(owed)]
            self._steps.clear()
            self._profile = Profile()
            self._memory = Memory(self._memory.size, whole=False)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock; refuse a nested call, which would see half of a change."""
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
            # Outside the lock, since a log handler is a user's code.
            logging.getLogger(notice.logger).warning(notice.text)

    def _run_steps(self) -> list[DuePage]:
        """Pass all waiting steps through the stages; return every delivery not yet returned.

        If an error is raised, the next call runs the remaining steps.
        """
        while self._steps:
            chunk = list(islice(self._steps, CHUNK))
            self._profile.add_sample([step.event for step in chunk if step.event is not None])
            for run in self._stages.runs(chunk):
                for _ in range(run.steps):
                    self._steps.popleft()  # before it runs, so that no step ever runs twice
                try:
                    self._offer(run)
                    self._deliver(self._stages.advance(run.now, len(run.events) - 1))
                finally:
                    self._memory.end_run()
                    detach(run.events)
            self._stages.note_verdicts()
        owed, self._owed = self._owed, []
        return owed

    def _offer(self, run: StepRun) -> None:
        if not run.events:
            return
        done = 0
        try:
            for event, now in zip(run.events, run.moments, strict=True):
                self._memory.note(event, now)
            for places, due, error in self._stages.offer(run):
                done = places.stop
                self._deliver(due)
                if error is not None:
                    self._fail(run.events[places.start : places.stop], error)
        except BaseException as interrupt:
            for event in run.events[done:]:
                interrupted = f"event {event.id}: interrupted by {interrupt!r}"
                self._intake.fail(event, TidingsError(interrupted))
            raise

    def _fail(self, events: Sequence[Event], error: TidingsError) -> None:
        """Refuse events that no feed has accepted."""
        for event in events:
            self._memory.forget(event.id)
            self._intake.fail(event, error)

    def _deliver(self, page: DuePage) -> None:
        if not len(page):
            return
        due = self._stages.drop_paused(page, self._memory)
        if len(due):
            self._owed.append(due)
            self._stages.note(due, self._memory)

    def _set_paused(self, subscriber: str, *, paused: bool) -> None:
        with self._turn(), self._intake.recording_refusal(subscriber):
            self._update(replace(self._existing(subscriber), paused=paused))

    def _update(self, subscriber: Subscriber) -> None:
        old, now = self._stages.matcher.subscribers[subscriber.id], self._intake.now
        if self._stages.update(subscriber, now):
            self._memory.note_enrolled(subscriber.id)
        elif replace(subscriber, policy=old.policy, paused=old.paused) != old or (
            subscriber.policy.scorer != old.policy.scorer
        ):
            self._memory.note_changed(subscriber.id)
        elif subscriber.policy.rules or old.policy.rules:
            self._memory.note_rules(old, now)  # also a pause: what it drops is never compared

    def _enrol(self, subscriber: Subscriber) -> None:
        self._stages.enrol(subscriber)
        self._memory.note_enrolled(subscriber.id)

    def _replace_subscription(self, new: Subscription) -> None:
        """Replace a subscription; for `diagnose` the new one has not matched yet."""
        old = self._stages.matcher.subscriptions.get(new.id, new)
        self._stages.replace_subscription(new)
        self._stages.quality.removed([new.id])
        for owner in {old.subscriber, new.subscriber}:
            self._memory.note_changed(owner)

    def _note_set_aside(self) -> None:
        """Add a dead letter and a warning for each subscriber that was set aside in this call."""
        aside = self._stages.set_aside
        if aside != self._reported_aside:
            for name in sorted(aside.keys() - {*self._reported_aside}):
                subscriber = self._stages.matcher.subscribers.get(name, name)
                error = InvalidSubscription(f"subscriber {name} was set aside: {aside[name]}")
                self._intake.refuse(subscriber, error)
                self._intake.notices.append(Notice(LOGGER, str(error)))
            self._reported_aside = aside

    def _subscriber(self, record: object) -> Subscriber:
        """Read a subscriber; the policy of an object is checked against the limits again."""
        limits = self._intake.terms.limits
        if not isinstance(record, Subscriber):
            return loads_subscriber(record, limits)  # type: ignore[arg-type]
        policy = record.policy
        parts = (policy.k, policy.scorer, policy.decay, policy.window, policy.diversify)
        Policy(*parts, policy.rules, limits=limits)
        limits.check("prefers", len(record.prefers), "prefers", InvalidSubscription)
        return record

    def _subscription(self, record: object) -> Subscription:
        """Read a subscription; the size of an object is checked against the limits again."""
        limits = self._intake.terms.limits
        if not isinstance(record, Subscription):
            return loads_subscription(record, limits)  # type: ignore[arg-type]
        limits.check("any_predicates", len(record.any or ()), "any", InvalidSubscription)
        if isinstance(record.where, Condition):
            with prefix_errors(f"subscription {record.id}: ", raised=InvalidSubscription):
                record.where.check(limits)
        return record

    def _existing(self, subscriber: str) -> Subscriber:
        name = _id("a subscriber", subscriber)
        if name not in self._stages.matcher.subscribers:
            raise InvalidSubscription(f"there is no subscriber {shown(name)}")
        return self._stages.matcher.subscribers[name]


def _id(what: str, value: object) -> str:
    """Return an id as a plain `str`."""
    if not validate.is_a(value, str):
        raise InvalidSubscription(f"the id of {what} is a string, not {shown(value)}")
    return validate.plain_text(value)  # type: ignore[arg-type]


def _records(records: Any) -> Iterator[Any]:
    """Return an iterator over records; refuse a single record, whose parts would be iterated."""
    is_a = validate.is_a
    if is_a(records, Iterable) and not is_a(records, str | bytes | Mapping):
        with suppress(TypeError):  # of an array without dimensions
            return iter(records)
    raise InvalidForm(f"expected a list or another iterable of records, not {shown(records)}")


def _whole(record: Event | BadRecord) -> Event:
    """Return an event, or refuse a bad record."""
    if isinstance(record, BadRecord):
        raise InvalidEvent(record.reason)
    return record


def _objects(pages: Iterable[DuePage]) -> list[Delivery]:
    return [delivery for page in pages for delivery in page.objects()]


def _forms(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [record.to_dict() for record in records]


def _scorer(scorer: object) -> Scorer:
    return named_parts.read(SCORERS, "scorer", scorer)
