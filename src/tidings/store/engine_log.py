"""The log of a durable engine: its steps, each committed with its deliveries, and a checkpoint.

The state of an engine is a function of its steps. So a step is one small row, written in the
transaction that writes its deliveries; the whole state is written from time to time as a
checkpoint, and a restart repeats the steps since then.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from tidings.store.append_batch import BatchAppend
from tidings.store.protocol import Database, Session, read_row
from tidings.store.publications import StoredPublication, read_publications

T = TypeVar("T")

QUERY: Final = "local"
"""The name under which the durable engine writes its batches and its pin."""
_PAGE: Final = 1_000
_VERSIONS: Final = 10
"""The number of versions of index files that are listed."""
_TICKS: Final = 1_000
"""The number of ticks that are kept; Spark reads at most those of its last batch again."""
_STEPS: Final = "SELECT number, clock_us, version, upto FROM steps"


class EngineStep(NamedTuple):
    """A step: the clock reaches a time, if any, then the catalogue a version, then publications.

    Publications are processed up to and including the number `upto`.
    """

    number: int = 0
    clock_us: int | None = None
    version: int = 0
    upto: int = 0


class Checkpoint(NamedTuple):
    """The state of an engine after a step, as JSON."""

    step: EngineStep
    state: str


class Pending(NamedTuple):
    """The pending work of a pipeline: publications, and the newest version at that moment."""

    version: int
    publications: list[StoredPublication]


class IndexVersion(NamedTuple):
    """A version of the index files of a pipeline: the version of the catalogue that it holds.

    Its parts were built at once; `changes` counts the change files added since then.
    """

    version: int
    source: int
    parts: int
    changes: int
    built_us: int


class _Tick(NamedTuple):
    number: int
    clock_us: int


class EngineLog:
    """The steps of the durable engine of a store.

    Two processes may run it at the same time: each step is written once, by whichever is first.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> EngineStep:
        """Return the last step, or one with number 0 before the first."""
        steps = self._read(EngineStep, f"{_STEPS} ORDER BY number DESC LIMIT 1")
        return steps[0] if steps else EngineStep()

    def after(self, number: int) -> list[EngineStep]:
        """Return the next steps after a number, in order; those before a checkpoint are deleted."""
        sql = f"{_STEPS} WHERE number > ? ORDER BY number LIMIT ?"
        return self._read(EngineStep, sql, number, _PAGE)

    def pending(self, step: EngineStep, limit: int) -> Pending:
        """Return the publications after a step, and the version that the catalogue has reached.

        Both are of one moment: a subscription that existed before a publication is in the version.
        """
        return self._database.read(partial(_pending, step=step, limit=limit))

    def append(self, step: EngineStep, output: BatchAppend) -> bool:
        """Write a step with its output; return False if another process has already written it."""
        return self._database.write(partial(_append, step=step, output=output))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint after a step; the catalogue keeps its history from there."""
        self._database.write(partial(_save, checkpoint=checkpoint))

    def checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint."""
        return self._database.read(_checkpoint)

    def tick(self, clock_us: int) -> bool:
        """Write a time for a pipeline on Spark, unless publications are waiting.

        Return whether it did. A later time would make waiting publications late. One that is
        accepted from now on is newer, if it carries the time of its acceptance.
        """
        return self._database.write(partial(_tick, clock_us=clock_us))

    def tick_us(self, number: int) -> int | None:
        """Return the time of a tick."""
        sql = "SELECT number, clock_us FROM ticks WHERE number = ?"
        ticks = self._read(_Tick, sql, number)
        return ticks[0].clock_us if ticks else None

    def note_index(self, built: IndexVersion) -> None:
        """Write a version of the index files; the latest ones are kept."""
        self._database.write(partial(_note_index, built=built))

    def index_versions(self) -> list[IndexVersion]:
        """Return the last versions of the index files, newest first; a local engine has none."""
        columns = "version, source, parts, changes, built_us"
        sql = f"SELECT {columns} FROM index_versions ORDER BY version DESC"
        return self._read(IndexVersion, sql)

    def _read(self, kind: Callable[..., T], sql: str, *values: int) -> list[T]:
        return self._database.read(
            lambda session: [read_row(kind, row) for row in session.rows(sql, *values)]
        )


def _checkpoint(session: Session) -> Checkpoint | None:
    rows = session.rows(
        "SELECT s.number, s.clock_us, s.version, s.upto, c.state "
        "FROM checkpoints AS c JOIN steps AS s ON s.number = c.step"
    )
    if not rows:
        return None
    *step, state = rows[0]
    return read_row(Checkpoint, (read_row(EngineStep, step), state))


def _pending(session: Session, step: EngineStep, limit: int) -> Pending:
    version = session.rows("SELECT version FROM catalogue")[0][0]
    return read_row(Pending, (version, read_publications(session, step.upto, limit)))


def _append(session: Session, step: EngineStep, output: BatchAppend) -> bool:
    claim = "INSERT INTO steps (number, clock_us, version, upto) VALUES (?, ?, ?, ?)"
    if not session.run(f"{claim} ON CONFLICT DO NOTHING", *step):
        return False
    output.write(session)
    return True


def _tick(session: Session, clock_us: int) -> bool:
    processed = session.rows("SELECT coalesce(max(upto), 0) FROM steps")[0][0]
    if session.rows("SELECT last FROM intake")[0][0] > processed:
        return False
    number, last_us = session.rows(
        "SELECT number, clock_us FROM ticks UNION ALL SELECT 0, 0 ORDER BY 1 DESC LIMIT 1"
    )[0]
    if clock_us <= last_us:
        return False
    session.run("INSERT INTO ticks (number, clock_us) VALUES (?, ?)", number + 1, clock_us)
    session.run("DELETE FROM ticks WHERE number <= ?", number + 1 - _TICKS)
    return True


def _note_index(session: Session, built: IndexVersion) -> None:
    # After its folder was deleted, an index starts again with version 1.
    session.run("DELETE FROM index_versions WHERE version >= ?", built.version)
    session.run("INSERT INTO index_versions VALUES (?, ?, ?, ?, ?)", *built)
    session.run("DELETE FROM index_versions WHERE version <= ?", built.version - _VERSIONS)


def _save(session: Session, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint with a later one, and delete the steps that are no longer needed."""
    step, state = checkpoint
    saved = session.run(
        "INSERT INTO checkpoints VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE "
        "SET step = excluded.step, state = excluded.state WHERE checkpoints.step < excluded.step",
        step.number,
        state,
    )
    if not saved:
        return
    session.run(
        "INSERT INTO pins VALUES (?, ?, ?) ON CONFLICT (query) "
        "DO UPDATE SET batch = excluded.batch, version = excluded.version",
        QUERY,
        step.number,
        step.version,
    )
    session.run("DELETE FROM steps WHERE number < ?", step.number)
