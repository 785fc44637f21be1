"""The growth of query costs: with k over one attribute, and with the number d of attributes.

python bench/growth.py [--size 100000] [--quick]

Growth with the number of subscriptions is in the results of interval, box and predicates. Times are
the best of several rounds on the calling thread, many events per call. Results go to
bench/results/growth.json and growth.md.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from box import LARGEST, NumpyColumns
from interval import BATCH, maker
from pages import figure, machine, opening, publish, table
from timing import OWN, least, per

from tidings.index.boxes import BOX_INDEXES, box_index
from tidings.index.intervals import INTERVAL_INDEXES
from tidings.lab.workloads.rps import boxes, intervals

K, EVENTS = 20, 64
KS, DS = (1, 10, 20, 100, 1000), (1, 2, 4, 8, 16, 32, 64)
NAMES = ("numpy", *(name for name in INTERVAL_INDEXES if name != "auto"))
Times = dict[str, dict[int, float]]


def main() -> None:
    options = arguments()
    result = {"machine": machine(), "size": options.size, "k": K}
    result["over_k"] = over_k(options)
    for matching in ("relaxed", "exact"):
        result[f"{matching}_over_d"] = over_d(matching, options)
    publish("growth", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "5,000 subscriptions, few values of k and d")
    parser.add_argument("--size", type=int)
    parser.add_argument("--seconds", type=float, default=1.0, help="upper limit per figure")
    options = parser.parse_args()
    options.ks, options.ds = ((1, 20, 100), (1, 4)) if options.quick else (KS, DS)
    options.seconds = 0.05 if options.quick else options.seconds
    options.size = options.size or (5000 if options.quick else 100_000)
    return options


def over_k(options: argparse.Namespace) -> Times:
    """Return microseconds per query for every k, over one attribute."""
    work = intervals(options.size, BATCH, 7)
    times: Times = {}
    for name in NAMES:
        index = maker(name)(work)
        times[name] = {k: asked(index, work.queries, k, options) for k in options.ks}
        print(f"{name} over k: {times[name]}", file=sys.stderr)
    return times


def over_d(matching: str, options: argparse.Namespace) -> Times:
    """Return microseconds per event for every d; the papers' methods only while they are fast."""
    names = [name for name, able in BOX_INDEXES.items() if matching in able and name != "auto"]
    times: Times = {name: {} for name in ("numpy", *names)}
    for d in options.ds:
        work = boxes(options.size, d, EVENTS, 7)
        columns = (work.low, work.high, work.weight if matching == "relaxed" else work.score)
        for name in times:
            if options.size * d <= LARGEST.get(name, 1e12):
                index = NumpyColumns(*columns) if name == "numpy" else box_index(name, *columns)
                times[name][d] = asked(index, work.events, K, options)
        print(f"{matching}, d = {d}", file=sys.stderr)
    return times


def asked(index: Any, queries: Any, k: int, options: argparse.Namespace) -> float:
    index.top_many(queries[:2], k)
    once = least(lambda: index.top(queries[0], k), 2, options.seconds)
    some = queries[: max(2, min(len(queries), int(options.seconds / once / 3)))]
    return per(some, least(lambda: index.top_many(some, k), 10, options.seconds, OWN))


def page(result: dict[str, Any]) -> str:
    title = f"Growth of a query, {result['size']:,} subscriptions"
    lines = opening(title, result, "Microseconds per event, many events per call.")
    lines += ["## With k, over one attribute", "", *grown(result["over_k"], "k"), ""]
    for matching in ("relaxed", "exact"):
        lines += [f"## With d, {matching}, k = {result['k']}", ""]
        lines += [*grown(result[f"{matching}_over_d"], "d"), ""]
    return "\n".join(lines)


def grown(times_by_name: Times, letter: str) -> Iterable[str]:
    values = sorted({value for times in times_by_name.values() for value in times})
    head = ("index", *(f"{letter} = {value}" for value in values))
    return table(head, [(name, *row(times, values)) for name, times in times_by_name.items()])


def row(times: dict[int, float], values: list[int]) -> Iterable[str]:
    return (figure(times, value, ",.3f") for value in values)


if __name__ == "__main__":
    main()
