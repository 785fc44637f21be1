"""Runs that are killed in mid-stream, again and again."""

import json
import subprocess
import sys
from pathlib import Path

from tests.kill.process import Run, environ, last
from tests.kill.stream import Expected, count
from tests.sources.pipelines import check

from tidings.store import open_store

COMMAND = [sys.executable, "-c", "from tidings.app.cli import main; main()", "run", "--log", "text"]


def start(config: Path, engine: str = "local") -> Run:
    """Start a run in a process of its own."""
    folder = config.parent
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, "--engine", engine, str(config)],
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
    """Kill runs that have begun another batch; return how many, fewer if one came to its end."""
    folder = config.parent
    for done in range(kills):
        run, before = start(config, engine), planned(folder, engine)
        try:
            if not run.until(lambda before=before: planned(folder, engine) > before):  # type: ignore[misc]
                assert run.process.wait() == 0, run.output()
                return done
        finally:
            run.kill()
    return kills


def check_kills(config: Path, expected: Expected, kills: int, engine: str = "local") -> None:
    """Kill runs, let the last one end, and compare its output with an engine's."""
    assert kill_runs(config, kills, engine) > 0
    with open_store(config.parent / "news.db") as store:
        assert count(store) <= len(expected.deliveries)
    run = start(config, engine)
    assert run.wait() == 0, run.output()
    check(config.parent, expected)
