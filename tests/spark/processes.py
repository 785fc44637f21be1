"""Pipelines over a folder of files, and `tidings run` as a separate process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

PATIENCE_S = 240
CONFIG = """
[source]
path = "in/*.jsonl"
[subscriptions]
path = "wishes.jsonl"
[policies.default]
k = 2
window = { name = "sliding", length = 4 }
[sink]
path = "out"
format = "jsonl"
[stream]
trigger = "200ms"
buckets = 2
master = "local[2]"
"""


def pipeline(folder: Path, files: int, events: int = 20) -> Path:
    """Write a config, subscriptions of five subscribers, and files of events; return the config."""
    wishes = [
        {"id": f"s{number}", "subscriber": f"p{number % 5}", "where": f"n >= {number * 5}"}
        for number in range(20)
    ]
    (folder / "in").mkdir()
    write_lines(folder / "wishes.jsonl", wishes)
    for number in range(files):
        write_file(folder, number, events)
    path = folder / "run.toml"
    path.write_text(CONFIG)
    return path


def write_file(folder: Path, number: int, events: int = 20) -> None:
    """Write one file of events atomically."""
    forms = [
        {"id": f"e{at}", "published_at": at, "attributes": {"n": at * 37 % 100}}
        for at in range(number * events, (number + 1) * events)
    ]
    hidden = folder / f"{number}.tmp"
    write_lines(hidden, forms)
    hidden.rename(folder / "in" / f"{number:03d}.jsonl")


def write_lines(path: Path, forms: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(form) + "\n" for form in forms))


def read_lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted((folder / kind).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def by_sequence(folder: Path) -> list[dict[str, Any]]:
    """Return all deliveries in order of subscriber and sequence."""
    found = read_lines(folder, "deliveries")
    return sorted(found, key=lambda form: (form["subscriber"], form["sequence"]))


@contextmanager
def tidings_run(config: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start `tidings run`, which is killed at the end of the test."""
    line = [sys.executable, "-m", "tidings.app.cli", "run", str(config), *options]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def logged(process: subprocess.Popen[str], batches: int) -> list[dict[str, Any]]:
    """Read the log up to a number of batches."""
    assert process.stderr is not None
    found: list[dict[str, Any]] = []
    killer = Timer(PATIENCE_S, process.kill)  # a run that logs nothing would block for ever
    killer.start()
    try:
        while len(found) < batches:
            line = process.stderr.readline()
            assert line, f"the run ended early, with {process.wait()}"
            found.append(json.loads(line))
    finally:
        killer.cancel()
    return found


def files_read(config: Path, batch: int) -> int:
    """Return how many files a batch and those before it have read.

    A batch that was aborted before it was planned leaves its file to the next one, which then has
    two; so the number of a batch does not say it.
    """
    offsets = config.parent / "out" / "checkpoint" / "offsets" / str(batch)
    last: int = json.loads(offsets.read_text().splitlines()[-1])["logOffset"]
    return last + 1
