"""Local runs over messages: positions and state are kept with the output, so restarts are exact."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event as Flag
from typing import Any, Final

from tidings.app.run.local_batch import LocalBatch, Published
from tidings.app.run.local_progress import BatchPlan, LocalProgress
from tidings.app.run.plan import RunPlan
from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.formats.messages import MessageSource
from tidings.model.values import SECOND_US, parse_duration_us
from tidings.sources.protocol import LATEST, MessageReader, WatchedReader
from tidings.sources.registry import open_reader
from tidings.store import ChangeWatch

Form = Mapping[str, Any]
_LOOK_EVERY_S: Final = 0.5
"""How soon a run that waits for messages notices a request to stop."""


@dataclass
class MessageRun:
    """A run over messages, which begins where the progress in its folder says."""

    plan: RunPlan
    source: MessageSource
    published: Published

    def batches(self, stop: Flag) -> Iterator[LocalBatch]:
        """Publish new messages: those that there are, or until `stop` if the run is endless."""
        reader = open_reader(self.source.format, self.source.options, streaming=True)
        watch = None
        try:
            if self.plan.config.endless and isinstance(reader, WatchedReader):
                watch = reader.watch()
            progress = LocalProgress(self.plan.folder)
            for planned in self._plans(reader, progress, watch, stop):
                yield self._publish(reader, progress, planned)
        finally:
            if watch is not None:
                watch.close()
            reader.close()

    def _plans(
        self,
        reader: MessageReader,
        progress: LocalProgress,
        watch: ChangeWatch | None,
        stop: Flag,
    ) -> Iterator[BatchPlan]:
        """Yield the batch that was interrupted, if there is one, and then new ones."""
        config, state = self.plan.config, progress.state()
        if state is not None:
            with progress.must_fit("the engine"):
                self.published.restore(state)
                change_subscriptions(self.published.engine, state["engine"], self.plan)
            number, start = state["number"] + 1, state["end"]
        else:
            number, start = 0, reader.starting(LATEST)
        planned = progress.interrupted()
        until = None if config.endless else reader.latest()
        while not stop.is_set():
            if planned is None or planned.number != number:
                latest = until or reader.latest()
                with progress.must_fit("the source"):
                    end = reader.advance(start, latest, reader.limit)
                if end == start and not config.endless:
                    return
                if end == start:
                    rest(stop, watch, parse_duration_us(config.trigger) / SECOND_US)
                    continue
                planned = BatchPlan(number, start, end)
                progress.begin(planned)
            yield planned
            number, start = number + 1, planned.end

    def _publish(
        self, reader: MessageReader, progress: LocalProgress, planned: BatchPlan
    ) -> LocalBatch:
        limits, form, folder = self.plan.config.limits, self.source.form, self.plan.folder
        with progress.must_fit("the source"):
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


def rest(stop: Flag, watch: ChangeWatch | None, seconds: float) -> None:
    """Wait for a time, for the flag, or for a watch that has seen something new."""
    if watch is None:
        stop.wait(seconds)
        return
    deadline = time.monotonic() + seconds
    while not stop.is_set() and (left_s := deadline - time.monotonic()) > 0:
        if watch.wait(min(left_s, _LOOK_EVERY_S)):
            return


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
