"""The model of `tidings plan` next to runs that its calibration did not see.

python bench/capacity.py [--sizes 100000 1000000] [--cores 1 2] [--quick]

The calibration runs at up to 400,000 subscriptions. Then the pipeline runs as a stream at each
size, with 20,000 events per trigger, 1 subscriber for 5 subscriptions, and sliding(100) windows
with k = 10. Processor time per trigger and events per second are compared with the prediction for
the windows as full as they are in the run. Results go to bench/results/capacity.json and
capacity.md.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import machine, opening, publish, table

import tidings.spark as ts
from tidings.lab.capacity.calibrate import CASES, Case, Measurement, calibrate, measure
from tidings.lab.capacity.model import Costs, event_seconds, fixed_seconds
from tidings.policy import Policy
from tidings.window.sliding import Sliding

POLICY = Policy(k=10, window=Sliding(100))
EVENTS, OWNED = 20_000, 5
QUICK = (Case(2_500, 1_000, 5, 200), Case(20_000, 5_000, 50, 400))
Row = dict[str, Any]


def main() -> None:
    wanted = arguments()
    result: Row = {"machine": machine(), "costs": {}, "rows": []}
    for cores in wanted.cores:
        # A session of Spark has its number of cores for good, so each has a process.
        part = run_here(wanted) if len(wanted.cores) == 1 else run_apart(wanted, cores)
        result["costs"] |= part["costs"]
        result["rows"] += part["rows"]
    if wanted.part:
        print(json.dumps(result))
    else:
        publish("capacity", result, page, wanted)


def run_here(wanted: argparse.Namespace) -> Row:
    [cores] = wanted.cores
    ts.session("tidings-bench", cores=cores)
    costs, _ = calibrate(POLICY, QUICK if wanted.quick else CASES)
    rows = list[Row]()
    for size in wanted.sizes:
        for matches in wanted.matches:
            case = Case(size, size // OWNED, matches, wanted.events)
            rows.append(compared(costs, measure(case, POLICY)) | {"cores": cores})
            print(rows[-1], file=sys.stderr, flush=True)
    return {"costs": {str(cores): costs.to_dict()}, "rows": rows}


def run_apart(wanted: argparse.Namespace, cores: int) -> Row:
    options = {"sizes": wanted.sizes, "matches": wanted.matches, "cores": [cores]}
    line = [sys.executable, __file__, "--part", "--json", "--events", str(wanted.events)]
    for name, numbers in options.items():
        line += [f"--{name}", *map(str, numbers)]
    output = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(json.loads(output))


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "3,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--matches", type=int, nargs="+", default=[10, 100], help="per event")
    parser.add_argument("--events", type=int, default=EVENTS, help="per trigger")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes, wanted.cores, wanted.matches, wanted.events = [3_000], [2], [10], 100
    return wanted


def compared(costs: Costs, run: Measurement) -> Row:
    case = run.case
    each = event_seconds(costs, case.subscriptions, case.matches)
    seconds = fixed_seconds(costs, run.state_bytes) + case.events * each
    stored = case.subscribers * costs.subscriber_bytes + run.held * costs.held_bytes + run.id_bytes
    return {
        "size": case.subscriptions,
        "matches": case.matches,
        "predicted_s": seconds,
        "measured_s": run.processor_s,
        "ratio": seconds / run.processor_s,
        "events_per_s": case.events / run.wall_s,
        "state_ratio": stored / run.state_bytes,
        "index_ratio": costs.index_bytes * case.subscriptions / run.index_bytes,
        "build_ratio": costs.build_us * case.subscriptions / 1e6 / run.build_s,
    }


HEAD = (
    "subscriptions",
    "cores",
    "matches per event",
    "predicted, processor s per trigger",
    "measured",
    "predicted / measured",
    "state, predicted / measured",
    "index, predicted / measured",
    "build, predicted / measured",
    "events/s",
)


def page(result: Row) -> str:
    lines = [
        *opening("Predicted and measured capacity", result),
        "A trigger has 20,000 events. Costs are calibrated at up to 400,000 subscriptions.",
        "",
        *table(HEAD, map(cells, result["rows"])),
    ]
    return "\n".join(lines)


def cells(row: Row) -> tuple[str, ...]:
    return (
        f"{row['size']:,}",
        str(row["cores"]),
        f"{row['matches']:,}",
        f"{row['predicted_s']:.2f}",
        f"{row['measured_s']:.2f}",
        f"{row['ratio']:.2f}",
        f"{row['state_ratio']:.2f}",
        f"{row['index_ratio']:.2f}",
        f"{row['build_ratio']:.2f}",
        f"{row['events_per_s']:,.0f}",
    )


if __name__ == "__main__":
    main()
