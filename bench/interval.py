"""Every scored interval index and its peers, side by side in one run.

python bench/interval.py [--sizes 10000 100000 1000000] [--workload rps|tiny] [--quick]

Times are the best of several rounds, on one core and of the calling thread (and of the answering
process of PostgreSQL); ratios hold within one run. Slow competitors get few queries. Results go to
bench/results/interval.json and interval.md, with the machine and the commit.
"""

import argparse
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from pages import figure, machine, opening, publish, ratio, table
from peers import LARGEST, PEERS
from timing import OWN, least, per, timed

from tidings.index.intervals import INTERVAL_INDEXES, interval_index
from tidings.lab.workloads.rps import ScoredIntervals, intervals, short_intervals

BATCH, K = 1024, 20
BASES = ("numpy", "superintervals")
"""The baselines: measured before and after the others; the shorter time counts."""

WORKLOADS = {"rps": intervals, "tiny": short_intervals}
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    result = {"machine": machine(), "workload": options.workload, "k": K}
    result["left_out"] = left_out(options)
    result["sizes"] = {size: measured(size, options, result["left_out"]) for size in options.sizes}
    publish(
        "interval" if options.workload == "rps" else f"interval-{options.workload}",
        result,
        page,
        options,
    )


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10,000 intervals, few rounds")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--workload", choices=WORKLOADS, default="rps")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2.0, help="upper limit per figure")
    parser.add_argument("--only", nargs="+", help="names of indexes and peers")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 3, 0.3
    options.sizes = options.sizes or ([10_000] if options.quick else [10_000, 100_000, 1_000_000])
    return options


def names(options: argparse.Namespace) -> list[str]:
    every = [*PEERS, *INTERVAL_INDEXES]
    return [name for name in every if not options.only or name in options.only]


def left_out(options: argparse.Namespace) -> dict[str, str]:
    """Return the peers that are not installed or do not start, with the reason."""
    work, reasons = WORKLOADS[options.workload](200, 5, 8), {}
    for name in names(options):
        try:
            maker(name)(work)
        except ImportError as error:
            reasons[name] = str(error)
            print(left(name, str(error)), file=sys.stderr)
    return reasons


def left(name: str, why: str) -> str:
    return f"{name} is missing: {why}."


def measured(size: int, options: argparse.Namespace, missing: dict[str, str]) -> list[Row]:
    """Return one row per index and peer; all answers are compared with those of the scan."""
    work = WORKLOADS[options.workload](size, BATCH, 7)
    warm = WORKLOADS[options.workload](200, BATCH, 8)
    expected = interval_index("scan", work.low, work.high, work.score).top_many(work.queries, K)[0]
    rows = []
    for name in names(options):
        if name in missing or size > LARGEST.get(name, size):
            continue
        touch(maker(name)(warm), warm)
        rows.append({"name": name, **figures(maker(name), work, options, expected)})
        print(f"{size:,} {name}: {rows[-1]['batch_us']:.3f} us", file=sys.stderr)
    for row in rows:
        if row["name"] in BASES:
            again = figures(maker(row["name"]), work, options, expected)
            row |= {key: min(row[key], again[key]) for key in ("single_us", "batch_us")}
    return with_ratios(rows)


def maker(name: str) -> Callable[[ScoredIntervals], Any]:
    if name in PEERS:
        return lambda work: PEERS[name](work.low, work.high, work.score)
    return lambda work: interval_index(name, work.low, work.high, work.score)


def touch(index: Any, work: ScoredIntervals) -> None:
    """Compile the code that will be measured."""
    index.top(work.queries[0], K)
    index.top_many(work.queries, K)
    changes(index, work, count=10)


def figures(
    make: Callable[[ScoredIntervals], Any],
    work: ScoredIntervals,
    options: argparse.Namespace,
    expected: Any,
) -> Row:
    index, build = timed(lambda: make(work), OWN)
    clock = getattr(index, "clock", OWN)
    once = least(lambda: index.top(work.queries[0], K), 1, 0)
    some = work.queries[: 3 if once > 0.05 else 8 if once > 1e-4 else BATCH]
    points = some[:200].tolist()
    single = least(lambda: one_by_one(index, points), options.rounds, options.seconds, clock)
    batch = least(lambda: index.top_many(some, K), options.rounds, options.seconds, clock)
    return {
        "build_s": getattr(index, "build_s", build),
        "bytes": index.nbytes / len(work.low) or None,
        "right": agrees(index, some, expected),
        "single_us": per(points, single),
        "batch_us": per(some, batch),
        **({"about": index.about} if hasattr(index, "about") else {}),
        **iterator(index, points, options.rounds),
        **changes(index, work),
    }


def iterator(index: Any, points: list[float], rounds: int) -> dict[str, float]:
    """Return microseconds for the first K results of an iterator, one at a time."""
    if not hasattr(index, "iterate"):
        return {}
    best = least(lambda: [list(islice(index.iterate(q), K)) for q in points], rounds, 1, OWN)
    return {"iterate_us": per(points, best)}


