"""Runs of a config in this process, from the first file to the last."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidings.app.check import Problem
from tidings.app.run.output_folder import Form, OutputFolder
from tidings.app.run.plan import RunPlan
from tidings.app.run.summary import BatchSummary, FirstLook, Notify
from tidings.app.signals import StopActions, stop_on_signals
from tidings.engine.engine import Engine
from tidings.engine.intake import LATE_LOGGER
from tidings.errors import InvalidForm, TidingsError
from tidings.formats.event_source import Source, read_file, showing
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.limits import UNLIMITED
from tidings.model.records import Delivery, Event
from tidings.policy import Subscriber
from tidings.store import open_store


@dataclass(frozen=True)
class BatchOutput:
    """The output of one batch of records."""

    deliveries: Sequence[Delivery]
    late: Sequence[Event]
    dead: Sequence[BadRecord | DeadLetter]


WriteBatch = Callable[[int, BatchOutput], None]


def run_local(
    plan: RunPlan, stop: StopActions | None = None, notify: Notify | None = None
) -> Iterator[BatchSummary]:
    """Run all files of the source; yield the summary of each batch after it is written.

    `notify` is called at most once, after the first events, if conditions have wrong attributes or
    types.
    """
    engine, source, limits = _engine(plan), plan.config.source, plan.config.limits
    published = Published(engine, FirstLook(notify))
    if not isinstance(source, Source):
        raise InvalidForm(f"the local engine reads files, not {source.label}")
    with _open_output(plan) as write, stop_on_signals(stop or StopActions()) as stop_requested:
        for number, paths in enumerate(source.batches()):
            if stop_requested.is_set():
                return
            records = [
                record for path in paths for record in read_file(path, source.suffix, limits=limits)
            ]
            with _no_late_warnings():
                output = published.publish(list(showing(records, source.content)))
            write(number, output)
            summary = _summarize(number, len(records), output)
            quality = engine.quality().to_dict()
            yield replace(summary, quality=quality, diagnose=engine.diagnose)


@contextmanager
def _no_late_warnings() -> Iterator[None]:
    """Drop the engine's warnings about late events, since the summary of a run counts them."""
    logger = logging.getLogger(LATE_LOGGER)
    logger.addFilter(_drop)
    try:
        yield
    finally:
        logger.removeFilter(_drop)


def _drop(_record: logging.LogRecord) -> bool:
    return False


def _engine(plan: RunPlan) -> Engine:
    """Return an engine with the subscribers and subscriptions that it accepts."""
    # A run writes every dead letter of a batch, so the engine must not drop any.
    limits = replace(plan.config.limits, kept_letters=UNLIMITED)
    engine = Engine(plan.config.lateness, limits=limits)
    refused = list[Problem]()
    for subscriber in plan.subscribers:
        try:
            engine.subscribe(subscriber)
        except TidingsError as error:
            refused.append(Problem(plan.config.path, str(error), id=subscriber.id))
    for subscription in plan.subscriptions:
        try:
            engine.add(subscription)
        except TidingsError as error:
            refused.append(Problem(plan.config.path, str(error), id=subscription.id))
    if refused:
        plan.refused.extend(refused)
        plan.folder.write_refused(plan.refused)
        engine.dead_letters.clear()  # the same records, already written to refused.jsonl
    return engine


@contextmanager
def _open_output(plan: RunPlan) -> Iterator[WriteBatch]:
    """Yield a function that writes a batch to the store or the folder of the sink."""
    address = plan.config.sink.store
    if address is None:
        yield lambda number, output: _write_to_folder(plan.folder, number, output)
        return
    query = plan.folder.query
    with open_store(address.url) as store:

        def append(number: int, output: BatchOutput) -> None:
            store.notifications.append(
                query, number, output.deliveries, late=output.late, dead=output.dead
            )

        yield append


def _write_to_folder(folder: OutputFolder, number: int, output: BatchOutput) -> None:
    folder.write_deliveries(number, output.deliveries)
    folder.write_letters("late", number, [_late_form(event) for event in output.late])
    folder.write_letters("dead_letters", number, [_dead_form(letter) for letter in output.dead])


@dataclass
class Published:
    """The events that an engine got so far, and a look at what subscriptions ask for in vain."""

    engine: Engine
    first_look: FirstLook
    count: int = 0

    def publish(self, records: Sequence[Event | BadRecord]) -> BatchOutput:
        """Publish the events of a batch; return all output of the engine."""
        engine = self.engine
        deliveries = engine.publish_many(self._counted(records))
        unreadable = [record for record in records if isinstance(record, BadRecord)]
        dead = [_with_json_record(letter) for letter in engine.dead_letters]
        output = BatchOutput(deliveries, list(engine.late), [*unreadable, *dead])
        engine.dead_letters.clear()
        engine.late.clear()
        return output

    def _counted(self, records: Iterable[Event | BadRecord]) -> Iterator[Event]:
        for record in records:
            if isinstance(record, Event):
                self.first_look(self.count, self.engine.diagnose)
                self.count += 1
                yield record


def _with_json_record(letter: DeadLetter) -> DeadLetter:
    """Return a dead letter whose record is JSON; an engine keeps objects, or an excerpt."""
    record = letter.record
    if isinstance(record, Event | Subscriber):
        return DeadLetter(record.to_dict(), letter.reason)
    return DeadLetter(
        record if isinstance(record, Mapping) else {"text": str(record)}, letter.reason
    )


def _summarize(number: int, events: int, output: BatchOutput) -> BatchSummary:
    return BatchSummary(
        number,
        events,
        deliveries=len(output.deliveries),
        late=len(output.late),
        dead=len(output.dead),
        delivered=Counter(delivery.subscriber for delivery in output.deliveries),
    )


def _dead_form(letter: BadRecord | DeadLetter) -> Form:
    form = letter.to_dict()
    return {"record": form["record"], "reason": form["reason"]}


def _late_form(event: Event) -> Form:
    reason = "published before the watermark"
    return {"event": event.id, "record": event.to_dict(), "reason": reason}
