"""A long run: simulated days through a pipeline on Spark, and whether anything grows meanwhile.

python bench/long.py [--minutes 60] [--subscribers 1000] [--events 100] [--quick]

A query reads files of two simulated hours each, one per batch, as fast as it can; it follows a
store in which subscribers and subscriptions are added, changed and removed with every file, and
writes to a notification store. It covers everything in bench/days.py: all windows, some
diversifiers and decays, events out of order, late events and repeated ids. Another process observes
it from outside every minute. A figure is flat if its median in the last quarter of the run is at
most 1.15 times that in the second quarter. At the end, the notifications of subscribers that no
change concerned are compared with the deliveries of an engine in one process. Results go to
bench/results/long.json and long.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
import watching
from days import FILE_S, LATENESS, REMEMBER, Changes, Days, people, steady, stream, wishes
from pages import Result, machine, opening, publish, table
from recovery import processor_s
from watching import Sample

from tidings import Engine, Event, Subscriber
from tidings.formats.files import write_events
from tidings.spark import outcomes, session, store_sink
from tidings.spark.inputs import FOLDER
from tidings.spark.ops.progress import watch_events, watch_outcomes
from tidings.spark.ops.query_control import SinkGate, follow, start
from tidings.store import open_store

AHEAD, PATIENCE_S, EVERY_S = 3, 1200, 60.0
"""The number of files written ahead, the patience in seconds, and the time between samples."""


def main() -> None:
    options = arguments()
    if options.serve:
        serve(options.serve, options.every)
        return
    result: Result = {"machine": machine(), "subscribers": options.subscribers}
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        run = Run(Path(place), options)
        try:
            result |= run.measured()
        finally:
            run.stop()
        result |= judged(result["samples"]) | {"right": run.right()}
    publish("long", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "three seconds")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--subscribers", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=100, help="of each file")
    parser.add_argument("--every", type=float, default=EVERY_S, help="seconds between samples")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.minutes, options.subscribers, options.events, options.every = 0.05, 200, 30, 1.0
    return options


def serve(folder: Path, every_s: float) -> None:
    """Run the query up to the batch that a file `stop` names; write a line per batch."""
    spark = session("long", settings={FOLDER: str(folder / "index")})
    reader = spark.readStream.option("maxFilesPerTrigger", 1).option("cleanSource", "delete")
    lines = watch_events(reader.text(str(folder / "in")))
    people = open_store(folder / "people.db")
    found = watch_outcomes(outcomes(lines, people, lateness=LATENESS, remember=REMEMBER))
    gate = SinkGate(store_sink(str(folder / "notes.db"), "long"))
    running = start(found.writeStream, gate, str(folder / "check"), every_us=0)
    due = 0.0
    with (folder / "batches.jsonl").open("w", buffering=1) as told:
        for batch in follow(running):
            line = batch.to_dict() | {"blob_bytes": written(running.query)}
            if time.monotonic() >= due:
                line, due = line | heap(spark), time.monotonic() + every_s
            print(json.dumps(line), file=told)
            if (folder / "stop").exists() and batch.batch >= int((folder / "stop").read_text()):
                gate.stop_requested.set()


def written(query: Any) -> int:
    """Return the bytes that the last batch put into the state store: the blobs that it rewrote."""
    states = query.lastProgress.stateOperators
    return sum(state.customMetrics.get("rocksdbTotalBytesWritten", 0) for state in states)


def heap(spark: Any) -> Sample:
    """Return the size of the Java heap after a garbage collection."""
    java = spark._jvm.java.lang  # noqa: SLF001
    java.System.gc()
    used = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    return {"heap_used": used.getUsed(), "heap_committed": used.getCommitted()}


class Told:
    """The lines that the query writes, one per batch, read as they arrive."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open()
        self._begun = ""
        self.count = 0
        self.fresh: list[Sample] = []
        self.heap: Sample = {}

    def read(self) -> int:
        """Read the new lines; return their total number."""
        *whole, self._begun = (self._begun + self._file.read()).split("\n")
        for line in map(json.loads, whole):
            self.count += 1
            self.fresh.append(line)
            self.heap = {name: line[name] for name in line if name.startswith("heap")} or self.heap
        return self.count

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Run:
    """The stream, the changes, and the query in its own process."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder, self._wanted = folder, options
        self._days, self._people = Days(options.events), people(options.subscribers)
        for name in ("in", "index"):
            (folder / name).mkdir()
        self._store = open_store(folder / "people.db")
        self._store.catalogue.load(
            each for person in self._people for each in (person, *wishes(person.id))
        )
        self._files, self._told = 0, Told(folder / "batches.jsonl")
        command = [sys.executable, __file__, "--serve", str(folder), "--every", str(options.every)]
        self._running = subprocess.Popen(command, start_new_session=True)
        self._spent = (0, 0.0)

    def measured(self) -> Result:
        """Feed the query for the requested time, and change the store with every file."""
        changes, samples = Changes(self._store, self._people), list[Sample]()
        self._feed_until(lambda: self._told.read() > AHEAD)
        began = due = time.monotonic()
        until = began + 60 * self._wanted.minutes
        while time.monotonic() < until:
            due += self._wanted.every
            self._feed_until(
                lambda due=due: time.monotonic() > due and bool(self._told.fresh), changes
            )
            samples.append({"hours": (time.monotonic() - began) / 3600} | self._sample())
            print(samples[-1], file=sys.stderr, flush=True)
        self._end()
        return {"files": self._files, "days": self._files * FILE_S / 86_400, "samples": samples}

    def stop(self) -> None:
        """Stop whatever is still running."""
        if self._running.poll() is None:
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        self._store.close()
        self._told.close()

    def right(self) -> bool:
        """Return whether subscribers that no change concerned got the engine's deliveries."""
        calm = steady(self._people)
        return received(self._folder, calm) == delivered(self._days, self._files, calm)

    def _feed_until(self, true: Callable[[], bool], changes: Changes | None = None) -> None:
        """Write a file whenever the query has read the previous ones, until a condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > deadline or self._running.poll() is not None:
                raise TimeoutError(f"the query has ended, or did nothing for {PATIENCE_S} s")
            if self._files < self._told.read() + AHEAD:
                self._write(self._days.file(self._files))
                self._files += 1
                if changes:
                    changes.make()
            time.sleep(0.05)

    def _write(self, events: list[Event]) -> None:
        new = self._folder / f"{self._files:06d}.jsonl"
        write_events(events, new)
        new.rename(self._folder / "in" / new.name)

    def _end(self) -> None:
        """Write the last event, and wait for the query to read it and end."""
        (self._folder / "stop").write_text(str(self._files))
        self._write([self._days.last(self._files)])
        self._running.wait(PATIENCE_S)

    def _sample(self) -> Sample:
        """Return a sample from outside, with the batches since the last one."""
        root, place = self._running.pid, self._folder
        by_program = watching.processes(root)
        kinds = {kind: watching.memory(numbers) for kind, numbers in by_program.items()}
        everyone = [number for numbers in by_program.values() for number in numbers]
        checkpoint = watching.size(place / "check")
        source = watching.size(place / "check" / "sources")
        return {
            **{f"{kind}_{name}": each for kind, of in kinds.items() for name, each in of.items()},
            "workers": len(by_program["worker"]),
            "descriptors": watching.entries("fd", everyone),
            "threads": watching.entries("task", by_program["java"]),
            "checkpoint": checkpoint - source,
            "checkpoint_source": source,
            "index": watching.size(place / "index"),
            "catalogue": watching.size(place / "people.db"),
            "notes": watching.size(place / "notes.db"),
            **self._batches(processor_s(root)),
        }

    def _batches(self, spent_s: float) -> Sample:
        told, (before, spent_before) = self._told, self._spent
        self._spent = (told.read(), spent_s)
        some, told.fresh = told.fresh, []
        middle = {
            name: median(each[name] for each in some)
            for name in ("seconds", "blob_bytes", "state_bytes", "state_memory_bytes")
        }
        each_s = (spent_s - spent_before) / (told.count - before)
        deliveries = sum(each["deliveries"] for each in some)
        return (
            {"batches": told.count, "deliveries": deliveries, "processor_s": each_s}
            | middle
            | told.heap
        )


def received(folder: Path, people: list[Subscriber]) -> dict[str, str]:
    """Return a digest of each subscriber's notifications, in order."""
    digests = {person.id: blake2b() for person in people}
    question = (
        "SELECT subscriber, event, rank, position FROM deliveries ORDER BY subscriber, sequence"
    )
    with open_store(folder / "notes.db") as store:
        for name, *what in store.database.read(lambda session: session.rows(question)):
            if name in digests:
                digests[name].update(repr(what).encode())
    return {name: digest.hexdigest() for name, digest in digests.items()}


