"""Runs of a config in this process: all files, or the new messages of a source.

A run over files starts with the first file and replaces earlier output. A run over messages resumes
where the last one stopped, however that ended.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Event as Flag
from typing import Final

from tidings.app.check import Problem
from tidings.app.run.local_batch import BatchOutput, LocalBatch, Published
from tidings.app.run.local_messages import MessageRun
from tidings.app.run.output_folder import Form, OutputFolder
from tidings.app.run.plan import RunPlan
from tidings.app.run.summary import BatchSummary, FirstLook, Notify
from tidings.app.signals import StopActions, stop_on_signals
from tidings.engine.engine import Engine
from tidings.engine.explain import Explanation
from tidings.errors import InvalidEvent, InvalidForm, TidingsError, shown
from tidings.formats.event_source import Source
from tidings.formats.messages import MessageSource
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.limits import UNLIMITED
from tidings.model.records import Event
from tidings.model.values import parse_duration_us
from tidings.store import open_store
from tidings.window import BatchOrder

WriteBatch = Callable[[int, BatchOutput], None]
REMEMBER_IDS: Final = "7d"
"""How long, in event time, a run over messages remembers published ids."""


def run_local(
    plan: RunPlan, stop: StopActions | None = None, notify: Notify | None = None
) -> Iterator[BatchSummary]:
    """Run the source; yield the summary of each batch after it is written.

    `notify` is called at most once, after the first events, if conditions have wrong attributes or
    types.
    """
    engine, refused = _engine(plan)
    if refused:
        plan.refused.extend(refused)
        plan.folder.write_refused(plan.refused)
        engine.dead_letters.clear()  # the same records, already written to refused.jsonl
    with _open_output(plan) as write, stop_on_signals(stop or StopActions()) as stop_requested:
        look = FirstLook(notify, endless=plan.config.endless)
        batches = _batches(plan, engine, look, stop_requested)
        while not stop_requested.is_set() and (batch := next(batches, None)) is not None:
            write(batch.number, batch.output)
            batch.finish()
            summary = _summarize(batch)
            quality = engine.quality().to_dict()
            yield replace(summary, quality=quality, diagnose=engine.diagnose)


def explain_run(plan: RunPlan, subscriber: str, event: str) -> Explanation:
    """Explain what becomes of an event when the config is run, without writing anything."""
    source = plan.config.source
    if not isinstance(source, Source):
        raise InvalidForm(f"only a run over files can be explained, not one over {source.label}")
    engine, _ = _engine(plan, remember=UNLIMITED)
    outputs = [
        batch.output
        for batch in _file_batches(plan, source, _published(plan, engine, FirstLook(None)))
    ]
    try:
        return engine.explain(subscriber, event)
    except InvalidEvent:
        raise InvalidEvent(_why_unknown(source, outputs, event)) from None


def _why_unknown(source: Source, outputs: Iterable[BatchOutput], event: str) -> str:
    """Return why no event with an id was published."""
    fields = {"id", source.layout.source_of("id")}
    for output in outputs:
        if any(late.id == event for late in output.late):
            return f"event {shown(event)} arrived too late; see [stream] lateness"
        for letter in output.dead:
            record = letter.record if isinstance(letter.record, Mapping) else {}
            if event in {str(record.get(name)) for name in fields}:
                return f"event {shown(event)} was refused: {letter.reason}"
    return f"no event of the source, {source.label}, has the id {shown(event)}"


def _published(plan: RunPlan, engine: Engine, first_look: FirstLook) -> Published:
    return Published(engine, BatchOrder(parse_duration_us(plan.config.lateness)), first_look)


def _batches(
    plan: RunPlan, engine: Engine, first_look: FirstLook, stop: Flag
) -> Iterator[LocalBatch]:
    """Publish the batches of the source."""
    source, published = plan.config.source, _published(plan, engine, first_look)
    if isinstance(source, Source):
        return _file_batches(plan, source, published)
    if isinstance(source, MessageSource):
        return MessageRun(plan, source, published).batches(stop)
    raise InvalidForm(f"the local engine reads files and messages, not {source.label}")


def _file_batches(plan: RunPlan, source: Source, published: Published) -> Iterator[LocalBatch]:
    batches, limits = list(source.batches()), plan.config.limits
    for number, paths in enumerate(batches):
        records = [record for path in paths for record in source.read(path, limits=limits)]
        output = published.publish(records, last=number == len(batches) - 1)
        yield LocalBatch(number, len(records), output, lambda: None)


def _engine(plan: RunPlan, remember: int = 10_000) -> tuple[Engine, list[Problem]]:
    """Return an engine with the subscribers and subscriptions that it accepts, and the others."""
    # A run writes every dead letter of a batch, so the engine must not drop any.
    limits = replace(plan.config.limits, kept_letters=UNLIMITED)
    streaming = isinstance(plan.config.source, MessageSource)
    engine = Engine(  # `BatchOrder` applies the lateness
        remember=remember,
        remember_ids=REMEMBER_IDS if streaming else None,
        limits=limits,
        future=plan.config.allowed_future if streaming else None,
    )
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
    config, query = plan.config, plan.folder.query
    has_store = config.sink.store is not None
    if not has_store and not config.sends:
        yield lambda number, output: _write_to_folder(plan.folder, number, output)
        return
    with open_store(config.outbox.url) as store:

        def append(number: int, output: BatchOutput) -> None:
            late, dead = output.late, output.dead
            if not has_store:
                _write_to_folder(plan.folder, number, output)
                late, dead = (), ()
            store.notifications.append(query, number, output.deliveries, late=late, dead=dead)

        yield append


def _write_to_folder(folder: OutputFolder, number: int, output: BatchOutput) -> None:
    folder.write_deliveries(number, output.deliveries)
    folder.write_letters("late", number, [_late_form(event) for event in output.late])
    folder.write_letters("dead_letters", number, [_dead_form(letter) for letter in output.dead])


def _summarize(batch: LocalBatch) -> BatchSummary:
    output = batch.output
    return BatchSummary(
        batch.number,
        batch.records,
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
