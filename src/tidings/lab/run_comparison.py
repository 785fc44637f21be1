"""Comparisons of policies over a recording, in parts that can be interrupted and continued.

A part holds some of the subscribers, and everything that they would have received with every
policy. Parts do not depend on each other, so they run one after the other in this process, or side
by side on Spark; the tables are the same.
"""

import logging
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet

from tidings import __version__
from tidings.errors import InvalidForm, TidingsError
from tidings.formats.columnar_files import open_parquet
from tidings.formats.layout import AS_IT_IS, Layout
from tidings.lab.comparison import Comparison, joined
from tidings.lab.recording import Recording, read_recording
from tidings.lab.replay import SCHEMAS, PartTables, replay
from tidings.lab.variants import PolicyInputs, Variant, read_variants
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event, Subscription
from tidings.model.values import format_time, parse_time_us
from tidings.policy import DEFAULT_POLICY, Policy, Subscriber

_LOG: Final = logging.getLogger(__name__)
EngineName = Literal["local", "spark"]
ENGINES: Final = ("local", "spark")
PEOPLE_IN_PART: Final = 500
"""The default number of subscribers in a part: each part processes every publication, which costs
as much as the windows of a few hundred subscribers."""
MOST_PARTS: Final = 16
Progress = Callable[[int, int], None]
"""Called with the number of finished parts, and of all parts."""
_MARK: Final = "comparison.sha256"


def compare(  # noqa: PLR0913 - independent settings, all with defaults
    publications: Any,
    subscriptions: Any,
    policies: PolicyInputs,
    *,
    subscribers: Any = None,
    layout: Layout = AS_IT_IS,
    until: object = None,
    engine: EngineName = "local",
    out: str | Path | None = None,
    fresh: bool = False,
    parts: int | None = None,
    progress: Progress | None = None,
    default_policy: Policy = DEFAULT_POLICY,
    limits: Limits = TRUSTED,
) -> Comparison:
    """Return what each policy would have delivered from a recording, and how they compare.

    Publications, subscriptions and subscribers are files, Arrow tables, DataFrames, objects or
    JSON forms; publications may also be a folder or a pattern of files, whose columns a `layout`
    names. `policies` are objects, forms or TOML files by name, or a list of files; "own" is each
    subscriber's own policy, which for those that are not listed is the `default_policy`.

    Time ends with the last publication, or at `until`. With `out`, finished parts are kept in that
    folder: an interrupted comparison that is started again resumes, with the same result.

    >>> comparison = compare(
    ...     [{"id": f"e{n}", "published_at": n, "attributes": {"n": n}} for n in range(4)],
    ...     [{"id": "s", "subscriber": "ann", "where": "n >= 1"}],
    ...     {"all": {"k": 9}, "hourly": {"k": 1, "window": {"name": "periodic", "length": "1h"}}},
    ...     until=3600,
    ... )
    >>> comparison.summary.select(["policy", "matches", "delivered"]).to_pylist()[1]
    {'policy': 'hourly', 'matches': 3, 'delivered': 1}
    """
    validate.choice("engine", engine, ENGINES, InvalidForm)
    recording = read_recording(
        publications,
        subscriptions,
        subscribers,
        layout=layout,
        policy_of=lambda _: default_policy,
        limits=limits,
    )
    settings = CompareSettings(engine, None if out is None else Path(out), fresh, parts)
    return compare_recording(recording, read_variants(policies, limits), until, settings, progress)


@dataclass(frozen=True)
class CompareSettings:
    """How a comparison is carried out; nothing here changes its result."""

    engine: EngineName = "local"
    out: Path | None = None
    fresh: bool = False
    parts: int | None = None


