"""Every scored interval index and its peers, side by side in one run.

python bench/interval.py [--sizes 10000 100000 1000000] [--workload rps|tiny] [--quick]

Times are the least of several rounds on one core; ratios hold inside one run. Results go to
bench/results/interval.json and interval.md, with the machine and the commit.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from peers import LARGEST, PEERS
from rps import Workload, tiny, workload

from tidings.index.interval import INTERVAL_INDEXES, interval_index

BATCH, K = 1024, 20
RESULTS = Path(__file__).parent / "results"
WORKLOADS = {"rps": workload, "tiny": tiny}


def main() -> None:
    wanted = arguments()
    tables = {size: measured(size, wanted) for size in wanted.sizes}
    result = {"machine": machine(), "workload": wanted.workload, "k": K, "sizes": tables}
    text = page(result)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    name = "interval" if wanted.workload == "rps" else f"interval-{wanted.workload}"
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text(text + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--workload", choices=WORKLOADS, default="rps")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2.0, help="at most, for one figure")
    parser.add_argument("--only", nargs="+", help="names of indexes and peers")
    parser.add_argument("--quick", action="store_true", help="10,000 intervals, few rounds")
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes, wanted.rounds, wanted.seconds = [10_000], 3, 0.3
    return wanted


def measured(size: int, wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """One row per index and peer; all answers are compared with the scan's."""
    work = WORKLOADS[wanted.workload](size, BATCH, 7)
    warm = WORKLOADS[wanted.workload](200, BATCH, 8)
    makers = {name: maker(name) for name in (*PEERS, *INTERVAL_INDEXES)}
    expected = interval_index("scan", work.low, work.high, work.score).top_many(work.queries, K)[0]
    rows = []
    for name, make in makers.items():
        if size > LARGEST.get(name, size) or (wanted.only and name not in wanted.only):
            continue
        try:
            touch(make(warm), warm)
        except ImportError:
            continue
        rows.append({"name": name, **figures(make, work, wanted, expected)})
        print(f"{size:,} {name}: {rows[-1]['batch_us']:.3f} us", file=sys.stderr)
    return with_ratios(rows)


def maker(name: str) -> Callable[[Workload], Any]:
    if name in PEERS:
        return lambda work: PEERS[name](work.low, work.high, work.score)
    return lambda work: interval_index(name, work.low, work.high, work.score)


def touch(index: Any, work: Workload) -> None:
    """Compile what will be measured."""
    index.top(work.queries[0], K)
    index.top_many(work.queries, K)
    changes(index, work, count=10)


def figures(
    make: Callable[[Workload], Any], work: Workload, wanted: argparse.Namespace, expected: Any
) -> dict[str, Any]:
    started = time.perf_counter()
    index = make(work)
    build = time.perf_counter() - started
    slow = least(lambda: index.top(work.queries[0], K), 1, 0) > 1e-4
    some = work.queries[:8] if slow else work.queries
    points = some[:200].tolist()
    single = least(lambda: one_by_one(index, points), wanted.rounds, wanted.seconds)
    batch = least(lambda: index.top_many(some, K), wanted.rounds, wanted.seconds)
    return {
        "build_s": build,
        "bytes": index.nbytes / len(work.low),
        "right": agrees(index, some, expected),
        "single_us": per(points, single),
        "batch_us": per(some, batch),
        **iterator(index, points, wanted),
        **changes(index, work),
    }


def iterator(index: Any, points: list[float], wanted: argparse.Namespace) -> dict[str, float]:
    """Microseconds for the first K of an iterator, one after the other."""
    if not hasattr(index, "iterate"):
        return {}
    best = least(lambda: [list(islice(index.iterate(q), K)) for q in points], wanted.rounds, 1)
    return {"iterate_us": per(points, best)}


def one_by_one(index: Any, points: list[float]) -> None:
    for q in points:
        index.top(q, K)


def least(call: Callable[[], Any], rounds: int, seconds: float) -> float:
    """The least time of a call in some rounds, which end early when they take too long."""
    best, spent = float("inf"), 0.0
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        took = time.perf_counter() - started
        best, spent = min(best, took), spent + took
        if spent > seconds:
            break
    return best


def per(items: Any, seconds: float) -> float:
    return seconds / len(items) * 1e6


def agrees(index: Any, qs: Any, expected: Any) -> float:
    """The share of queries with the scan's answer; peers on integers may miss some."""
    rows = [row[row >= 0].tolist() for row in expected[: len(qs)]]
    found = [index.top(q, K).tolist() for q in qs]
    return float(np.mean([one == other for one, other in zip(found, rows, strict=True)]))


def changes(index: Any, work: Workload, count: int = 50_000) -> dict[str, float]:
    """Updates a second, one Python call each, and 1024 a call."""
    if getattr(index, "name", "") not in ("ir", "live"):
        return {}
    columns = [each[:count] for each in (work.low, work.high, work.score)]
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    parts = [[each[at : at + BATCH] for each in columns] for at in range(0, len(rows), BATCH)]
    new, insert = timed(lambda: [index.insert(*row) for row in rows])
    _, rescore = timed(lambda: [index.rescore(each, 0.5) for each in new])
    _, delete = timed(lambda: [index.delete(each) for each in new])
    many, insert_many = timed(lambda: [index.insert_many(*part) for part in parts])
    _, delete_many = timed(lambda: [index.delete_many(each) for each in many])
    kinds = {"insert": insert, "rescore": rescore, "delete": delete}
    kinds |= {"insert_many": insert_many, "delete_many": delete_many}
    return {f"{kind}_per_s": len(rows) / seconds for kind, seconds in kinds.items()}


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    base = {row["name"]: row for row in rows}.get("numpy")
    for row in rows:
        for kind in ("single", "batch"):
            row[f"{kind}_ratio"] = base[f"{kind}_us"] / row[f"{kind}_us"] if base else float("nan")
    return rows


def machine() -> dict[str, Any]:
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    ).stdout.strip()
    return {
        "cpu": cpus[0].split(":")[1].strip() if cpus else platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "commit": commit,
    }


def page(result: dict[str, Any]) -> str:
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = [f"# Top {K} of scored intervals, workload {result['workload']}", "", about, ""]
    lines += ["`x numpy`: times faster than numpy's mask and argpartition in this run.", ""]
    for size, rows in result["sizes"].items():
        lines += [f"## {size:,} intervals", "", *table(rows), ""]
    return "\n".join(lines)


HEAD = (
    "index",
    "build s",
    "bytes/interval",
    "us, one call each",
    "x numpy",
    f"us, {BATCH} a call",
    "x numpy",
    f"us, iterator to {K}",
    "right",
)


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [line(HEAD), "|---" * len(HEAD) + "|"]
    lines += [line(cells(row)) for row in rows]
    for row in rows:
        rates = {key[:-6]: value for key, value in row.items() if key.endswith("_per_s")}
        each = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in rates.items())
        lines += ["", f"{row['name']}, updates a second: {each}."] if rates else []
    return lines


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        f"{row['build_s']:.2f}",
        f"{row['bytes']:.1f}" if row["bytes"] else "-",
        f"{row['single_us']:.2f}",
        ratio(row["single_ratio"]),
        f"{row['batch_us']:.3f}",
        ratio(row["batch_ratio"]),
        f"{row['iterate_us']:.2f}" if "iterate_us" in row else "-",
        f"{row['right']:.1%}",
    )


def ratio(times: float) -> str:
    return f"{times:.2g}" if times < 10 else f"{times:,.0f}"


def line(texts: tuple[str, ...]) -> str:
    return "| " + " | ".join(texts) + " |"


if __name__ == "__main__":
    main()
