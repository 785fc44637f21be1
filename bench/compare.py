"""Eight policies over one recording, next to each of them alone: what shared matching saves.

python bench/compare.py [--publications 100000] [--subscribers 1000] [--quick]

The films of the demo, repeated until there are enough, are published ten seconds apart to
subscribers with three subscriptions each. `tidings lab compare` runs as a user would run it, in a
process of its own, on Spark and without, with all files written; `replay` is its core in this
process, without reading and writing. Times are those of processors, which a busy machine changes
little; the figure is the time of all eight by that of the cheapest and of the median one alone.
Results go to bench/results/compare.json and compare.md.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pyarrow as pa
import pyarrow.parquet as pq
from pages import arguments, machine, opening, publish, table

from tidings.app.demo.movies import catalogue, publications
from tidings.lab.recording import Recording, read_recording
from tidings.lab.replay import replay
from tidings.lab.variants import read_variants
from tidings.model.values import SECOND_US

DAILY = {"name": "periodic", "length": "1d"}
POLICIES: dict[str, dict[str, Any]] = {
    "daily": {"k": 5, "window": DAILY},
    "twice-a-day": {"k": 3, "window": {"name": "periodic", "length": "12h"}},
    "different": {"k": 5, "window": DAILY, "diversify": {"name": "divrank", "sigma": 0.5}},
    "fresh": {"k": 5, "window": DAILY, "decay": {"name": "exponential", "rate": 1e-5}},
    "first-come": {"k": 5, "rules": [{"name": "quota", "n": 5, "per": "day", "pick": "first"}]},
    "quota": {"k": 5, "rules": [{"name": "quota", "n": 5, "per": "day"}]},
    "quiet": {"k": 5, "window": DAILY, "rules": [{"name": "quiet", "urgent": 0.95}]},
    "history": {"k": 5, "window": {"name": "history", "length": 200}},
}
# Runs a command and prints the processor time of all that it started. The Java of Spark and its
# workers outlive their parent: by call 36 of Linux's prctl.h, the timer becomes their next one.
TIMER = """
import ctypes, os, resource, subprocess, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1)
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
try:
    while True:
        os.waitpid(-1, 0)
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""
GENRES = ("action", "animation", "comedy", "documentary", "drama", "romance", "short")


def films(count: int) -> pa.Table:
    """Return this many films, ten seconds apart; the catalogue is repeated under other ids."""
    once = publications(catalogue(), min(count, 58_788))
    rounds = [once.slice(0, count - start) for start in range(0, count, len(once))]
    whole = pa.concat_tables(rounds)
    start_us = once["published_at"][0].value
    times = pa.array(
        [start_us + n * 10 * SECOND_US for n in range(count)], pa.timestamp("us", "UTC")
    )
    ids = pa.array([f"film-{number:06d}" for number in range(count)])
    whole = whole.set_column(0, "id", ids)
    return whole.set_column(whole.schema.get_field_index("published_at"), "published_at", times)


def subscriptions(people: int) -> list[dict[str, Any]]:
    rng = Random(7)
    return [
        {
            "id": f"s{person:05d}-{number}",
            "subscriber": f"u{person:05d}",
            "where": f"genre = '{rng.choice(GENRES)}' and year between {year} and {year + 5} "
            f"and rating >= {rng.randint(4, 8)}",
            "prefrank": rng.randint(1, 10) / 10,
        }
        for person in range(people)
        for number in range(3)
        for year in [rng.randint(1920, 2000)]
    ]


def command_s(folder: Path, engine: str, names: list[str]) -> float:
    """Return the processor time of `tidings lab compare` with some of the policies."""
    out = folder / f"out-{len(list(folder.iterdir()))}"
    policies = [f"--policy={folder / name}.json" for name in names]
    command = [sys.executable, "-m", "tidings.app.cli", "lab", "compare", f"--out={out}", *policies]
    command += [f"--engine={engine}", f"--publications={folder / 'films.parquet'}"]
    command += [f"--subscriptions={folder / 'subscriptions.jsonl'}"]
    timed = [sys.executable, "-c", TIMER, *command]
    return float(subprocess.run(timed, check=True, stdout=subprocess.PIPE, text=True).stdout)


def replay_s(recording: Recording, names: list[str]) -> float:
    variants = read_variants({name: POLICIES[name] for name in names})
    began = time.process_time()
    replay(recording, variants)
    return time.process_time() - began


def measure(count: int, people: int, rounds: int, engines: Sequence[str]) -> list[dict[str, Any]]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        events, owned = films(count), subscriptions(people)
        pq.write_table(events, folder / "films.parquet")
        lines = "".join(json.dumps(form) + "\n" for form in owned)
        (folder / "subscriptions.jsonl").write_text(lines)
        for name, form in POLICIES.items():
            (folder / f"{name}.json").write_text(json.dumps(form))
        recording, names = read_recording(events, owned), list(POLICIES)
        replay_s(recording.only(recording.subscribers[:2]), names)  # loads the kernels
        core = {name: min(replay_s(recording, [name]) for _ in range(rounds)) for name in names}
        # The cheapest and the median one alone: commands take too long to run all eight.
        cheapest, typical = min(core, key=core.__getitem__), sorted(core, key=core.__getitem__)[4]
        eight = min(replay_s(recording, names) for _ in range(rounds))
        rows = [row("replay", core[cheapest], core[typical], eight)]
        for engine in engines:
            times = [command_s(folder, engine, some) for some in ([cheapest], [typical], names)]
            rows.append(row(f"tidings lab compare --engine {engine}", *times))
        return rows


def row(way: str, cheapest: float, typical: float, eight: float) -> dict[str, Any]:
    return {
        "way": way,
        "cheapest_s": cheapest,
        "median_s": typical,
        "eight_s": eight,
        "cheapest_ratio": eight / cheapest,
        "median_ratio": eight / typical,
    }


def main() -> None:
    parser = arguments(__doc__, "2,000 publications and 20 subscribers, without Spark")
    parser.add_argument("--publications", type=int, default=100_000)
    parser.add_argument("--subscribers", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=1)
    options, about = parser.parse_args(), machine()
    if options.quick:
        options.publications, options.subscribers = 2_000, 20
    engines = ("local",) if options.quick else ("local", "spark")
    rows = measure(options.publications, options.subscribers, options.rounds, engines)
    sizes = {"publications": options.publications, "subscribers": options.subscribers}
    publish("compare", {"machine": about, **sizes, "rows": rows}, page, options)


def page(result: dict[str, Any]) -> str:
    remark = (
        f"{result['publications']:,} publications, {result['subscribers']:,} subscribers with "
        "three subscriptions each. The bar: eight policies take at most twice as long as one alone."
    )
    head = ("", "cheapest, CPU s", "median, CPU s", "eight, CPU s", "by cheapest", "by median")
    rows = [
        (each["way"], *(f"{each[name]:,.2f}" for name in list(each)[1:])) for each in result["rows"]
    ]
    lines = opening("Eight policies over one recording", result, remark)
    return "\n".join([*lines, *table(head, rows)])


if __name__ == "__main__":
    main()
