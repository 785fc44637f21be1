"""The model of `tidings plan` next to runs that its calibration did not see.

python bench/capacity.py [--sizes 100000 1000000] [--matches 10 100] [--on 1 2 cluster]
    [--calibration costs.json] [--quick]

The calibration runs at up to 400,000 subscriptions on two cores; `--calibration` keeps it in a
file. Then the pipeline runs as a stream at each size on one core, on two, and on a standalone
cluster with two workers of one core, with 20,000 events per trigger, 1 subscriber for 5
subscriptions, and sliding(100) windows with k = 10. Processor time per trigger and events per
second are compared with the prediction for the windows as full as they are in the run. Results go
to bench/results/capacity.json and capacity.md.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import machine, opening, publish, table

import tidings.spark as ts
from tidings.lab.capacity.calibrate import CASES, FIRST, Case, Measurement, calibrate, measure
from tidings.lab.capacity.model import (
    Calibration,
    Costs,
    event_seconds,
    fixed_seconds,
    read_calibration,
)
from tidings.policy import Policy
from tidings.window.sliding import Sliding

POLICY = Policy(k=10, window=Sliding(100))
EVENTS, OWNED = 20_000, 5
CLUSTER = "cluster"
PLACES = {"1": "1 core", CLUSTER: "two workers"}
QUICK = (Case(2_500, 1_000, 5, 200), Case(20_000, 5_000, 50, 400))
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    if options.part:
        print(json.dumps(run_here(options)))
        return
    result: Row = {"machine": machine(), "events": options.events, "rows": []}
    with TemporaryDirectory() as folder:
        kept = options.calibration or Path(folder) / "costs.json"
        for where in options.on:
            # A session of Spark has its cores for good, so each has a process.
            result["rows"] += run_apart(options, where, kept)
        result["costs"] = read_calibration(json.loads(kept.read_text())).costs.to_dict()
    publish("capacity", result, page, options)


def run_here(options: argparse.Namespace) -> list[Row]:
    [where] = options.on
    with TemporaryDirectory() as folder, session(where, Path(folder) / "cluster") as cores:
        is_first = options.calibration.exists()  # a calibration has its own first run
        calibration = calibrated(options)
        if is_first:
            measure(FIRST, POLICY)
        rows = list[Row]()
        for size in options.sizes:
            for matches in options.matches:
                case = Case(size, size // OWNED, matches, options.events)
                row = compared(calibration.costs, measure(case, POLICY), cores)
                rows.append(row | {"on": where})
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


@contextmanager
def session(where: str, folder: Path) -> Iterator[int]:
    """Start Spark on some cores, or on a cluster with two workers; yield the number of cores."""
    if where != CLUSTER:
        ts.session("tidings-bench", cores=int(where))
        yield int(where)
        return
    tests = cluster_of_tests()
    with tests.swept(), tests.standalone(folder) as (address, _):
        settings = {**tests.EXECUTORS, **tests.LOOPBACK}
        spark = ts.session("tidings-bench", master=address, settings=settings)
        yield 2
        spark.stop()


def cluster_of_tests() -> Any:
    """Return the module that starts a cluster; an installed package `tests` would hide ours."""
    ours = ModuleType("tests")
    ours.__path__ = [str(Path(__file__).parent.parent / "tests")]
    sys.modules.setdefault("tests", ours)
    return import_module("tests.kill.cluster")


def calibrated(options: argparse.Namespace) -> Calibration:
    """Return the calibration in the file, or make one and write it."""
    if options.calibration.exists():
        return read_calibration(json.loads(options.calibration.read_text()))
    calibration, _ = calibrate(POLICY, QUICK if options.quick else CASES)
    options.calibration.write_text(json.dumps(calibration.to_dict()) + "\n")
    return calibration


def run_apart(options: argparse.Namespace, where: str, kept: Path) -> list[Row]:
    line = [sys.executable, __file__, "--part", "--json", "--events", str(options.events)]
    line += ["--calibration", str(kept), "--on", where] + ["--quick"] * options.quick
    for name, numbers in {"sizes": options.sizes, "matches": options.matches}.items():
        line += [f"--{name}", *map(str, numbers)]
    output = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout
    return list(json.loads(output))


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "3,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--on", nargs="+", default=["2", "1", CLUSTER], help="cores, or cluster")
    parser.add_argument("--calibration", type=Path, help="file to keep the costs in")
    parser.add_argument("--matches", type=int, nargs="+", default=[10, 100], help="per event")
    parser.add_argument("--events", type=int, default=EVENTS, help="per trigger")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.on, options.matches, options.events = [3_000], ["2"], [10], 100
    return options


def compared(costs: Costs, run: Measurement, cores: int) -> Row:
    case = run.case
    each = event_seconds(costs, case.subscriptions, case.matches, case.reached)
    seconds = fixed_seconds(costs, run.state_bytes) + case.events * each
    stored = case.subscribers * costs.subscriber_bytes + run.held * costs.held_bytes + run.id_bytes
    stored += run.held_events * costs.event_bytes
    return {
        "size": case.subscriptions,
        "matches": case.matches,
        "predicted_s": seconds,
        "measured_s": run.processor_s,
        "accuracy": seconds / run.processor_s,
        "predicted_per_s": case.events * cores * costs.overlap / seconds,
        "events_per_s": case.events / run.wall_s,
        "state_accuracy": stored / run.state_bytes,
        "index_accuracy": costs.index_bytes * case.subscriptions / run.index_bytes,
        "build_accuracy": costs.build_us * case.subscriptions / 1e6 / run.build_s,
    }


HEAD = (
    "subscriptions",
    "on",
    "matches per event",
    "predicted, processor s per trigger",
    "measured",
    "predicted / measured",
    "state, predicted / measured",
    "index, predicted / measured",
    "build, predicted / measured",
    "events/s, predicted",
    "measured",
)


def page(result: Row) -> str:
    remark = (
        f"A trigger has {result['events']:,} events. Costs are calibrated on two cores, at up to "
        "400,000 subscriptions. A cluster has two workers of one core each, under one master."
    )
    lines = [
        *opening("Predicted and measured capacity", result, remark),
        *table(HEAD, map(cells, result["rows"])),
        "",
    ]
    return "\n".join(lines)


def cells(row: Row) -> tuple[str, ...]:
    return (
        f"{row['size']:,}",
        PLACES.get(row["on"], f"{row['on']} cores"),
        f"{row['matches']:,}",
        f"{row['predicted_s']:.2f}",
        f"{row['measured_s']:.2f}",
        f"{row['accuracy']:.2f}",
        f"{row['state_accuracy']:.2f}",
        f"{row['index_accuracy']:.2f}",
        f"{row['build_accuracy']:.2f}",
        f"{row['predicted_per_s']:,.0f}",
        f"{row['events_per_s']:,.0f}",
    )


if __name__ == "__main__":
    main()
