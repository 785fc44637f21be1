"""Every index over several attributes, side by side in one run with numpy columns.

python bench/box.py [--cases relaxed-1000000-8 ...] [--quick]

Times are the best of several rounds, measured on the calling thread; ratios hold within one run.
Results go to bench/results/box.json and box.md, with the machine and the commit.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from interval import K, one_by_one
from pages import line, machine, opening, publish, ratio
from timing import OWN, least, per

from tidings.index.boxes import BOX_INDEXES, box_index
from tidings.lab.workloads.rps import WeightedBoxes, boxes, few_of_many

BATCH = 64
LARGEST = {"threshold": 800_000, "intersection": 3_200_000, "sparse": 8_000_000}
"""The largest number of predicates; the papers' methods are Python over compiled iterators."""


@dataclass(frozen=True)
class Case:
    """A kind of matching, n, d, the factor that shortens intervals, and the baseline."""

    kind: str
    size: int
    attributes: int
    shrink: float = 1.0
    bar: float | None = None
    about: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.size}-{self.attributes}"

    def work(self, size: int) -> WeightedBoxes:
        if self.kind == "sparse":
            return few_of_many(size, self.attributes, BATCH, 7)
        return boxes(size, self.attributes, BATCH, 7, shrink=self.shrink)

    def worth(self, work: WeightedBoxes) -> Any:
        if self.kind == "exact-paper":
            return work.score_paper
        return work.score if self.kind.startswith("exact") else work.weight


CASES = [
    *(Case("relaxed", 100_000, d) for d in (4, 8, 32)),
    Case("relaxed", 1_000_000, 4),
    Case("relaxed", 1_000_000, 8, bar=300),
    Case("relaxed", 1_000_000, 32, bar=80),
    Case("relaxed", 100_000, 100, bar=60),
    Case("sparse", 100_000, 300, about="2 to 8 of 300 attributes constrained, relaxed"),
    *(Case("exact", 100_000, d) for d in (4, 8, 32)),
    Case("exact", 1_000_000, 4),
    Case("exact", 1_000_000, 8, bar=1000, about="uniform scores, >= 20 match"),
    Case("exact", 1_000_000, 32),
    Case("exact-paper", 1_000_000, 8, about="the best scores have the shortest intervals"),
    Case("exact-few", 1_000_000, 8, shrink=5.0, bar=30, about="fewer than 20 match"),
]


def columns(array: Any) -> list[Any]:
    return [np.ascontiguousarray(column) for column in array.T]


class NumpyColumns:
    """A mask or a sum over all rows, column by column, then argpartition. Wrong for tied scores."""

    def __init__(self, low: Any, high: Any, worth: Any) -> None:
        self.low, self.high = columns(low), columns(high)
        self.worth = columns(worth) if worth.ndim == 2 else worth
        self.nbytes = low.nbytes + high.nbytes + worth.nbytes

    def top(self, row: Any, k: int) -> Any:
        if isinstance(self.worth, list):
            scores = np.zeros(len(self.low[0]))
            for low, high, weight, value in zip(self.low, self.high, self.worth, row, strict=True):
                scores += weight * ((low <= value) & (value <= high))
            return best(np.arange(len(scores)), scores, k)
        matches = np.ones(len(self.worth), np.bool_)
        for low, high, value in zip(self.low, self.high, row, strict=True):
            matches &= (low <= value) & (value <= high)
        ids = np.flatnonzero(matches)
        return best(ids, self.worth[ids], k)

    def top_many(self, rows: Any, k: int) -> Any:
        return [self.top(row, k) for row in rows]


class NumpySparse(NumpyColumns):
    """The same where an infinite interval stands for no predicate: its weight is set to 0."""

    def __init__(self, low: Any, high: Any, worth: Any) -> None:
        free = (low == -np.inf) & (high == np.inf)
        super().__init__(low, high, np.where(free, 0.0, worth))


def best(ids: Any, scores: Any, k: int) -> Any:
    if k < len(ids):
        some = np.argpartition(-scores, k)[:k]
        ids, scores = ids[some], scores[some]
    order = np.lexsort((ids, -scores))
    return ids[order], scores[order]


def main() -> None:
    options = arguments()
    result = {"machine": machine(), "k": K, "batch": BATCH}
    result["cases"] = [measured(case, options) for case in CASES if case.name in options.cases]
    publish("box", result, page, options)


def arguments() -> argparse.Namespace:
    names = [case.name for case in CASES]
    parser = pages.arguments(__doc__, "10,000 subscriptions, few rounds")
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.5, help="upper limit per figure")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 0.2
    return options


