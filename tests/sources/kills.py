"""Runs that are killed in mid-stream, again and again."""

import json
import multiprocessing
import random
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.kill.process import Run, environ, last
from tests.kill.stream import Expected, count
from tests.sources.pipelines import check

from tidings.store import Store, open_store

COMMAND = ["tidings", "run", "--log", "text"]
PROGRAM = [sys.executable, "-c", "from tidings.app.cli import main; main()", *COMMAND[1:]]
RUN = Path(__file__).with_name("run_forked.py")
# A new interpreter would import for seconds; a process that has nothing else is safe to fork.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tidings.app.cli", "tidings.app.run.local", "tidings.channels"])


@dataclass(frozen=True)
class ForkedProcess:
    """A process of the fork server, with the verbs of `subprocess.Popen`."""

    process: Any

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def poll(self) -> int | None:
        code: int | None = self.process.exitcode
        return code

    def terminate(self) -> None:
        self.process.terminate()

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(COMMAND, timeout or 0)
        return code


def start(config: Path, engine: str = "local", *, stays_after: int | None = None) -> Run:
    """Start a run in a process of its own.

    A local one may stay, until it is killed, between the output and the end of the first batch with
    a number larger than `stays_after`.
    """
    folder, given = config.parent, ["--engine", engine, str(config)]
    if engine == "local":
        command = [*COMMAND, *given]
        values = SimpleNamespace(
            command=command,
            output=str(folder / "output"),
            environment=environ(),
            stays_after=stays_after,
        )
        arguments = (str(RUN), {"GIVEN": values}, "__main__")
        forked = SERVER.Process(target=runpy.run_path, args=arguments, daemon=True)
        forked.start()
        return Run(folder, ForkedProcess(forked))
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [*PROGRAM, *given],
            env=environ(),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Run(folder, process)


class Aim(Enum):
    """What a run is waited for before it is killed."""

    PLANNED = "a batch is planned"
    AT_WORK = "a batch has begun a while ago"
    WRITTEN = "the output of a batch is in the store"
    RESERVED = "a channel is about to send"
    SENT = "a channel has sent something"
    TAKEN = "a receiver has taken a message, and has not answered"
    DONE = "a batch is done"


class Place(Enum):
    """Where a run was killed, by what it has left behind."""

    IN_BATCH = "before the output of a batch was written"
    AFTER_OUTPUT = "between the output of a batch and its end"
    BETWEEN = "between two batches"


class Killed(NamedTuple):
    """Where a run was when it was killed, and the channels that were just sending."""

    place: Place
    sending: frozenset[str]

    def __str__(self) -> str:
        """Return it as a line of an account."""
        return "; sends ".join((self.place.value, *sorted(self.sending)))


def write_account(folder: Path, killed: Sequence[Killed], repeated: Mapping[str, int]) -> None:
    """Write where runs were killed, and how many messages of each channel came again."""
    lines = [*map(str, killed), *(f"{name} repeated {count}" for name, count in repeated.items())]
    (folder / "killed").write_text("".join(f"{line}\n" for line in lines))


OUTPUT_AIMS = (Aim.PLANNED, Aim.AT_WORK)
ALL_AIMS = (
    Aim.PLANNED,
    Aim.RESERVED,
    Aim.WRITTEN,
    Aim.TAKEN,
    Aim.SENT,
    Aim.AT_WORK,
    Aim.DONE,
    Aim.RESERVED,
)
"""Of a run with channels; twice while it is about to send, since there are several to catch."""
LATER_S = {
    "local": {Aim.AT_WORK: 0.05, Aim.RESERVED: 0.2},
    "spark": {Aim.AT_WORK: 2.0, Aim.RESERVED: 0.5},
}
"""For how long, at most, a run goes on when an aim is reached; otherwise it is killed at once."""
Unanswered = Callable[[], AbstractContextManager[Callable[[], bool]]]
"""Lets a receiver take messages without an answer, and tells whether it has taken one."""
_TOO_LATE = "Python worker failed to connect back"
_SENDING = "SELECT id FROM channels WHERE leased_us > 0"
_SENT = "SELECT coalesce(sum(sent), 0) FROM channels"
_WRITTEN = "SELECT coalesce(max(batch), -1) FROM batches WHERE query <> 'local'"
"""Steps of a service have this name; they are not the batches of its query."""


