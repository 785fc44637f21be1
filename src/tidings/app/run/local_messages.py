"""Local runs over messages: positions and state are kept with the output, so restarts are exact."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event as Flag
from typing import Any

from tidings.app.run.local_batch import LocalBatch, Published
from tidings.app.run.local_progress import BatchPlan, LocalProgress
from tidings.app.run.plan import RunPlan
from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.formats.messages import MessageSource
from tidings.model.values import parse_duration_us
from tidings.sources.protocol import LATEST, MessageReader
from tidings.sources.registry import open_reader

Form = Mapping[str, Any]


@dataclass
class MessageRun:
    """A run over messages, which begins where the progress in its folder says."""

    plan: RunPlan
    source: MessageSource
    published: Published

    def batches(self, stop: Flag) -> Iterator[LocalBatch]:
        """Publish new messages: those that there are, or until `stop` if the run is endless."""
        reader = open_reader(self.source.format, self.source.options, streaming=True)
        try:
            progress = LocalProgress(self.plan.folder)
            for planned in self._plans(reader, progress, stop):
                yield self._publish(reader, progress, planned)
        finally:
            reader.close()

    def _plans(
        self, reader: MessageReader, progress: LocalProgress, stop: Flag
    ) -> Iterator[BatchPlan]:
        """Yield the batch that was interrupted, if there is one, and then new ones."""
        config, state = self.plan.config, progress.state()
        if state is not None:
            self.published.restore(state)
            change_subscriptions(self.published.engine, state["engine"], self.plan)
            number, start = state["number"] + 1, state["end"]
        else:
            number, start = 0, reader.starting(LATEST)
        planned = progress.interrupted()
        until = None if config.endless else reader.latest()
        while not stop.is_set():
            if planned is None or planned.number != number:
                end = reader.advance(start, until or reader.latest(), reader.limit)
                if end == start and not config.endless:
                    return
                if end == start:
                    stop.wait(parse_duration_us(config.trigger) / 1e6)
                    continue
                planned = BatchPlan(number, start, end)
                progress.begin(planned)
            yield planned
            number, start = number + 1, planned.end

    def _publish(
        self, reader: MessageReader, progress: LocalProgress, planned: BatchPlan
    ) -> LocalBatch:
        limits, form, folder = self.plan.config.limits, self.source.form, self.plan.folder
        records = [
            record
            for span in reader.spans(planned.start, planned.end)
            for batch in reader.read(span)
            for record in form.events(batch, limits)
        ]
        folder.clear_batch(planned.number)
        output = self.published.publish(records, last=True)

        def finish() -> None:
            folder.sync_batch(planned.number)
            progress.finish(planned, self.published.snapshot())
            reader.committed(planned.end)

        return LocalBatch(planned.number, len(records), output, finish)


def change_subscriptions(engine: Engine, before: Form, plan: RunPlan) -> None:
    """Change an engine from the subscriptions of a snapshot to those of a plan."""
    old = {form["id"]: form for form in before["subscribers"]}
    new = {subscriber.id: subscriber for subscriber in plan.subscribers}
    for name in old.keys() - new.keys():
        engine.unsubscribe(name)
    _put(engine.subscribe, engine.replace, old, new)
    owned = {form["id"]: form for form in before["subscriptions"] if form["subscriber"] in new}
    wanted = {subscription.id: subscription for subscription in plan.subscriptions}
    for name in owned.keys() - wanted.keys():
        engine.remove(name)
    _put(engine.add, engine.replace, owned, wanted)


def _put(
    add: Callable[[Any], None],
    change: Callable[[Any], None],
    old: Mapping[str, Form],
    new: Mapping[str, Any],
) -> None:
    for name, record in new.items():
        with suppress(TidingsError):  # an engine without a state has refused and reported it
            if name not in old:
                add(record)
            elif record.to_dict() != old[name]:
                change(record)