def one_by_one(index: Any, points: list[float]) -> None:
    for q in points:
        index.top(q, K)


def agrees(index: Any, qs: Any, expected: Any) -> float:
    """Return the share of queries with the scan's answer; peers on integers may miss some."""
    rows = [row[row >= 0].tolist() for row in expected[: len(qs)]]
    answers = [index.top(q, K).tolist() for q in qs]
    return float(np.mean([one == other for one, other in zip(answers, rows, strict=True)]))


def changes(index: Any, work: ScoredIntervals, count: int = 50_000) -> dict[str, float]:
    """Return updates per second, with one Python call each, and with 1024 per call."""
    if getattr(index, "name", "") not in ("ir", "live"):
        return {}
    columns = [each[:count] for each in (work.low, work.high, work.score)]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    parts = [[column[at : at + BATCH] for column in columns] for at in range(0, len(rows), BATCH)]
    new, insert = timed(lambda: [index.insert(*row) for row in rows])
    _, rescore = timed(lambda: [index.rescore(each, 0.5) for each in new])
    _, delete = timed(lambda: [index.delete(each) for each in new])
    many, insert_many = timed(lambda: [index.insert_many(*part) for part in parts])
    _, delete_many = timed(lambda: [index.delete_many(each) for each in many])
    kinds = {"insert": insert, "rescore": rescore, "delete": delete}
    kinds |= {"insert_many": insert_many, "delete_many": delete_many}
    return {f"{kind}_per_s": len(rows) / seconds for kind, seconds in kinds.items()}


def with_ratios(rows: list[Row]) -> list[Row]:
    """Add the speed-up over each baseline, for single calls and for batches."""
    bases = [row for row in rows if row["name"] in BASES]
    for row in rows:
        for kind in ("single", "batch"):
            row[f"{kind}_ratio"] = {
                base["name"]: base[f"{kind}_us"] / row[f"{kind}_us"] for base in bases
            }
    return rows


def page(result: Row) -> str:
    remark = "`x numpy`: speed-up over numpy's mask and argpartition in this run; `x super`: over"
    remark += (
        "\nall stabs of superintervals, sorted. Both are measured before and after the others."
    )
    missing = [left(name, why) for name, why in result["left_out"].items()]
    title = f"Top {K} of scored intervals, workload {result['workload']}"
    lines = opening(title, result, remark, *missing)
    for size, rows in result["sizes"].items():
        lines += [f"## {size:,} intervals", "", *table(HEAD, map(cells, rows)), "", *notes(rows)]
    return "\n".join([*lines, *growth(result["sizes"])])


HEAD = (
    "index",
    "build s",
    "bytes/interval",
    "us, single calls",
    "x numpy",
    f"us, {BATCH} per call",
    "x numpy",
    "x super",
    f"us, iterator to {K}",
    "right",
)


def cells(row: Row) -> tuple[str, ...]:
    return (
        row["name"],
        f"{row['build_s']:.2f}",
        figure(row, "bytes", ".1f"),
        f"{row['single_us']:.2f}",
        times(row["single_ratio"].get("numpy")),
        f"{row['batch_us']:.3f}",
        *(times(row["batch_ratio"].get(base)) for base in BASES),
        figure(row, "iterate_us", ".2f"),
        f"{row['right']:.1%}",
    )


def times(factor: float | None) -> str:
    return "-" if factor is None else ratio(factor)


def notes(rows: list[Row]) -> list[str]:
    """Return figures without a column: updates per second, and the plans of peers."""
    lines = []
    for row in rows:
        rates = {key[:-6]: value for key, value in row.items() if key.endswith("_per_s")}
        listed = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in rates.items())
        lines += [f"{row['name']}, updates per second: {listed}.", ""] if rates else []
        lines += [f"{row['name']}: {row['about']}.", ""] if "about" in row else []
    return lines


def growth(sizes: dict[int, list[Row]]) -> list[str]:
    """Return the cost of a query at every size, and its growth from the last size but one."""
    if len(sizes) < 2:
        return []
    by_size = [{row["name"]: row["batch_us"] for row in rows} for rows in sizes.values()]
    every = dict.fromkeys(name for by_name in by_size for name in by_name)
    head = ("index", *(f"us at {size:,}" for size in sizes), "last / previous")
    rows = [
        (
            name,
            *(figure(by_name, name, ",.3f") for by_name in by_size),
            times(last(by_size, name)),
        )
        for name in every
    ]
    return ["## Growth", "", f"Microseconds per query, {BATCH} per call.", "", *table(head, rows)]


def last(by_size: list[dict[str, float]], name: str) -> float | None:
    before, now = (by_name.get(name) for by_name in by_size[-2:])
    return now / before if before and now else None


if __name__ == "__main__":
    main()
