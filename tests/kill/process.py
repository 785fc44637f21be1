"""Pipelines as processes: started, watched, and killed with all that they have started."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kill.stream import LATENESS

DRIVER = Path(__file__).with_name("driver.py")
PATIENCE_S = 180


@dataclass(frozen=True)
class Pipeline:
    """A folder with a stream in it, and the store that its deliveries go to."""

    folder: Path
    address: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def start(self, **plan: Any) -> "Run":
        """Start the pipeline in a session of processes of its own."""
        for sign in ("started", "reached"):
            (self.folder / sign).unlink(missing_ok=True)
        given = {"address": self.address, "lateness": LATENESS, "files": 2, "patience_s": 60}
        (self.folder / "plan.json").write_text(json.dumps({**given, **self.options, **plan}))
        said = (self.folder / "said").open("w+")
        command = [sys.executable, str(DRIVER), str(self.folder)]
        environment = environ(self.folder.parent / "pycache")
        process = subprocess.Popen(command, env=environment, stderr=said, start_new_session=True)
        said.close()
        return Run(self.folder, process)

    def committed(self) -> int:
        """Give the number of the last batch that Spark has committed; -1 before the first."""
        return last(self.checkpoint / "commits")

    def finish(self, **plan: Any) -> None:
        """Run it to its end."""
        run = self.start(**plan)
        assert run.wait() == 0, run.said()


@dataclass(frozen=True)
class Run:
    """A pipeline that runs."""

    folder: Path
    process: subprocess.Popen[bytes]

    def wait(self) -> int:
        """Wait for its end; give its status."""
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.kill()

    def said(self) -> str:
        return (self.folder / "said").read_text()

    def until(self, true: Callable[[], bool], pause_s: float = 0.0) -> bool:
        """Wait until something is true; tell whether it came to that before the process ended."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, self.said()
            time.sleep(pause_s)
        return True

    def java(self) -> list[int]:
        """Give the processes of Java that it has started."""
        return processes(self.process.pid, "org.apache.spark.deploy.SparkSubmit")

    def kill(self) -> None:
        """Kill the process, its Java, and the workers of both, all at once and without a word."""
        kill(processes(self.process.pid))
        self.process.wait(30)
        deadline = time.monotonic() + 30
        while processes(self.process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def last(folder: Path) -> int:
    """Give the largest number of a file in a log, also of `9.compact`; -1 where there is none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  # some moments are short
    except FileNotFoundError:
        return -1
    numbers = [name.partition(".")[0] for name in names]
    return max((int(number) for number in numbers if number.isdigit()), default=-1)


def environ(cache: Path) -> dict[str, str]:
    """Give variables with which Python compiles modules once for all that is started."""
    found = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**found, "PYTHONPYCACHEPREFIX": str(cache)}


def processes(session: int, words: str = "") -> list[int]:
    """Give the processes of a session that live and whose command has these words in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                state, _, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                if int(owner) == session and state != "Z" and words in command:
                    found.append(int(entry.name))
    return found


def kill(found: Iterable[int]) -> None:
    for each in found:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
