"""Runs that are killed in mid-stream, again and again."""

import json
import multiprocessing
import random
import runpy
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.kill.process import KILLS, Run, environ, last
from tests.kill.stream import Expected, count
from tests.sources.pipelines import check

from tidings.store import open_store

LATER_S = 0.1
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


def start(config: Path, engine: str = "local") -> Run:
    """Start a run in a process of its own."""
    folder, given = config.parent, ["--engine", engine, str(config)]
    if engine == "local":
        command = [*COMMAND, *given]
        values = SimpleNamespace(
            command=command, output=str(folder / "output"), environment=environ()
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


def planned(folder: Path, engine: str = "local") -> int:
    """Return the number of the batch that a run is about to process; -1 before the first."""
    if engine == "spark":
        return last(folder / "out" / "checkpoint" / "offsets")
    try:
        return int(json.loads((folder / "out" / "progress" / "plan.json").read_text())["number"])
    except FileNotFoundError:
        return -1


def kill_runs(config: Path, kills: int, engine: str = "local") -> int:
    """Kill runs that have begun another batch; return how many, fewer if one came to its end.

    In a long test, which has more batches, a run may go on for a moment, so that it is also killed
    while it writes or sends.
    """
    folder, chance = config.parent, random.Random(3)
    for done in range(kills):
        run, before = start(config, engine), planned(folder, engine)
        try:
            if not run.until(lambda before=before: planned(folder, engine) > before):  # type: ignore[misc]
                assert run.process.wait() == 0, run.output()
                return done
            if KILLS:
                time.sleep(chance.uniform(0, LATER_S))
        finally:
            run.kill()
        end_reservations(folder)
    return kills


def end_reservations(folder: Path) -> None:
    """Let the channels that a killed run has reserved be sent at once, not after ten seconds."""
    with open_store(folder / "news.db") as store:
        sql = "UPDATE channels SET leased_us = 0"
        store.database.write(lambda session: session.run(sql))


def check_kills(config: Path, expected: Expected, kills: int, engine: str = "local") -> None:
    """Kill runs, let the last one end, and compare its output with an engine's."""
    killed = kill_runs(config, kills, engine)
    assert killed == kills if KILLS else killed > 0
    with open_store(config.parent / "news.db") as store:
        assert count(store) <= len(expected.deliveries)
    run = start(config, engine)
    assert run.wait() == 0, run.output()
    check(config.parent, expected)