def compare_recording(
    recording: Recording,
    variants: Sequence[Variant],
    until: object = None,
    settings: CompareSettings | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare policies over a recording."""
    settings = settings or CompareSettings()
    last_us = int(recording.published_us[-1])
    until_us = last_us if until is None else parse_time_us(until)
    if until_us < last_us:
        raise TidingsError(
            f"until, {format_time(until_us)}, is before the last publication, at "
            f"{format_time(last_us)}"
        )
    subscriber_count = len(recording.subscribers)
    if settings.parts is None:
        count = min(-(-subscriber_count // PEOPLE_IN_PART), MOST_PARTS)
    else:
        count = min(validate.count("parts", settings.parts), subscriber_count)
    tasks = {
        part: PartTask.of(recording.only(recording.subscribers[part::count]), variants, until_us)
        for part in range(count)
    }
    finished = _run(recording, tasks, settings, progress or (lambda _done, _all: None))
    tables = joined(finished, [variant.name for variant in variants])
    return Comparison(recording, tuple(variants), tables, until_us)


@dataclass(frozen=True)
class PartTask:
    """The replay of a part, without the publications, which all parts share."""

    subscribers: Sequence[Subscriber]
    subscriptions: Sequence[Subscription]
    variants: Sequence[Variant]
    until_us: int

    @classmethod
    def of(cls, part: Recording, variants: Sequence[Variant], until_us: int) -> "PartTask":
        """Return the task of some subscribers."""
        return cls(part.subscribers, part.subscriptions, variants, until_us)

    def run(self, events: Sequence[Event]) -> PartTables:
        """Replay the publications."""
        part = Recording(events, self.subscriptions, self.subscribers)
        return replay(part, self.variants, self.until_us)

    def __call__(self, events: Path) -> Mapping[str, bytes]:
        """Replay the publications of a file that `_run_on_spark` has written."""
        return {name: _packed(table) for name, table in self.run(_load(events))._asdict().items()}


@lru_cache(maxsize=1)
def _load(path: Path) -> Sequence[Event]:
    """Return publications; a worker that runs several parts reads them once."""
    events: Sequence[Event] = pickle.loads(path.read_bytes())
    return events


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(outputs: Mapping[str, bytes]) -> PartTables:
    tables = {name: pa.ipc.open_stream(data).read_all() for name, data in outputs.items()}
    return PartTables(**tables)


def _run(
    recording: Recording,
    tasks: Mapping[int, PartTask],
    settings: CompareSettings,
    progress: Progress,
) -> list[PartTables]:
    """Return the tables of all parts; finished ones are not computed again."""
    folder, finished = None, dict[int, PartTables]()
    if settings.out is not None:
        task = tasks[0]
        mark = fingerprint(recording, task.variants, task.until_us, len(tasks))
        folder = PartFolder(settings.out, mark, fresh=settings.fresh)
        read = {part: folder.read(part) for part in tasks if part in folder}
        finished = {part: tables for part, tables in read.items() if tables is not None}
    todo = {part: task for part, task in tasks.items() if part not in finished}
    progress(len(finished), len(tasks))
    run = _run_on_spark if settings.engine == "spark" else _run_here
    for part, tables in run(recording.events, todo):
        if folder is not None:
            folder.write(part, tables)
        finished[part] = tables
        progress(len(finished), len(tasks))
    return [finished[part] for part in tasks]


def _run_here(
    events: Sequence[Event], tasks: Mapping[int, PartTask]
) -> Iterator[tuple[int, PartTables]]:
    for part, task in tasks.items():
        yield part, task.run(events)


def _run_on_spark(
    events: Sequence[Event], tasks: Mapping[int, PartTask]
) -> Iterator[tuple[int, PartTables]]:
    if not tasks:
        return
    if find_spec("pyspark") is None:
        raise TidingsError(
            "Spark is not installed: run pip install 'tidings[lab]', or use the engine local"
        )
    from tidings.spark import session
    from tidings.spark.tasks import run_tasks

    with TemporaryDirectory(prefix="tidings-lab-") as folder:
        # Spark sends the file to its workers; a unique name keeps recordings apart.
        shared = Path(folder, f"publications-{uuid4().hex}.pickle")
        shared.write_bytes(pickle.dumps(events, pickle.HIGHEST_PROTOCOL))
        for part, outputs in run_tasks(session(), tasks, shared):
            yield part, _unpacked(outputs)


class PartFolder:
    """The folder of a comparison, which keeps finished parts so that a run can be interrupted.

    Each part is a folder of Parquet files that appears atomically. The folder belongs to
    one comparison: the same recording, policies and number of parts.
    """

    def __init__(self, path: Path, fingerprint: str, *, fresh: bool = False) -> None:
        self.path, self._parts = path, path / "parts"
        mark = path / _MARK
        if fresh:
            shutil.rmtree(self._parts, ignore_errors=True)
        elif mark.is_file() and mark.read_bytes() != fingerprint.encode() and self._parts.is_dir():
            raise TidingsError(
                f"{path} holds a comparison of other data or policies; "
                "choose another folder, or start over with --fresh"
            )
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            mark.write_text(fingerprint)
        except OSError as error:
            raise TidingsError(f"{path} cannot be written: {error.strerror or error}") from None

    def __contains__(self, part: int) -> bool:
        return self._folder(part).is_dir()

    def write(self, part: int, tables: PartTables) -> None:
        """Write the tables of a part."""
        unfinished = self._parts / f".{part:03d}.{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for name, table in tables._asdict().items():
            parquet.write_table(table, unfinished / f"{name}.parquet")
        shutil.rmtree(self._folder(part), ignore_errors=True)  # a damaged one
        unfinished.rename(self._folder(part))

    def read(self, part: int) -> PartTables | None:
        """Return the tables of a finished part, or None if a file is damaged."""
        tables = []
        for name, schema in zip(PartTables._fields, SCHEMAS, strict=True):
            path = self._folder(part) / f"{name}.parquet"
            try:
                file = open_parquet(validate.regular_file(path), TRUSTED)
                tables.append(pa.Table.from_batches(file.batches(), file.schema).cast(schema))
            except (OSError, ValueError, pa.ArrowException, TidingsError) as error:
                _LOG.warning("%s is damaged, so its part is computed again: %s", path, error)
                return None
        return PartTables(*tables)

    def _folder(self, part: int) -> Path:
        return self._parts / f"{part:03d}"


def fingerprint(
    recording: Recording, variants: Sequence[Variant], until_us: int, parts: int
) -> str:
    """Return a hash of everything that the parts of a comparison depend on."""
    digest = sha256(repr((__version__, variants, until_us, parts)).encode())
    for event in recording.events:
        values = sorted(event.attributes.items())
        whole = (event.id, event.published_us, event.sequence, values, event.content_json)
        digest.update(repr(whole).encode())
    for record in (*recording.subscriptions, *recording.subscribers):
        digest.update(repr(record).encode())
    return digest.hexdigest()
