"""A durable engine, whose state is a function of the steps in the log of a store.

The pipeline takes new steps and writes them with their deliveries. Every other process that repeats
the same steps has an identical engine, with which it answers questions about feeds and targets.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

from tidings.engine.engine import Engine
from tidings.engine.quality import Report
from tidings.errors import StoreError, TidingsError, described
from tidings.formats.json_text import read_json
from tidings.model.dead_letter import DeadLetter
from tidings.model.limits import UNLIMITED, Limits
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import EARLIEST_US, LATEST_US, moment, parse_duration_us
from tidings.policy import Policy, Subscriber
from tidings.store import CatalogueEntry, EngineStep, Store
from tidings.store.engine_log import Checkpoint
from tidings.store.publications import StoredPublication
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION

_PAGE: Final = 1_000
# Records in the store were validated when accepted, against limits that may have changed since.
_LIMITS: Final = Limits(kept_letters=UNLIMITED)

_WARM: Final = {
    "best": Policy(k=1),
    "sliding": Policy(k=2, window={"name": "sliding", "length": 3}),
    "diverse": Policy(k=2, window={"name": "sliding", "length": 3}, diversify="divrank"),
    "periodic": Policy(k=2, window={"name": "periodic", "length": "1s"}),
}


class StepOutput(NamedTuple):
    """The output of a step."""

    deliveries: list[Delivery]
    late: list[Event]
    dead: list[DeadLetter]


class DurableEngine:
    """The engine after a step of a log; `catch_up` repeats the steps that others wrote."""

    def __init__(self, store: Store, lateness: str = "0s") -> None:
        self._store = store
        self._lateness = lateness
        self._restore()

    def _restore(self) -> None:
        """Start from the checkpoint, or empty if there is none."""
        self.engine = new_engine(self._lateness)
        self.step = EngineStep()
        self.repeated = 0
        self._ids: dict[str, set[str]] = {SUBSCRIBER: set(), SUBSCRIPTION: set()}
        self._clocked: set[str] = set()
        checkpoint = self._store.log.checkpoint()
        if checkpoint is None:
            return
        try:
            state = read_json(checkpoint.state)
            self.engine.restore(state["engine"])
            self._ids = {kind: set(state["ids"][kind]) for kind in self._ids}
            self._clocked = set(state["clocked"])
        except (TidingsError, TypeError, LookupError) as error:
            raise self._damage(f"the checkpoint of its engine: {described(error)}") from None
        self.step = checkpoint.step

    def _damage(self, what: str) -> StoreError:
        return StoreError(f"{self._store.database.name}: {what}; restore the store from a copy")

    def catch_up(self) -> bool:
        """Repeat the steps written since the last call; return whether there were any."""
        moved = False
        while steps := self._store.log.after(self.step.number):
            moved, missing = True, self.step.number + 1
            if steps[0].number != missing:  # deleted, because a later checkpoint covers them
                self._restore()
                if self.step.number < missing:
                    raise self._damage(f"step {missing} of its engine is missing")
                continue
            for last in _last_of_runs(steps):
                self.run(last, self._publications(last))
            self.repeated += len(steps)
        return moved

    def run(self, step: EngineStep, publications: Iterable[StoredPublication]) -> StepOutput:
        """Take one step, and return its output; if it fails, the state is undefined."""
        deliveries = list[Delivery]()
        if not EARLIEST_US <= (step.clock_us or 0) <= LATEST_US:
            raise self._damage(f"step {step.number} of its engine is at no time")
        if step.clock_us is not None:
            deliveries += self.engine.advance(moment(step.clock_us))
        for entry in self._changes(step.version):
            self._apply(entry)
        unreadable = list[DeadLetter]()
        events = list(_events(publications, unreadable))
        deliveries += self.engine.publish_many(events)
        self.step = step
        late, dead = list(self.engine.late), [*unreadable, *map(_letter, self.engine.dead_letters)]
        self.engine.late.clear()
        self.engine.dead_letters.clear()
        return StepOutput(deliveries, late, dead)

    def checkpoint(self) -> Checkpoint:
        """Return the whole state."""
        state = {
            "engine": self.engine.snapshot(),
            "ids": {kind: sorted(names) for kind, names in self._ids.items()},
            "clocked": sorted(self._clocked),
        }
        return Checkpoint(self.step, json.dumps(state, separators=(",", ":")))

    @property
    def needs_clock(self) -> bool:
        """Whether something may become due even if nothing is published."""
        return bool(self._clocked) or parse_duration_us(self._lateness) > 0

    def quality(self) -> Report:
        """Return the quality of the deliveries since the checkpoint with which it began."""
        return self.engine.quality()

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._ids[SUBSCRIBER]

    def _publications(self, step: EngineStep) -> Iterator[StoredPublication]:
        last = self.step.upto
        while last < step.upto:
            page = self._store.publications.after(last, _PAGE, upto=step.upto)
            if not page:
                raise TidingsError(f"publications {last + 1} to {step.upto} are missing")
            yield from page
            last = page[-1].number

    def _changes(self, version: int) -> Iterator[CatalogueEntry]:
        """Yield the changes of the catalogue up to a version; the first call yields everything."""
        since, history = self.step.version, self._store.history
        if version - since > _PAGE and version > history.newest():
            raise self._damage(f"version {version} of its catalogue is missing")
        if since == 0 < version:
            yield from history.as_of(version)
            return
        while since < version:
            limit = min(_PAGE, version - since)
            yield from history.changes(since, limit)
            since += limit

    def _apply(self, entry: CatalogueEntry) -> None:
        """Apply a change; if the engine refuses it, it becomes a dead letter."""
        engine, ids = self.engine, self._ids[entry.kind]
        is_subscriber = entry.kind == SUBSCRIBER
        try:
            if entry.form is None:
                if entry.id in ids:
                    (engine.unsubscribe if is_subscriber else engine.remove)(entry.id)
                ids.discard(entry.id)
                self._clocked.discard(entry.id) if is_subscriber else None
                return
            if entry.id in ids:
                engine.replace(entry.form)
            else:
                (engine.subscribe if is_subscriber else engine.add)(entry.form)
                ids.add(entry.id)
        except TidingsError:
            return
        if is_subscriber:
            (self._clocked.add if needs_clock(entry.form) else self._clocked.discard)(entry.id)


def _last_of_runs(steps: list[EngineStep]) -> Iterator[EngineStep]:
    """Yield the last of each run of steps at one time and version of the catalogue.

    Deliveries do not depend on how publications are split into batches, so one step stands for the
    run, and saves the fixed cost of the others.
    """
    for _, run in groupby(steps, key=lambda step: (step.clock_us, step.version)):
        *_, last = run
        yield last


def new_engine(lateness: str = "0s", remember: int = 0) -> Engine:
    """Return an empty engine for a store, where ids are unique, so that it remembers none."""
    return Engine(lateness, remember, remember_ids="0s", limits=_LIMITS)


def warm_up() -> None:
    """Load the kernels of feeds, so that the first publication does not wait for them."""
    engine = new_engine()
    for name, policy in _WARM.items():
        engine.subscribe(Subscriber(name, policy))
        engine.add(Subscription(name, name, where="true"))
    engine.publish_many([Event(str(number), {"n": number}, number) for number in range(4)])


def read_event(form: str) -> Event:
    """Return the event of a publication."""
    return Event.from_dict(read_json(form))


def _events(
    publications: Iterable[StoredPublication], unreadable: list[DeadLetter]
) -> Iterator[Event]:
    for number, form in publications:
        try:
            yield read_event(form or "null")
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            reason = f"publication {number} of the store is damaged: {described(error)}"
            unreadable.append(DeadLetter({"number": number}, reason))


def _letter(letter: DeadLetter) -> DeadLetter:
    """Return a dead letter whose record is JSON; an engine keeps objects, or an excerpt."""
    record = letter.record
    form = record.to_dict() if hasattr(record, "to_dict") else record
    return DeadLetter(form if isinstance(form, Mapping) else {"text": str(form)}, letter.reason)


def needs_clock(form: Mapping[str, Any]) -> bool:
    """Return whether a subscriber's policy makes choices as time passes."""
    policy = form.get("policy", {})
    window = policy.get("window", {})
    by_time = isinstance(window.get("step", window.get("length", "")), str)
    return bool(policy.get("rules")) or (window.get("name") in ("periodic", "jumping") and by_time)
