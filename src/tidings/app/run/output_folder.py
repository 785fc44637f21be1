"""The output folder of a run: one file per kind and batch, so that a batch can be written again.

    deliveries/  late/  dead_letters/    the results, one file per batch
    refused.jsonl                        subscriptions and subscribers that the run ignores
    tidings.json                         the manifest: query name, engine, format, buckets, and
                                         the last files of recent runs on Spark
    checkpoint/  index/                  state of Spark; index files that follow a store
    progress/                            state of a local run that reads messages

A run into a store or a Spark sink writes only the rest here: late events, dead letters, manifest.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from os.path import realpath
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet

from tidings.app.check import Problem
from tidings.app.config import FOLDERS, OUTBOX, Config
from tidings.errors import TidingsError, shown
from tidings.formats.event_source import Source, SparkSource
from tidings.formats.files import write_deliveries, write_lines
from tidings.formats.json_text import read_json
from tidings.formats.messages import MessageSource
from tidings.formats.redaction import shown_safely
from tidings.model import validate
from tidings.model.records import Delivery

CHECKPOINT: Final = "checkpoint"
INDEX: Final = "index"
PROGRESS: Final = "progress"
_KINDS: Final = ("deliveries", "late", "dead_letters")
_OURS: Final = (*_KINDS, "accounts", CHECKPOINT, INDEX, PROGRESS)
_MANIFEST: Final = "tidings.json"
_MANIFEST_BYTES: Final = 16_000_000
_REFUSED: Final = "refused.jsonl"
_QUERY: Final = "query"
_SOURCE: Final = "source"
_PLACES: Final = (
    *("path", "subscribe", "subscribePattern", "assign", "table", "dbtable", "query"),
    *("kafka.bootstrap.servers", "host", "port"),
    *("stream", "subject", "servers", "topics", "urls"),
)
"""Options of Spark sources that say where the events come from."""
_ENDS: Final = "ends"
_RESUMES: Final = "resumes"
_KEPT_ENDS: Final = 20
_WAY_OUT: Final = "start over with --fresh, or choose another folder in [sink]"
# The query name becomes part of paths: no separators, and not only dots.
_NAME: Final = re.compile(r"[^/\\\0\n]*[^/\\\0\n.][^/\\\0\n]*")
Form = dict[str, Any]


class OutputFolder:
    """The folder of a config's sink; nothing is written before `begin`, which may add `notes`.

    A run on Spark, or over messages, resumes from its state there, unless the config changed in a
    way that the state depends on. The output of a local run over files is replaced; `fresh`
    replaces everything.
    """

    def __init__(self, config: Config) -> None:
        self._name = config.sink.path
        self.path = Path(realpath(self._name))
        self.format = config.sink.format
        self._checkpoint = config.checkpoint
        self._settings = _fixed_settings(config)
        self._source = _place(config.source)
        self._stem = config.path.stem
        self.notes: list[str] = []

    @property
    def query(self) -> str:
        """The name of the query that writes here; a run that starts over gets a new one."""
        return str(self._read_manifest()[_QUERY])

    @property
    def checkpoint(self) -> str:
        """Spark's checkpoint folder: in this folder, or one per query below the configured one."""
        if self._checkpoint is None:
            return str(self.path / CHECKPOINT)
        return f"{self._checkpoint.rstrip('/')}/{self.query}"

    def begin(self, *, fresh: bool = False) -> None:
        """Prepare the folder for a run."""
        manifest = self.check(fresh=fresh)
        self.path.mkdir(parents=True, exist_ok=True)
        if manifest is None or not _can_resume(manifest):
            self._clear(fresh=fresh)
            manifest = {_QUERY: f"{self._stem}-{uuid4().hex[:8]}", _ENDS: []}
        elif manifest.get(_SOURCE, self._source) != self._source:
            self.notes.append(
                f"the source was {shown(manifest[_SOURCE])} and is now {shown(self._source)}; "
                "windows and progress of the earlier runs are kept (--fresh starts over)"
            )
        (self.path / _REFUSED).unlink(missing_ok=True)
        carried_over = {name: manifest[name] for name in (_QUERY, _ENDS)}
        self._write_manifest({**carried_over, **self._settings, _SOURCE: self._source})
        for kind in _KINDS if self.format in FOLDERS else ():
            (self.path / kind).mkdir(exist_ok=True)

    def add_end(self, file: Path | None) -> list[str]:
        """Note the file that this run ends with; return it and those of recent runs.

        Spark replays a batch that failed, perhaps in a later run with more files: the batch must
        then release the same events, so it must find the same ends.
        """
        manifest = self._read_manifest()
        ends: list[str] = manifest[_ENDS]
        if file is not None and realpath(file) not in ends:
            ends = [*ends, realpath(file)][-_KEPT_ENDS:]
            self._write_manifest({**manifest, _ENDS: ends})
        return ends

    def _write_manifest(self, manifest: Form) -> None:
        (self.path / _MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")

    def check(self, *, fresh: bool = False) -> Form | None:
        """Return the manifest of the run to resume, or None; refuse incompatible settings."""
        if not self._is_begun() or fresh:
            return None
        manifest = self._read_manifest()
        settings = {name: manifest.get(name) for name in self._settings}
        if _can_resume(manifest) and settings != self._settings:
            raise TidingsError(_difference(self._name, manifest, self._settings))
        return manifest

    def _is_begun(self) -> bool:
        """Return whether an earlier run wrote here; refuse a folder with other content."""
        try:
            if (self.path / _MANIFEST).exists():
                return True
            filled = self.path.exists() and any(self.path.iterdir())
        except OSError as error:
            raise TidingsError(f"{self._name} cannot be read: {error.strerror or error}") from None
        if filled:
            raise TidingsError(
                f"{self._name} is not empty and was not written by a run; "
                "choose another folder in [sink]"
            )
        return False

    def _read_manifest(self) -> Form:
        path = self.path / _MANIFEST
        try:
            manifest = read_json(validate.file_bytes(path, _MANIFEST_BYTES))
        except OSError as error:
            raise TidingsError(f"{path} cannot be read: {error.strerror or error}") from None
        except TidingsError as error:
            raise TidingsError(f"{path} is damaged: {error}; {_WAY_OUT}") from None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("engine"), str):
            raise TidingsError(f"{path} is damaged: the engine is missing; {_WAY_OUT}")
        query = manifest.get(_QUERY, self._stem)
        if not isinstance(query, str) or not _NAME.fullmatch(query):
            raise TidingsError(f"{path} is damaged: the query name is invalid; {_WAY_OUT}")
        ends = manifest.get(_ENDS, [])
        if not isinstance(ends, list) or not all(isinstance(name, str) for name in ends):
            raise TidingsError(f"{path} is damaged: its ends are not a list of names; {_WAY_OUT}")
        return {**manifest, _QUERY: query, _ENDS: ends}

    def _clear(self, *, fresh: bool) -> None:
        for name in _OURS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        # The outbox is kept, so that a local run, which always starts over, sends nothing twice.
        for file in self.path.glob(f"{OUTBOX}*") if fresh else ():
            file.unlink()

    def write_refused(self, problems: Iterable[Problem]) -> None:
        """Write the records that the run ignores, if there are any."""
        forms = [problem.to_dict() for problem in problems]
        if forms:
            write_lines(forms, self.path / _REFUSED)

    def write_deliveries(self, number: int, deliveries: Sequence[Delivery]) -> None:
        """Write the deliveries of a batch."""
        if deliveries:
            write_deliveries(sorted(deliveries, key=_in_order), self._file("deliveries", number))

    def write_letters(self, kind: str, number: int, letters: Sequence[Form]) -> None:
        """Write the late events or dead letters of a batch; in Parquet, records are JSON text."""
        if letters and self.format != "parquet":
            write_lines(letters, self._file(kind, number))
        elif letters:
            rows = [_columns(letter) for letter in letters]
            parquet.write_table(pa.Table.from_pylist(rows), self._file(kind, number))

    def clear_batch(self, number: int) -> None:
        """Delete the partial output of an interrupted batch."""
        for kind in _KINDS:
            self._file(kind, number).unlink(missing_ok=True)

    def sync_batch(self, number: int) -> None:
        """Wait until the files of a batch are on the disk."""
        for kind in _KINDS:
            file = self._file(kind, number)
            if file.exists():
                sync(file)
            sync(file.parent)

    def _file(self, kind: str, number: int) -> Path:
        """Return the file of a batch; Parquet files are placed as Spark places them."""
        (self.path / kind).mkdir(exist_ok=True)
        if self.format != "parquet":
            return self.path / kind / f"{number:08d}.jsonl"
        batch = self.path / kind / f"batch={number:08d}"
        batch.mkdir(exist_ok=True)
        return batch / "part-00000.parquet"


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _columns(letter: Form) -> Form:
    """Return a letter as columns of text; a lone surrogate is written as an escape sequence."""
    texts = {
        name: json.dumps(value) if name == "record" else value for name, value in letter.items()
    }
    return {
        name: text.encode(errors="backslashreplace").decode() if isinstance(text, str) else text
        for name, text in texts.items()
    }


def _can_resume(manifest: Form) -> bool:
    return manifest["engine"] != "local" or bool(manifest.get(_RESUMES))


def _place(source: Source | SparkSource | MessageSource) -> str:
    """Return where events come from, without secrets."""
    if isinstance(source, Source):
        return str(Path(realpath(source.folder)) / source.pattern)
    options = source.options
    places = [f"{key}={shown_safely(options[key])}" for key in _PLACES if key in options]
    return " ".join([source.format, *places])


def _fixed_settings(config: Config) -> Form:
    """Return the settings that must not change between runs into one folder."""
    settings: Form = {"engine": config.engine, "format": config.sink.format}
    if isinstance(config.source, MessageSource):
        settings[_RESUMES] = True
    return settings | ({"buckets": config.buckets} if config.engine == "spark" else {})


def _difference(path: Path, before: Form, now: Form) -> str:
    name = next(name for name in now if before.get(name) != now[name])
    return (
        f"{path} was written with {name} = {shown(before.get(name))}, but the config now has "
        f"{now[name]!r}; choose another folder in [sink], or start over with --fresh"
    )


def _in_order(delivery: Delivery) -> tuple[int, str, int]:
    return (delivery.delivered_us, delivery.subscriber, delivery.sequence)