class Watched:
    """What a run has left behind so far: the files of its progress, and its store."""

    def __init__(self, out: Path, engine: str, store: Store) -> None:
        self._out, self._engine, self._store = out, engine, store

    def planned(self) -> int:
        """Return the number of the batch that is about to be processed; -1 before the first."""
        return self._batch("offsets", "plan.json")

    def done(self) -> int:
        """Return the number of the last batch that is done; -1 before the first."""
        return self._batch("commits", "state.json")

    def written(self) -> int:
        """Return the number of the last batch in the store; -1 before the first."""
        return int(self._rows(_WRITTEN)[0][0])

    def sent(self) -> int:
        """Return how many messages all channels together have noted as sent."""
        return int(self._rows(_SENT)[0][0])

    def sending(self) -> frozenset[str]:
        """Return the channels that are reserved."""
        return frozenset(str(row[0]) for row in self._rows(_SENDING))

    def place(self) -> Place:
        """Return where a run was that is no more."""
        if self.planned() <= self.done():
            return Place.BETWEEN
        return Place.IN_BATCH if self.written() < self.planned() else Place.AFTER_OUTPUT

    def reaches(self, aim: Aim) -> Callable[[], bool]:
        """Return a function that tells whether a run has come further than now."""
        if aim is Aim.RESERVED:
            return lambda: bool(self.sending())
        count = {
            Aim.PLANNED: self.planned,
            Aim.AT_WORK: self.planned,
            Aim.WRITTEN: self.written,
            Aim.SENT: self.sent,
            Aim.DONE: self.done,
        }[aim]
        before = count()
        return lambda: count() > before

    def end_reservations(self) -> None:
        """Let the channels that a killed run has reserved be sent at once, not after 10 seconds."""
        sql = "UPDATE channels SET leased_us = 0"
        self._store.database.write(lambda session: session.run(sql))

    def _batch(self, spark_log: str, local_file: str) -> int:
        if self._engine == "spark":
            return last(self._out / "checkpoint" / spark_log)
        try:
            text = (self._out / "progress" / local_file).read_text()
        except FileNotFoundError:
            return -1
        return int(json.loads(text)["number"])

    def _rows(self, sql: str) -> Sequence[Any]:
        return self._store.database.read(lambda session: session.rows(sql))


def was_starved(run: Run) -> bool:
    """Return whether a run has stopped since the machine was too busy for Spark.

    Spark gives the Python processes that it starts ten seconds to connect, whatever is set.
    """
    return run.process.poll() not in (0, -signal.SIGKILL) and _TOO_LATE in run.output()


def aimed_at(
    aim: Aim, watched: Watched, unanswered: Sequence[Unanswered], turn: int
) -> AbstractContextManager[Callable[[], bool]]:
    """Return a context in which an aim can be reached, with what tells whether it is."""
    if aim is Aim.TAKEN:
        return unanswered[turn % len(unanswered)]()
    return nullcontext(watched.reaches(aim))


def kill_runs(
    config: Path,
    kills: int,
    engine: str = "local",
    aims: Sequence[Aim] = OUTPUT_AIMS,
    feed: Callable[[], bool] = lambda: True,
    unanswered: Sequence[Unanswered] = (),
) -> list[Killed]:
    """Kill runs, each where the next of some aims is reached; return where they were.

    Before each run, `feed` adds to the source, and tells whether there was something left. A run
    that comes to its end by itself is not counted; without something new to read, it is the last.
    `unanswered` are receivers that take turns in not answering.
    """
    chance, killed, starved = random.Random(3), list[Killed](), 0
    with open_store(config.parent / "news.db") as store:
        watched = Watched(config.parent / "out", engine, store)
        watched.end_reservations()
        while len(killed) < kills:
            fed, aim = feed(), aims[len(killed) % len(aims)]
            turn = len(killed) // len(aims)
            with aimed_at(aim, watched, unanswered, turn) as reached:
                run = start(config, engine)
                try:
                    if run.until(reached):
                        time.sleep(chance.uniform(0, LATER_S[engine].get(aim, 0)))
                finally:
                    run.kill()
            if was_starved(run):
                starved += 1
                assert starved <= kills, run.output()
            elif run.process.poll() == -signal.SIGKILL:
                killed.append(Killed(watched.place(), watched.sending()))
            else:
                assert run.process.poll() == 0, run.output()
                if not fed:
                    break
            watched.end_reservations()
    return killed


def check_kills(config: Path, expected: Expected, kills: int, engine: str = "local") -> None:
    """Kill runs, let the last one end, and compare its output with an engine's."""
    assert len(kill_runs(config, kills, engine)) == kills
    with open_store(config.parent / "news.db") as store:
        assert count(store) <= len(expected.deliveries)
    run = start(config, engine)
    assert run.wait() == 0, run.output()
    check(config.parent, expected)