def measured(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Return one row per index; all answers are compared with those of the scan."""
    size = min(case.size, 10_000) if options.quick else case.size
    work, warm = case.work(size), case.work(200)
    worth = case.worth(work)
    scan = box_index("scan", work.low, work.high, worth)
    expected = [scan.top(event, K) for event in work.events[:8]]
    rows = []
    for name, make in makers(case, size).items():
        touch(make(warm.low, warm.high, case.worth(warm)), warm)
        started = time.perf_counter()
        index = make(work.low, work.high, worth)
        build = time.perf_counter() - started
        rows.append({"name": name, "build_s": build, **figures(index, work, expected, options)})
        print(f"{case.name} {name}: {rows[-1]['batch_us']:.1f} us", file=sys.stderr, flush=True)
        del index
    base = rows[0]
    for row in rows:
        for kind in ("single", "batch"):
            row[f"{kind}_ratio"] = base[f"{kind}_us"] / row[f"{kind}_us"]
    bar = None if options.quick else case.bar
    found = float(np.mean([len(ids) for ids, _ in expected]))
    return {
        "case": case.name,
        "size": size,
        "about": case.about,
        "bar": bar,
        "found": found,
        "rows": rows,
    }


def makers(case: Case, size: int) -> dict[str, Callable[..., Any]]:
    how = "exact" if case.kind.startswith("exact") else "relaxed"
    names = [name for name, kinds in BOX_INDEXES.items() if how in kinds and name != "scan"]
    names.remove("threshold" if case.kind == "sparse" else "auto")  # auto is blocks elsewhere
    predicates = size * (5 if case.kind == "sparse" else case.attributes)
    fitting = [name for name in names if predicates <= LARGEST.get(name, 1e12)]
    indexes = {name: lambda *boxes, name=name: box_index(name, *boxes) for name in fitting}
    numpy = NumpySparse if case.kind == "sparse" else NumpyColumns
    return {"numpy": numpy, **indexes}


def touch(index: Any, work: WeightedBoxes) -> None:
    """Compile the code that will be measured."""
    index.top(work.events[0], K)
    index.top_many(work.events[:5], K)


def figures(
    index: Any, work: WeightedBoxes, expected: list[Any], options: argparse.Namespace
) -> dict[str, Any]:
    once = least(lambda: index.top(work.events[0], K), 1, 0, OWN)
    some = work.events[: 2 if once > 0.2 else 4 if once > 2e-3 else BATCH]
    points = some[:16]
    single = least(lambda: one_by_one(index, points), options.rounds, options.seconds, OWN)
    batch = least(lambda: index.top_many(some, K), options.rounds, options.seconds, OWN)
    counts = index.counters() if hasattr(index, "counters") else {}
    answers = [index.top(event, K)[0].tolist() for event in some[: len(expected)]]
    right = [one == other.tolist() for one, (other, _) in zip(answers, expected, strict=False)]
    return {
        "bytes": index.nbytes / len(work.low),
        "single_us": per(points, single),
        "batch_us": per(some, batch),
        "looked": {kind: count / len(some) for kind, count in counts.items()},
        "right": float(np.mean(right)),
    }


def page(result: dict[str, Any]) -> str:
    remark = "`x numpy`: speed-up over numpy, column by column, in this run."
    lines = opening(f"Top {K} of subscriptions over several attributes", result, remark)
    for case in result["cases"]:
        kind, _, attributes = case["case"].rsplit("-", 2)
        lines += [f"## {kind}, {case['size']:,} subscriptions, d = {attributes}", ""]
        lines += [case["about"] + ".", ""] if case["about"] else []
        lines += table(case["rows"])
        lines += ["", f"{case['found']:.0f} found per event; {verdict(case)}", ""]
    return "\n".join(lines)


def verdict(case: dict[str, Any]) -> str:
    fastest = max(row["batch_ratio"] for row in case["rows"])
    if case["bar"] is None:
        return f"the fastest is {fastest:,.0f}x numpy."
    met = "met" if fastest >= case["bar"] else "not met"
    return f"the target is {case['bar']:,.0f}x numpy, the fastest {fastest:,.0f}x: {met}."


HEAD = (
    "index",
    "build s",
    "bytes/subscription",
    "us, single calls",
    "x numpy",
    f"us, {BATCH} per call",
    "x numpy",
    "examined per event",
    "right",
)


def table(rows: list[dict[str, Any]]) -> list[str]:
    return [line(HEAD), "|---" * len(HEAD) + "|", *(line(cells(row)) for row in rows)]


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        f"{row['build_s']:.2f}",
        f"{row['bytes']:,.0f}",
        f"{row['single_us']:,.1f}",
        ratio(row["single_ratio"]),
        f"{row['batch_us']:,.1f}",
        ratio(row["batch_ratio"]),
        ", ".join(f"{kind} {count:,.0f}" for kind, count in row["looked"].items()) or "-",
        f"{row['right']:.0%}",
    )


if __name__ == "__main__":
    main()
