"""The model of `tidings plan` next to runs that its calibration did not see.

python bench/capacity.py [--sizes 100000 1000000] [--matches 10 100] [--on 1 2 cluster]
    [--calibration costs.json] [--runs runs.jsonl] [--quick]

The calibration runs at up to 400,000 subscriptions on two cores; `--calibration` keeps it in a
file. Then the pipeline runs as a stream at each size on one core, on two, and on a standalone
cluster with two workers of one core, with 20,000 events per trigger, 1 subscriber for 5
subscriptions, and sliding(100) windows with k = 10. Processor time per trigger and events per
second are compared with the prediction for the windows as full as they are in the run. `--runs`
keeps the runs in a file, so that several commands can share them: those that are in it are compared
and not repeated. Results go to bench/results/capacity.json and capacity.md.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import machine, opening, publish, table

import tidings.spark as ts
from tidings.lab.capacity.calibrate import CASES, FIRST, Case, Measurement, calibrate, measure
from tidings.lab.capacity.model import (
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
        run_here(options)
        return
    result: Row = {"machine": machine(), "events": options.events, "rows": []}
    with TemporaryDirectory() as folder:
        options.calibration = options.calibration or Path(folder) / "costs.json"
        options.runs = options.runs or Path(folder) / "runs.jsonl"
        for where in options.on:
            cases = missing(options, where)
            if cases or not options.calibration.exists():
                run_apart(options, where, cases)
        costs = read_calibration(json.loads(options.calibration.read_text())).costs
        result["costs"] = costs.to_dict()
        result["rows"] = [compared(costs, run) for run in runs_of(options.runs)]
    publish("capacity", result, page, options)


class Run(NamedTuple):
    """A case that was run, and where."""

    on: str
    measurement: Measurement

    @property
    def case(self) -> Case:
        return self.measurement.case


def runs_of(path: Path) -> list[Run]:
    """Return the runs in a file, in order of size, place and matches."""
    forms = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    runs = [
        Run(form["on"], Measurement(**{**form["run"], "case": Case(*form["run"]["case"])}))
        for form in forms
    ]
    return sorted(runs, key=lambda run: (run.case.subscriptions, run.on, run.case.matches))


def missing(options: argparse.Namespace, where: str) -> list[Case]:
    """Return the cases that are not in the file of runs."""
    cases = [
        Case(size, size // OWNED, matches, options.events)
        for size in options.sizes
        for matches in options.matches
    ]
    done = {(run.on, run.case) for run in runs_of(options.runs)}
    return [case for case in cases if (where, case) not in done]


def run_here(options: argparse.Namespace) -> None:
    """Calibrate unless that was done, run cases, and append each to the file of runs."""
    [where] = options.on
    cases = [Case(*form) for form in json.loads(options.part)]
    with TemporaryDirectory() as folder, session(where, Path(folder)):
        if options.calibration.exists():
            measure(FIRST, POLICY)
        else:  # which has its own first run
            calibration, _ = calibrate(POLICY, QUICK if options.quick else CASES)
            options.calibration.write_text(json.dumps(calibration.to_dict()) + "\n")
        for case in cases:
            form = {"on": where, "run": asdict(measure(case, POLICY))}
            with options.runs.open("a") as file:
                print(json.dumps(form), file=file)


@contextmanager
def session(where: str, folder: Path) -> Iterator[None]:
    """Start Spark on some cores, or on a cluster with two workers."""
    if where != CLUSTER:
        ts.session("tidings-bench", cores=int(where))
        yield
        return
    tests = cluster_of_tests()
    with tests.swept(), tests.standalone(folder / "cluster") as (address, _):
        settings = {**tests.EXECUTORS, **tests.LOOPBACK}
        spark = ts.session("tidings-bench", master=address, settings=settings)
        yield
        spark.stop()


def cluster_of_tests() -> Any:
    """Return the module that starts a cluster; an installed package `tests` would hide ours."""
    ours = ModuleType("tests")
    ours.__path__ = [str(Path(__file__).parent.parent / "tests")]
    sys.modules.setdefault("tests", ours)
    return import_module("tests.kill.cluster")


def run_apart(options: argparse.Namespace, where: str, cases: Sequence[Case]) -> None:
    """Run cases in a process of their own: a session of Spark has its cores for good."""
    line = [sys.executable, __file__, "--part", json.dumps(cases), "--on", where]
    for name in ("calibration", "runs"):
        line += [f"--{name}", str(getattr(options, name))]
    subprocess.run(line + ["--quick"] * options.quick, stdout=subprocess.DEVNULL, check=True)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "3,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--on", nargs="+", default=["2", "1", CLUSTER], help="cores, or cluster")
    parser.add_argument("--calibration", type=Path, help="file to keep the costs in")
    parser.add_argument("--matches", type=int, nargs="+", default=[10, 100], help="per event")
    parser.add_argument("--events", type=int, default=EVENTS, help="per trigger")
    parser.add_argument("--runs", type=Path, help="file to keep the runs in")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.on, options.matches, options.events = [3_000], ["2"], [10], 100
    return options


def compared(costs: Costs, at: Run) -> Row:
    run, case = at.measurement, at.case
    each = event_seconds(costs, case.subscriptions, case.matches, case.reached)
    seconds = fixed_seconds(costs, run.state_bytes) + case.events * each
    stored = case.subscribers * costs.subscriber_bytes + run.held * costs.held_bytes + run.id_bytes
    stored += run.held_events * costs.event_bytes
    return {
        "size": case.subscriptions,
        "on": at.on,
        "matches": case.matches,
        "predicted_s": seconds,
        "measured_s": run.processor_s,
        "accuracy": seconds / run.processor_s,
        "predicted_per_s": case.events * run.cores * costs.overlap / seconds,
        "events_per_s": case.events / run.wall_s,
        "state_accuracy": stored / run.state_bytes,
        "index_accuracy": costs.index_bytes * case.subscriptions / run.index_bytes,
        "build_accuracy": costs.build_us * case.subscriptions / 1e6 / run.build_s,
        "others": run.others_s / run.wall_s,
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
    "cores of others",
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
        f"{row['others']:.1f}",
    )


if __name__ == "__main__":
    main()
