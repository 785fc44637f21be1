"""How far a local run over messages is: positions and state, kept with its output.

    progress/plan.json     the batch that is being processed: where it starts and ends
    progress/state.json    the state after the last batch whose output is written

A run that was killed repeats the batch of the plan with the same messages and from the same state,
and overwrites what it had written of it. So its output is that of a run that was not disturbed.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidings.app.run.output_folder import PROGRESS, OutputFolder, sync
from tidings.errors import InvalidForm, StateError, TidingsError, described
from tidings.formats.json_text import read_json
from tidings.store.protocol import FOREVER

_PLAN: Final = "plan.json"
_STATE: Final = "state.json"
_WAY_OUT: Final = "start over with --fresh, or choose another folder in [sink]"
_MISFITS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors caused by fields that are missing, or have another type than was written."""
Form = dict[str, Any]


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
        """Return the batch that was planned last; None before the first."""
        form = self._read(_PLAN, "start", "end")
        return None if form is None else BatchPlan(form["number"], form["start"], form["end"])

    def begin(self, plan: BatchPlan) -> None:
        """Write a plan, before its first message is read."""
        self._write(_PLAN, {"number": plan.number, "start": plan.start, "end": plan.end})

    def finish(self, plan: BatchPlan, state: Form) -> None:
        """Write the state after a batch, whose output is written."""
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
            form = read_json(path.read_bytes())
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
