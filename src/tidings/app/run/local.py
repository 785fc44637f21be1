"""Runs of a config in this process, from the first file to the last."""

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
from tidings.engine.explain import Explanation
from tidings.errors import InvalidForm, TidingsError
from tidings.formats.event_source import Source
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.limits import UNLIMITED
from tidings.model.records import Delivery, Event
from tidings.model.values import moment, parse_duration_us
from tidings.policy import Subscriber
from tidings.store import open_store
from tidings.window import BatchOrder


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
    engine, refused = _engine(plan)
    if refused:
        plan.refused.extend(refused)
        plan.folder.write_refused(plan.refused)
        engine.dead_letters.clear()  # the same records, already written to refused.jsonl
    batches = _batches(plan, engine, FirstLook(notify))
    with _open_output(plan) as write, stop_on_signals(stop or StopActions()) as stop_requested:
        while not stop_requested.is_set() and (batch := next(batches, None)) is not None:
            number, count, output = batch
            write(number, output)
            summary = _summarize(number, count, output)
            quality = engine.quality().to_dict()
            yield replace(summary, quality=quality, diagnose=engine.diagnose)


def explain_run(plan: RunPlan, subscriber: str, event: str) -> Explanation:
    """Explain what became of an event when the config is run; nothing is written."""
    engine, _ = _engine(plan, remember=UNLIMITED)
    for _ in _batches(plan, engine, FirstLook(None)):
        pass
    return engine.explain(subscriber, event)


def _batches(
    plan: RunPlan, engine: Engine, first_look: FirstLook
) -> Iterator[tuple[int, int, BatchOutput]]:
    """Publish the files batch by batch; yield the number, the records and the output of each."""
    source, limits = plan.config.source, plan.config.limits
    if not isinstance(source, Source):
        raise InvalidForm(f"the local engine reads files, not {source.label}")
    published = Published(engine, BatchOrder(parse_duration_us(plan.config.lateness)), first_look)
    batches = list(source.batches())
    for number, paths in enumerate(batches):
        records = [record for path in paths for record in source.read(path, limits=limits)]
        yield number, len(records), published.publish(records, last=number == len(batches) - 1)


def _engine(plan: RunPlan, remember: int = 10_000) -> tuple[Engine, list[Problem]]:
    """Return an engine with the subscribers and subscriptions that it accepts, and the others."""
    # A run writes every dead letter of a batch, so the engine must not drop any.
    limits = replace(plan.config.limits, kept_letters=UNLIMITED)
    engine = Engine(remember=remember, limits=limits)  # `BatchOrder` applies the lateness
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
    return engine, refused


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
    """An engine that receives the batches of a run in order; conditions are checked once, early."""

    engine: Engine
    order: BatchOrder
    first_look: FirstLook
    count: int = 0

    def publish(self, records: Sequence[Event | BadRecord], *, last: bool) -> BatchOutput:
        """Publish the events of a batch in order; return all output of the engine."""
        engine, order = self.engine, self.order
        batch = order.take(record for record in records if isinstance(record, Event))
        released = batch.released + (order.end() if last else [])
        deliveries = engine.publish_many(self._counted(released))
        if order.watermark_us is not None:
            deliveries += engine.advance(moment(order.watermark_us))
        unreadable = [record for record in records if isinstance(record, BadRecord)]
        dead = [_with_json_record(letter) for letter in engine.dead_letters]
        engine.dead_letters.clear()
        return BatchOutput(deliveries, batch.late, [*unreadable, *dead])

    def _counted(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            self.first_look(self.count, self.engine.diagnose)
            self.count += 1
            yield event


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
