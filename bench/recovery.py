"""Recovery: from kill -9 of a running pipeline to the next delivery in its store, in local mode.

python bench/recovery.py [--subscribers 100] [--rounds 5] [--quick]

A pipeline reads a file of events every second, chooses by sliding windows, and writes to an SQLite
store. In the middle of the stream, the driver and its Java process are killed, and the pipeline is
restarted at once, as a supervisor would do. The figure is the time until the store has more
deliveries than before. Results go to bench/results/recovery.json and recovery.md.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import Result, machine, opening, publish, table

from tidings import Event, Policy, Sliding, Subscriber, Subscription
from tidings.formats.files import write_events, write_subscribers, write_subscriptions
from tidings.spark import outcomes, session, store_sink
from tidings.store import open_store
from tidings.testing import GENRES

BAR_S, PATIENCE_S = 30, 300
POLICY = Policy(k=3, window=Sliding(20))


def main() -> None:
    options = arguments()
    if options.serve:
        serve(options.serve)
        return
    result: Result = {"machine": machine(), "subscribers": options.subscribers}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result["rounds"] = measure(Path(folder), options.subscribers, options.rounds)
    publish("recovery", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "one kill")
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


def serve(folder: Path) -> None:
    """Run the pipeline until it is killed."""
    reader = session("recovery").readStream.option("maxFilesPerTrigger", 4)
    lines = reader.text(str(folder / "in"))
    found = outcomes(lines, folder / "subscriptions.jsonl", folder / "subscribers.jsonl")
    (folder / "session").touch()
    writer = found.writeStream.foreachBatch(store_sink(str(folder / "store.db"), "recovery"))
    writer.option("checkpointLocation", str(folder / "check")).start().awaitTermination()


def measure(folder: Path, subscribers: int, rounds: int) -> list[dict[str, float]]:
    """Kill and restart repeatedly; return the seconds to the session and to a delivery."""
    lay(folder, subscribers)
    (folder / "in").mkdir()
    chance, times, stream = Random(7), [], Stream(folder)
    running = start(folder)
    try:
        stream.feed_until(lambda: delivered(folder) > 0)
        for _ in range(rounds):
            wanted = time.monotonic() + 2 + chance.random()
            stream.feed_until(lambda until=wanted: time.monotonic() > until)
            stop(running)
            before, began = delivered(folder), time.monotonic()
            running = start(folder)
            stream.feed_until((folder / "session").exists)
            ready_s = time.monotonic() - began
            stream.feed_until(lambda seen=before: delivered(folder) > seen)
            took_s = time.monotonic() - began
            spent_s = processor_s(running.pid)
            times.append({"session_s": ready_s, "delivery_s": took_s, "processor_s": spent_s})
    finally:
        stop(running)
    return times


def lay(folder: Path, subscribers: int) -> None:
    people = [Subscriber(f"u{n}", POLICY) for n in range(subscribers)]
    wishes = [
        Subscription(f"s{n}", f"u{n}", f"genre = '{GENRES[n % len(GENRES)]}' and year >= {n % 9}")
        for n in range(subscribers)
    ]
    write_subscribers(people, folder / "subscribers.jsonl")
    write_subscriptions(wishes, folder / "subscriptions.jsonl")


class Stream:
    """Files of events, each with a later time than the previous one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0

    def feed_until(self, true: Callable[[], bool]) -> None:
        """Write a file every second until a condition holds."""
        deadline, due = time.monotonic() + PATIENCE_S, 0.0
        while not true():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing arrived for {PATIENCE_S} s")
            if time.monotonic() >= due:
                self._write()
                due = time.monotonic() + 1
            time.sleep(0.01)

    def _write(self) -> None:
        self._files += 1
        events = [
            Event(f"e{self._files}-{n}", {"genre": genre, "year": n}, self._files * 10 + n)
            for n, genre in enumerate(GENRES)
        ]
        new = self._folder / f"{self._files}.jsonl"
        write_events(events, new)
        new.rename(self._folder / "in" / new.name)


def start(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "session").unlink(missing_ok=True)
    command = [sys.executable, __file__, "--serve", str(folder)]
    return subprocess.Popen(command, start_new_session=True)


def stop(running: subprocess.Popen[bytes]) -> None:
    """Kill the driver and its Java process at once; Python workers end with their Java process."""
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def processor_s(session: int) -> float:
    """Return the CPU time of all processes of a session, which other load changes little."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def delivered(folder: Path) -> int:
    """Return the number of deliveries."""
    if not (folder / "store.db").exists():
        return 0
    with open_store(folder / "store.db") as store:
        return int(store.database.read(lambda s: s.rows("SELECT count(*) FROM deliveries"))[0][0])


def page(result: Result) -> str:
    remark = (
        f"Seconds from kill -9 of the driver and its Java process, in the middle of a stream for "
        f"{result['subscribers']:,} subscribers, to the next delivery in the store; the target "
        f"is {BAR_S} s. The pipeline is restarted at once. On a busy machine, "
        "CPU time is more telling than wall time."
    )
    rounds = result["rounds"]
    times = {name: sorted(kill[name] for kill in rounds) for name in rounds[0]}
    rows = [
        (label, *(f"{seconds:.1f}" for seconds in (figures[0], median(figures), figures[-1])))
        for label, figures in (
            ("to a Spark session", times["session_s"]),
            ("to the next delivery", times["delivery_s"]),
            ("CPU time of all processes until then", times["processor_s"]),
        )
    ]
    head = (f"{len(rounds)} kills", "best", "median", "worst")
    return "\n".join([*opening("Recovery", result, remark), *table(head, rows)])


if __name__ == "__main__":
    main()
