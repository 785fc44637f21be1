"""Memory of every index as the system sees it, next to the index's own figure.

python bench/memory.py [--sizes 100000 1000000] [--kinds interval predicates] [--quick]

Each index is built in its own process, which stops at four points: ready (a small index was built,
so code is loaded), with the inputs, with inputs and index, and with the index alone. At each point
this process reads the other's proportional set size (PSS, /proc/<pid>/smaps_rollup), after it has
returned free memory. Linux only. Results go to bench/results/memory.json and memory.md.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
import predicates
from pages import figure, machine, opening, publish, table

from tidings.index import INDEXES
from tidings.index.boxes import BOX_INDEXES, box_index
from tidings.index.intervals import INTERVAL_INDEXES, interval_index
from tidings.lab.workloads.rps import boxes, intervals

DIMENSIONS, WARM = 8, 2000
LARGEST = {"op": 100_000, "threshold": 100_000, "intersection": 100_000}
"""Above this size, building takes minutes or many gigabytes."""


@dataclass(frozen=True)
class Kind:
    """A family of indexes: their inputs, how they are built, and the number of predicates."""

    names: Iterable[str]
    inputs: Callable[[int], Any]
    build: Callable[[str, Any], Any]
    predicates: Callable[[Any], int]


def interval_inputs(size: int) -> list[Any]:
    work = intervals(size, 1, 7)
    return [work.low, work.high, work.score]


def relaxed_inputs(size: int) -> list[Any]:
    work = boxes(size, DIMENSIONS, 1, 7)
    return [work.low, work.high, work.weight]


def exact_inputs(size: int) -> list[Any]:
    work = boxes(size, DIMENSIONS, 1, 7)
    return [work.low, work.high, work.score]


def conditions(name: str, wishes: Any) -> Any:
    """Return an index over conditions, after enough events for it to settle."""
    index = predicates.filled(INDEXES[name](), wishes)
    for event in predicates.events(20, 9):
        index.top(event, 1)
    if hasattr(index, "settle"):
        index.settle()
    return index


def of_matching(matching: str) -> list[str]:
    return [name for name, able in BOX_INDEXES.items() if matching in able and name != "auto"]


KINDS = {
    "interval": Kind(
        INTERVAL_INDEXES,
        interval_inputs,
        lambda name, given: interval_index(name, *given),
        lambda given: len(given[0]),
    ),
    "relaxed": Kind(
        of_matching("relaxed"),
        relaxed_inputs,
        lambda name, given: box_index(name, *given),
        lambda given: given[0].size,
    ),
    "exact": Kind(
        of_matching("exact"),
        exact_inputs,
        lambda name, given: box_index(name, *given),
        lambda given: given[0].size,
    ),
    "predicates": Kind(
        INDEXES,
        lambda size: predicates.subscriptions(size, 7),
        conditions,
        lambda wishes: sum(
            len(conj) for subscription in wishes for conj in subscription.conjunctions
        ),
    ),
}


def main() -> None:
    options = arguments()
    if options.child:
        kind, name, size = options.child
        child(KINDS[kind], name, int(size))
        return
    if not Path("/proc/self/smaps_rollup").exists():
        sys.exit("memory is read from /proc/<pid>/smaps_rollup, which exists only on Linux")
    result = {"machine": machine(), "dimensions": DIMENSIONS}
    result["rows"] = [
        seen(kind, name, size)
        for kind in options.kinds
        for size in options.sizes
        for name in KINDS[kind].names
        if name in (options.only or [name])
        if size <= LARGEST.get(name, size)
    ]
    publish("memory", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--only", nargs="+", help="names of indexes")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.sizes = options.sizes or ([10_000] if options.quick else [100_000, 1_000_000])
    return options


def child(kind: Kind, name: str, size: int) -> None:
    kind.build(name, kind.inputs(WARM))
    stop({})
    inputs = kind.inputs(size)
    stop({"predicates": kind.predicates(inputs)})
    index = kind.build(name, inputs)
    stop({"nbytes": getattr(index, "nbytes", None)})
    del inputs
    stop({})


def stop(told: dict[str, Any]) -> None:
    """Return free memory to the system, report, and wait to be measured."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    print(json.dumps(told), flush=True)
    sys.stdin.readline()


def seen(kind: str, name: str, size: int) -> dict[str, Any]:
    """Build one index in a new process, and measure it."""
    line = [sys.executable, __file__, "--child", kind, name, str(size)]
    told: dict[str, Any] = {}
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        points = [point(run, told) for _ in range(4)]
    if run.returncode:
        sys.exit(f"{kind} {name}: the building process failed")
    row = {"kind": kind, "name": name, "size": size, **told, **differences(points)}
    print(f"{kind} {name} {size:,}: {row['kept'] / size:,.1f} bytes", file=sys.stderr, flush=True)
    return row


def point(run: subprocess.Popen[str], told: dict[str, Any]) -> dict[str, int]:
    """Measure at one stop, and continue; the peak is reset there."""
    told |= json.loads(run.stdout.readline() or "{}")
    found = {**kilobytes(run.pid, "smaps_rollup"), **kilobytes(run.pid, "status")}
    Path(f"/proc/{run.pid}/clear_refs").write_text("5")
    run.stdin.write("\n")
    run.stdin.flush()
    return {key: found[key] * 1024 for key in ("Pss", "VmRSS", "VmHWM")}


def kilobytes(pid: int, file: str) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    pairs = (line.split() for line in lines)
    return {pair[0].rstrip(":"): int(pair[1]) for pair in pairs if pair[-1:] == ["kB"]}


def differences(points: list[dict[str, int]]) -> dict[str, int]:
    """Return the bytes between the stops: inputs, index next to them, index alone, peak."""
    ready, with_inputs, built, alone = points
    return {
        "inputs": with_inputs["Pss"] - ready["Pss"],
        "index": built["Pss"] - with_inputs["Pss"],
        "kept": alone["Pss"] - ready["Pss"],
        "peak": built["VmHWM"] - with_inputs["VmRSS"],
    }


HEAD = (
    "index",
    "nbytes",
    "next to its inputs",
    "per predicate",
    "alone, inputs released",
    "peak while building",
    "inputs",
)


def page(result: dict[str, Any]) -> str:
    lines = opening("Memory, seen from outside the process", result, "\n".join(REMARKS))
    for kind, size in dict.fromkeys((row["kind"], row["size"]) for row in result["rows"]):
        rows = [row for row in result["rows"] if (row["kind"], row["size"]) == (kind, size)]
        of = f", d = {result['dimensions']}" if kind in ("relaxed", "exact") else ""
        lines += [f"## {kind}, {size:,} subscriptions{of}", "", *table(HEAD, map(cells, rows)), ""]
    return "\n".join(lines)


REMARKS = (
    "Bytes per subscription. `nbytes` is the index's own figure; all else is the change of the",
    "process's proportional set size, read by another process. `per predicate` is that next to the",
    "inputs.",
    "",
    "Inputs are arrays, or `Subscription` objects, which the indexes over conditions keep. If the",
    "index alone is larger than next to its inputs, it keeps them. For small sizes the figures are",
    "imprecise, since memory is counted in pages.",
)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    each = {key: row[key] / row["size"] for key in ("inputs", "index", "kept", "peak")}
    each["nbytes"] = None if row["nbytes"] is None else row["nbytes"] / row["size"]
    each["predicate"] = row["index"] / row["predicates"]
    keys = ("nbytes", "index", "predicate", "kept", "peak", "inputs")
    return (row["name"], *(figure(each, key, ",.1f") for key in keys))


if __name__ == "__main__":
    main()
