"""Pipelines as processes that are started, watched, and killed with all their children."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol

from tests.kill.stream import LATENESS

DRIVER = Path(__file__).with_name("driver.py")
PATIENCE_S = 600
KILLS = int(os.environ.get("TIDINGS_KILLS", "0"))
"""Number of random kills in a long run, which also kills twice where a short run kills once."""
DEFAULTS = {"lateness": LATENESS, "files": 2, "patience_s": 60, "point": None, "batch": None}
"""Plan of a run, but for its folders and stores."""


@dataclass(frozen=True)
class Pipeline:
    """A folder with a stream, and the stores of its deliveries.

    `session` has the arguments of its Spark session. Spares are waiting processes with a session.
    The input may be in the folder of another pipeline, `stream`.
    """

    folder: Path
    stores: Sequence[str]
    session: Mapping[str, Any] = field(default_factory=dict)
    spares: list["Run"] = field(default_factory=list)
    stream: Path | None = None

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def plan(self, **changes: Any) -> dict[str, Any]:
        """Return the plan of a run, without a point at which it stops unless `changes` has one."""
        stream = str(self.stream) if self.stream else None
        fixed = {"folder": str(self.folder), "stores": [*self.stores], "stream": stream}
        return {**DEFAULTS, **fixed, **changes}

    def start(self) -> "Run":
        """Start the pipeline, in a spare process if there is one."""
        run = self.spares.pop() if self.spares else launch(self.folder, self.session)
        run.begin([self.plan()])
        return run

    def prepare(self) -> None:
        """Start the next process in advance, while another still runs."""
        self.spares.append(launch(self.folder, self.session))

    def committed(self) -> int:
        """Return the number of the last batch that Spark has committed; -1 before the first."""
        return last(self.checkpoint / "commits")

    def finish(self) -> None:
        """Run the pipeline to its end."""
        run = self.start()
        assert run.wait() == 0, run.output()

    def close(self) -> None:
        """End the spare processes."""
        while self.spares:
            self.spares.pop().kill()


def launch(folder: Path, session: Mapping[str, Any]) -> "Run":
    """Start a process for pipelines in a new session; its messages are in a folder of `folder`."""
    messages = Path(mkdtemp(prefix="run-", dir=folder))
    command = [sys.executable, str(DRIVER), str(messages), json.dumps(session)]
    with (messages / "output").open("w") as output:
        process = subprocess.Popen(command, env=environ(), stderr=output, start_new_session=True)
    return Run(messages, process)


class Process(Protocol):
    """What a run needs of its process."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def terminate(self) -> None: ...


@dataclass(frozen=True)
class Run:
    """A process that runs pipelines or waits for their plans, and the folder with its messages."""

    folder: Path
    process: Process

    def begin(self, plans: list[dict[str, Any]]) -> None:
        """Let the process run pipelines."""
        new = self.folder / "plans.new"
        new.write_text(json.dumps(plans))
        new.rename(self.folder / "plans.json")

    def wait(self) -> int:
        """Wait for its end; return its exit status."""
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.kill()

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def started(self) -> bool:
        """Return whether its first query is about to start."""
        return (self.folder / "started").exists()

    def until(self, condition: Callable[[], bool], pause_s: float = 0.005) -> bool:
        """Wait for a condition; return whether it held before the process ended."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, self.output()
            time.sleep(pause_s)
        return True

    def kill(self) -> None:
        """Kill the process, its Java, and their workers, all at once."""
        kill(processes(self.process.pid))
        self.process.wait(30)
        deadline = time.monotonic() + 30
        while processes(self.process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def last(folder: Path) -> int:
    """Return the largest number of a file in a log, including `9.compact`; -1 if there is none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  # some moments are short
    except FileNotFoundError:
        return -1
    numbers = [name.partition(".")[0] for name in names]
    return max((int(number) for number in numbers if number.isdigit()), default=-1)


def environ() -> dict[str, str]:
    """Return an environment in which processes keep compiled modules for the next ones."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def processes(session: int, words: str = "") -> list[int]:
    """Return the live processes of a session whose commands contain some words."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                state, _, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                if int(owner) == session and state != "Z" and words in command:
                    pids.append(int(entry.name))
    return pids


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