def delivered(days: Days, files: int, people: list[Subscriber]) -> dict[str, str]:
    """Return a digest of the engine's deliveries to each subscriber, in order."""
    engine = Engine(lateness=LATENESS, index="access", feeds="table", remember=1)
    for person in people:
        engine.subscribe(person)
        engine.add_many(wishes(person.id))
    digests = {person.id: blake2b() for person in people}
    for events in stream(days, files):
        for delivery in engine.publish_many(events):
            digests[delivery.subscriber].update(
                repr([delivery.event, delivery.rank, delivery.position]).encode()
            )
    return {name: digest.hexdigest() for name, digest in digests.items()}


MEGABYTES, SECONDS, COUNT = (1e6, "MB", ",.1f"), (1, "s", ".3f"), (1, "", ",.0f")
FIGURES = {
    "driver_own": ("driver's Python, private", MEGABYTES),
    "java_own": ("Java, private", MEGABYTES),
    "heap_used": ("Java heap after collection", MEGABYTES),
    "worker_own": ("Python workers, private", MEGABYTES),
    "workers": ("Python workers", COUNT),
    "blob_bytes": ("blobs written per batch", MEGABYTES),
    "state_bytes": ("state store on disk, by Spark", MEGABYTES),
    "state_memory_bytes": ("state store in memory, by Spark", MEGABYTES),
    "checkpoint": ("checkpoint, without the source's log", MEGABYTES),
    "index": ("index files", MEGABYTES),
    "descriptors": ("open files", COUNT),
    "threads": ("threads of Java", COUNT),
    "processor_s": ("CPU time per batch", SECONDS),
    "seconds": ("seconds per batch", SECONDS),
}
GROWING = {
    "checkpoint_source": ("log of Spark's file source: a line per file, never removed", MEGABYTES),
    "catalogue": ("store of subscriptions: its file keeps the space of old versions", MEGABYTES),
    "notes": ("notification store: all deliveries", MEGABYTES),
}
EXCUSED = ("seconds",)
"""Figures that depend on other load; they are shown, and CPU time is judged instead."""


