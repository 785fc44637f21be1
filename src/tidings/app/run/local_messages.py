"""Local runs over messages, whose positions and state are kept with the output.

    progress/plan.json     the batch that is being processed: where it starts and ends
    progress/state.json    the state after the last batch whose output is written

A run that was killed repeats the planned batch with the same messages and from the same state, and
overwrites what it had already written of it. So its output is that of an undisturbed run.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import Any, Final

from tidings.app.run.local_batch import LocalBatch, Published
from tidings.app.run.output_folder import PROGRESS, OutputFolder, sync
from tidings.app.run.plan import RunPlan
from tidings.engine.engine import Engine
from tidings.errors import InvalidForm, StateError, TidingsError, described
from tidings.formats.json_text import read_json
from tidings.formats.messages import MessageSource
from tidings.model import validate
from tidings.model.values import SECOND_US, parse_duration_us
from tidings.sources.protocol import LATEST, MessageReader, WatchedReader
from tidings.sources.registry import open_reader
from tidings.store import ChangeWatch
from tidings.store.protocol import FOREVER

Form = dict[str, Any]
_LOOK_EVERY_S: Final = 0.5
"""How often a run that waits for messages checks for a request to stop."""
_PLAN: Final = "plan.json"
_STATE: Final = "state.json"
_WAY_OUT: Final = "start over with --fresh, or choose another folder in [sink]"
_MISFITS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors caused by fields that are missing, or have another type than was written."""


@dataclass(frozen=True)
class BatchPlan:
    """A batch of messages: its number, and the positions where it starts and ends."""

    number: int
    start: Mapping[str, Any]
    end: Mapping[str, Any]


class LocalProgress:
    """The files of a folder that hold the progress of a run."""

    def __init__(self, folder: OutputFolder) -> None:
        self._folder = folder.path / PROGRESS
        self._folder.mkdir(exist_ok=True)

    def state(self) -> Form | None:
        """Return the state after the last batch: `number`, `end`, and that of the engine."""
        return self._read(_STATE, "end", "engine", "order")

    def interrupted(self) -> BatchPlan | None:
        """Return the batch that was planned last, or None before the first."""
        form = self._read(_PLAN, "start", "end")
        return None if form is None else BatchPlan(form["number"], form["start"], form["end"])

    def begin(self, plan: BatchPlan) -> None:
        """Write a plan, before its first message is read."""
        self._write(_PLAN, {"number": plan.number, "start": plan.start, "end": plan.end})

    def finish(self, plan: BatchPlan, state: Form) -> None:
        """Write the state after a batch whose output is on disk."""
        self._write(_STATE, {"number": plan.number, "end": plan.end, **state})

    @contextmanager
    def must_fit(self, what: str) -> Iterator[None]:
        """Turn an error about the content of the files into one that names their folder."""
        try:
            yield
        except (StateError, InvalidForm) as error:
            reason = str(error)
        except TidingsError:
            raise
        except _MISFITS as error:
            reason = described(error)
        else:
            return
        raise TidingsError(f"{self._folder} does not fit {what}: {reason}; {_WAY_OUT}")

    def _read(self, name: str, *objects: str) -> Form | None:
        """Return the form of a file; the named fields are objects."""
        path = self._folder / name
        try:
            form = read_json(validate.regular_file(path).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TidingsError(f"{path} cannot be read: {error.strerror or error}") from None
        except TidingsError as error:
            raise TidingsError(f"{path} is damaged: {error}; {_WAY_OUT}") from None
        if not isinstance(form, dict) or not _is_number(form.get("number")):
            raise TidingsError(f"{path} is damaged: it has no batch; {_WAY_OUT}")
        for field in objects:
            if not isinstance(form.get(field), dict):
                raise TidingsError(f"{path} is damaged: field {field!r} is missing; {_WAY_OUT}")
        return form

    def _write(self, name: str, form: Form) -> None:
        new = self._folder / f"{name}.new"
        _write_through(new, json.dumps(form, separators=(",", ":")))
        new.rename(self._folder / name)
        sync(self._folder)


def _is_number(value: object) -> bool:
    """Return whether a value can be the number of a batch."""
    return type(value) is int and 0 <= value <= FOREVER


def _write_through(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@dataclass
class MessageRun:
    """A run over messages that resumes from the progress in its folder."""

    plan: RunPlan
    source: MessageSource
    published: Published

    def batches(self, stop: Flag) -> Iterator[LocalBatch]:
        """Publish the new messages; an endless run continues until `stop` is set."""
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
    """Wait until a time has passed, the flag is set, or the watch reports something new."""
    if watch is None:
        stop.wait(seconds)
        return
    deadline = time.monotonic() + seconds
    while not stop.is_set() and (left_s := deadline - time.monotonic()) > 0:
        if watch.wait(min(left_s, _LOOK_EVERY_S)):
            return


def change_subscriptions(engine: Engine, before: Mapping[str, Any], plan: RunPlan) -> None:
    """Change an engine from the subscriptions of a snapshot to those of a plan."""
    old = {form["id"]: form for form in before["subscribers"]}
    new = {subscriber.id: subscriber for subscriber in plan.subscribers}
    for name in old.keys() - new.keys():
        engine.unsubscribe(name)
    _put(engine.subscribe, engine.replace, old, new)
    owned = {form["id"]: form for form in before["subscriptions"] if form["subscriber"] in new}
    planned = {subscription.id: subscription for subscription in plan.subscriptions}
    for name in owned.keys() - planned.keys():
        engine.remove(name)
    _put(engine.add, engine.replace, owned, planned)


def _put(
    add: Callable[[Any], None],
    change: Callable[[Any], None],
    old: Mapping[str, Mapping[str, Any]],
    new: Mapping[str, Any],
) -> None:
    for name, record in new.items():
        with suppress(TidingsError):  # an engine without a state has refused and reported it
            if name not in old:
                add(record)
            elif record.to_dict() != old[name]:
                change(record)
