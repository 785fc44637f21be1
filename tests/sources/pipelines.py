"""Configs over our sources, run as `tidings run` runs them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.kill.stream import Expected, write_stream
from tests.sources.brokers import Brokers

from tidings.app.config import load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.app.run.summary import RunSummary
from tidings.store import open_store

REST = """
[subscriptions]
path = "subscriptions.jsonl"
[subscribers]
path = "subscribers.jsonl"
[sink]
path = "out"
store = "sqlite:///news.db"
[stream]
lateness = "120s"
buckets = 4
master = "local[2]"
[metrics]
jsonl = "batches.jsonl"
"""


def kafka(folder: Path, address: str, **options: Any) -> Path:
    """Write a config that reads the topic `films` from its beginning."""
    given = {"kafka.bootstrap.servers": address, "subscribe": "films", **options}
    return write_config(folder, "tidings-kafka", {"startingOffsets": "earliest", **given})


def table(folder: Path, url: str, **options: Any) -> Path:
    """Write a config that reads the forms of a table `outbox`."""
    given = {"url": url, "table": "outbox", "key": "id", **options}
    return write_config(
        folder, "tidings-table", given, "columns = { value = \"coalesce(form, 'null')\" }"
    )


def write_config(folder: Path, kind: str, options: dict[str, Any], columns: str = "") -> Path:
    """Write a config over the subscriptions of a stream."""
    listed = "\n".join(f"{json.dumps(name)} = {json.dumps(each)}" for name, each in options.items())
    source = f'[source]\nformat = "{kind}"\n{columns}\n[source.options]\n{listed}\n'
    (folder / "run.toml").write_text(source + REST)
    return folder / "run.toml"


def run(config: Path, *, fresh: bool = False) -> RunSummary:
    """Run a config to its end on Spark."""
    from tidings.app.run.spark import run_spark  # noqa: PLC0415 - only where there is Spark

    plan = make_plan(load_config(config), fresh=fresh)
    return RunSummary.of(plan, list(run_spark(plan)), seconds=0)


def run_here(config: Path, *, fresh: bool = False) -> RunSummary:
    """Run a config to its end in this process, without Spark."""
    plan = make_plan(replace(load_config(config), engine="local"), fresh=fresh)
    return RunSummary.of(plan, list(run_local(plan)), seconds=0)


def check(folder: Path, expected: Expected) -> None:
    """Check that the store of a config holds each delivery of an engine once."""
    with open_store(folder / "news.db") as store:
        expected.check(store)


def check_restarts(folder: Path, brokers: Brokers, run: Callable[[Path], RunSummary]) -> None:
    """Check that runs resume, on a stream with poison, a late event, and one without a value."""
    expected = write_stream(folder, files=12)
    all_lines = lines(folder)
    config = kafka(folder, brokers.address, maxOffsetsPerTrigger=20)
    brokers.send("films", all_lines[:33], partition=0)
    first = run(config)
    assert (first.batches, first.events) == (2, 33)
    brokers.send("films", [*all_lines[33:], None], partition=0)
    second = run(config)
    assert (second.batches, second.events) == (2, len(all_lines) - 32)
    check(folder, replace(expected, dead=expected.dead + 1))
    third = run(config)
    assert (third.batches, third.events) == (0, 0)


def lines(folder: Path) -> list[str]:
    """Return the lines of the stream in a folder, in order."""
    files = sorted((folder / "in").glob("*.jsonl"))
    return [line for file in files for line in file.read_text().split("\n")[:-1]]
