"""Recordings: publications in order, and the subscribers that could have received them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.compiled.array_types import Int64s
from tidings.engine.intake import Intake, Terms
from tidings.engine.subscriber_replay import InterestReplay, RecordedSteps
from tidings.errors import InvalidForm, InvalidSubscription, shown
from tidings.formats import arrow, files
from tidings.formats.event_source import Source, find_source
from tidings.formats.json_forms import loads_event, loads_subscriber, loads_subscription
from tidings.formats.layout import AS_IT_IS, Layout
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import TRUSTED, UNLIMITED, Limits
from tidings.model.records import Event, Subscription, publication_order
from tidings.policy import DEFAULT_POLICY, Policy, Subscriber
from tidings.window import Moment

_KEPT: Final = 20
"""The number of refused records whose reasons are kept."""


class RefusedRecords(NamedTuple):
    """How many records of a kind were refused, and the first reasons."""

    kind: str
    total: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Recording:
    """Publications in order, numbered as an engine numbers them; subscriptions and subscribers.

    Subscribers are in order of their ids. What cannot be used is counted in `refused`.
    """

    events: Sequence[Event]
    subscriptions: Sequence[Subscription]
    subscribers: Sequence[Subscriber]
    refused: tuple[RefusedRecords, ...] = ()

    @cached_property
    def published_us(self) -> Int64s:
        """The time of each publication."""
        return np.array([event.published_us for event in self.events], np.int64)

    @cached_property
    def sequences(self) -> Int64s:
        """How many publications there were, up to and including each."""
        numbers = np.array([event.sequence or 0 for event in self.events], np.int64)
        return np.maximum.accumulate(numbers)

    def only(self, subscribers: Sequence[Subscriber]) -> "Recording":
        """Return the same publications with some of the subscribers."""
        names = {subscriber.id for subscriber in subscribers}
        owned = [
            subscription for subscription in self.subscriptions if subscription.subscriber in names
        ]
        return Recording(self.events, owned, subscribers)

    def of_subscriber(self, name: str) -> "Recording":
        """Return the same publications with one subscriber; an unknown one is refused."""
        named = [subscriber for subscriber in self.subscribers if subscriber.id == name]
        if not named:
            raise InvalidSubscription(f"there is no subscriber {shown(name)} in the recording")
        return self.only(named)

    def replay(self, subscriber: Subscriber, until: Moment) -> InterestReplay:
        """Return the publications up to a moment, as offers to one subscriber."""
        owned = self.only([subscriber]).subscriptions
        steps = RecordedSteps.of(self.events, until)
        return InterestReplay(steps, subscriber.id, owned, subscriber.prefers)


def read_recording(
    publications: Any,
    subscriptions: Any,
    subscribers: Any = None,
    *,
    layout: Layout = AS_IT_IS,
    policy_of: Callable[[str], Policy] = lambda _: DEFAULT_POLICY,
    limits: Limits = TRUSTED,
) -> Recording:
    """Read a recording from files, tables, DataFrames, objects or JSON forms.

    Publications may be a file, a folder or a pattern; `layout` describes one whose columns have
    other names. Owners of subscriptions that are not among the subscribers have the policy that
    `policy_of` returns. Records that cannot be read, and those whose ids were used before, are left
    out and counted.
    """
    events, bad_events = _read_events(publications, layout, limits)
    owned, bad_owned = _read(subscriptions, _SUBSCRIPTIONS, limits)
    listed, bad_listed = _read([] if subscribers is None else subscribers, _SUBSCRIBERS, limits)
    if not owned:
        why = f"; the first was refused: {bad_owned.reasons[0]}" if bad_owned.total else ""
        raise InvalidForm(f"there is no subscription that can be used{why}")
    if not events:
        why = f"; the first was refused: {bad_events.reasons[0]}" if bad_events.total else ""
        if isinstance(publications, str | Path) and bad_events.total and "--column" not in why:
            why += "; a layout, or --column and --type, name other fields and forms of times"
        raise InvalidForm(f"there is no publication that can be used{why}")
    by_id = {subscriber.id: subscriber for subscriber in listed}
    for subscription in owned:
        owner = subscription.subscriber
        if owner not in by_id:
            by_id[owner] = Subscriber(owner, policy_of(owner))
    refused = tuple(records for records in (bad_events, bad_owned, bad_listed) if records.total)
    return Recording(events, owned, [by_id[name] for name in sorted(by_id)], refused)


class _Kind(NamedTuple):
    """How records of one kind are read: their name, class, form, file and table."""

    name: str
    record: type
    loads: Callable[..., Any]
    from_file: Callable[..., Iterator[Any]]
    from_table: Callable[..., Iterator[Any]]


_EVENTS: Final = _Kind("publication", Event, loads_event, files.read_events, arrow.read_events)
_SUBSCRIPTIONS: Final = _Kind(
    "subscription",
    Subscription,
    loads_subscription,
    files.read_subscriptions,
    arrow.read_subscriptions,
)
_SUBSCRIBERS: Final = _Kind(
    "subscriber",
    Subscriber,
    loads_subscriber,
    files.read_subscribers,
    lambda table, limits: arrow.read_subscribers(
        table, partial(loads_subscriber, limits=limits), limits=limits
    ),
)


def _read_events(
    publications: Any, layout: Layout, limits: Limits
) -> tuple[list[Event], RefusedRecords]:
    """Return publications in order, as an engine processes them."""
    if isinstance(publications, str | Path):
        publications = replace(find_source(Path(), str(publications)), layout=layout)
    if isinstance(publications, Source):
        source = publications
        paths = [path for batch in source.batches() for path in batch]
        records: Iterator[Any] = (
            record for path in paths for record in source.read(path, limits=limits)
        )
    else:
        records = _records(publications, _EVENTS, limits)
    letters, events = _Letters("publication"), list[Event]()
    for record in records:
        if isinstance(record, BadRecord):
            letters.add(record.reason)
        else:
            events.append(record)
    intake = Intake(terms=Terms(replace(limits, kept_letters=UNLIMITED)))
    steps = [
        step for event in sorted(events, key=publication_order) for step in intake.arrive(event)
    ]
    for letter in intake.dead_letters:
        letters.add(letter.reason)
    return [step.event for step in steps if step.event is not None], letters.count()


def _read(records: Any, kind: _Kind, limits: Limits) -> tuple[list[Any], RefusedRecords]:
    """Return the records of a kind, each id once."""
    letters, by_id = _Letters(kind.name), dict[str, Any]()
    for record in _records(records, kind, limits):
        if isinstance(record, BadRecord):
            letters.add(f"record {record.position}: {record.reason}")
        elif record.id in by_id:
            letters.add(f"{kind.name} {shown(record.id)}: the id is already used")
        else:
            by_id[record.id] = record
    return list(by_id.values()), letters.count()


def _records(records: Any, kind: _Kind, limits: Limits) -> Iterator[Any]:
    """Yield the records of a file, a table, a DataFrame, or a list of objects and forms."""
    if isinstance(records, str | Path):
        return kind.from_file(records, limits=limits)
    table = _table(records)
    if table is not None:
        return kind.from_table(table, limits=limits)
    if not isinstance(records, Iterable) or isinstance(records, bytes | Mapping):
        raise InvalidForm(
            f"{kind.name}s are a file, a table, a DataFrame, objects or JSON forms, "
            f"not {shown(records)}"
        )
    return _objects(records, kind, limits)


def _objects(records: Iterable[Any], kind: _Kind, limits: Limits) -> Iterator[Any]:
    for position, record in enumerate(records, start=1):
        if isinstance(record, kind.record):
            yield record
        else:
            yield attempt(partial(kind.loads, limits=limits), record, position, _shown_record)


def _shown_record(record: Any) -> dict[str, Any]:
    return dict(record) if isinstance(record, Mapping) else {"text": shown(record)}


def _table(records: Any) -> pa.Table | None:
    """Return a table, or a pandas or Spark DataFrame, as an Arrow table; None for anything else."""
    if isinstance(records, pa.Table):
        return records
    if hasattr(records, "toArrow"):
        return records.toArrow()
    if hasattr(records, "iloc") and hasattr(records, "columns"):
        return pa.Table.from_pandas(records, preserve_index=False)
    return None


class _Letters:
    """Counts refused records of one kind, and keeps the first reasons."""

    def __init__(self, kind: str) -> None:
        self._kind, self._count = kind, 0
        self._reasons: dict[str, None] = {}

    def add(self, reason: str) -> None:
        self._count += 1
        if len(self._reasons) < _KEPT:
            self._reasons[reason] = None

    def count(self) -> RefusedRecords:
        return RefusedRecords(self._kind, self._count, tuple(self._reasons))