def judged(samples: list[Sample]) -> Result:
    """Return the trend of each figure, and whether all that should be flat are."""
    hours = [sample["hours"] for sample in samples]
    trends = {
        name: watching.trend(hours, [sample[name] for sample in samples])
        for name in FIGURES | GROWING
    }
    growing = [n for n in FIGURES if n not in EXCUSED and not trends[n]["flat"]]
    return {"trends": trends, "growing": growing, "flat": not growing}


def page(result: Result) -> str:
    samples, trends = result["samples"], result["trends"]
    deliveries = sum(sample["deliveries"] for sample in samples)
    verdict = "Everything is flat" if result["flat"] else f"GROWING: {', '.join(result['growing'])}"
    right = "the same as the engine's" if result["right"] else "DIFFERENT FROM THE ENGINE'S"
    remark = (
        f"{samples[-1]['hours'] * 60:,.0f} minutes, {result['days']:,.0f} simulated days in "
        f"{result['files']:,} files and batches, {result['subscribers']:,} subscribers, changes of "
        f"the store with every file. {verdict}: the last quarter's median is at most "
        f"{watching.ALLOWED} times that of the second, for every figure of the first table but the "
        f"last one, which depends on other load as well. Deliveries are {right}."
    )
    grown = (
        f"These grow by design. A delivery takes {samples[-1]['notes'] / deliveries:,.0f} bytes "
        "of the notification store; `prune` deletes old ones."
    )
    head = ("", "second quarter", "last quarter", "most", "growth per hour, second half", "flat")
    return "\n".join(
        [
            *opening("A long run", result, remark),
            *table(head, [row(trends[name], *about) for name, about in FIGURES.items()]),
            *("", grown, ""),
            *table(head[:-1], [row(trends[name], *about)[:-1] for name, about in GROWING.items()]),
            *("", "The series:", ""),
            *table(
                ("minute", "batches", *(about for about, _ in FIGURES.values())),
                map(series, samples),
            ),
            "",
        ]
    )


def row(trend: dict[str, Any], about: str, unit: tuple[float, str, str]) -> tuple[str, ...]:
    by, name, form = unit
    figures = (trend[key] / by for key in ("second", "last", "most", "an_hour"))
    return (
        about,
        *(f"{value:{form}} {name}".strip() for value in figures),
        "yes" if trend["flat"] else "NO",
    )


def series(sample: Sample) -> tuple[str, ...]:
    figures = (format(sample[name] / unit[0], unit[2]) for name, (_, unit) in FIGURES.items())
    return (f"{sample['hours'] * 60:.1f}", f"{sample['batches']:,}", *figures)


if __name__ == "__main__":
    main()
