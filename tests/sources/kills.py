"""Local runs that are killed in mid-stream, again and again."""

import json
import subprocess
import sys
from pathlib import Path

from tests.kill.process import Run, environ
from tests.kill.stream import Expected, count
from tests.sources.pipelines import check

from tidings.store import open_store

COMMAND = [sys.executable, "-c", "from tidings.app.cli import main; main()", "run", "--log", "text"]


def start(config: Path) -> Run:
    """Start a run on the local engine in a process of its own."""
    folder = config.parent
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, "--engine", "local", str(config)],
            env=environ(folder.parent / "pycache"),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Run(folder, process)


def planned(folder: Path) -> int:
    """Return the number of the batch that a run is about to process; -1 before the first."""
    try:
        return int(json.loads((folder / "out" / "progress" / "plan.json").read_text())["number"])
    except FileNotFoundError:
        return -1


def check_kills(config: Path, expected: Expected, kills: int) -> None:
    """Kill a run in each of some batches, let it end, and compare its output with an engine's."""
    folder, seen = config.parent, 0
    for batch in range(1, kills + 1):
        run = start(config)
        try:
            assert run.until(lambda number=batch: planned(folder) >= number), run.output()  # type: ignore[misc]
        finally:
            run.kill()
        with open_store(folder / "news.db") as store:
            seen, before = count(store), seen
        assert before <= seen < len(expected.deliveries)
    run = start(config)
    assert run.wait() == 0, run.output()
    check(folder, expected)
