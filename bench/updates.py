"""The live index under change: updates per second, and the cost of queries meanwhile.

python bench/updates.py [--sizes 100000 1000000] [--quick]

Times are those of the thread that updates and queries, on its core; rates are also given by the
wall clock, where they share the machine with the rebuilds. A round is a number of updates, a third
each of inserts, deletes and new scores, which are drawn from all scores, at 300,000 per second by
the wall clock or as many as possible, and then 1024 queries. Occasionally the state that readers
see is kept; later each is queried in turn with a static index of the same contents. States are
distinguished by whether a rebuild was in progress. Results go to bench/results/updates.json and
updates.md.
"""

import argparse
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from pages import figure, machine, opening, publish, table
from timing import OWN, WALL, timed

from tidings.index.intervals import interval_index
from tidings.index.intervals.kernels.delta_grid import LIVING
from tidings.index.intervals.live.index import LEAST, SHARE, LiveIntervals
from tidings.lab.workloads.rps import ScoredIntervals, intervals, short_intervals

WORKLOADS = {"rps": intervals, "tiny": short_intervals}
BATCH, K = 1024, 20
SINGLE, UPDATES, SECONDS, TIMES = 12_000, 1023, 3.0, 10
PACE = 300_000
"""Updates per second of wall time."""
KEPT = 10
"""The number of states that are kept."""


def main() -> None:
    options = arguments()
    result = {"machine": machine(), "k": K}
    result["rows"] = [figures(name, size) for name in WORKLOADS for size in options.sizes]
    publish("updates", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10,000 intervals")
    parser.add_argument("--sizes", type=int, nargs="+")
    options = parser.parse_args()
    options.sizes = options.sizes or ([10_000] if options.quick else [100_000, 1_000_000])
    return options


def figures(name: str, size: int) -> dict[str, Any]:
    """Return all figures of one workload; future intervals are drawn with the present ones."""
    work = WORKLOADS[name](2 * size, BATCH, 7)
    rates(WORKLOADS[name](4000, BATCH, 7), 1000)  # compiles
    with Served(work) as served:
        row = {"workload": name, "size": size, "bytes": served.index.nbytes / size}
        row["meanwhile"] = meanwhile(served)
    print(f"{name} {size:,}: {row['meanwhile']}", file=sys.stderr)
    return {**row, "rates": rates(work, min(SINGLE, size))}


class Served:
    """A live index, and its present contents."""

    def __init__(self, work: ScoredIntervals) -> None:
        self.work, self.size = work, len(work.low) // 2
        self.rng, self.at = np.random.default_rng(5), self.size
        self.ids = np.arange(self.size)
        self.score = work.score.copy()
        self.index: LiveIntervals = interval_index("live", *self.columns(self.ids))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close()

    def columns(self, rows: Any) -> tuple[Any, Any, Any]:
        return self.work.low[rows], self.work.high[rows], self.score[rows]

    @property
    def busy(self) -> bool:
        return "a rebuild is under way" in self.index.describe()

    def kept(self) -> tuple[dict[str, Any], Any, Any]:
        """Return the progress, the state that readers see, and its contents.

        The grid is copied, so that later additions do not interfere.
        """
        state = self.index._snapshot  # noqa: SLF001 - as a reader takes it
        changed = (int(state.grid.pool[LIVING]) + state.base.dead) / len(self.index)
        state = state._replace(grid=deepcopy(state.grid))
        return {"busy": self.busy, "changed": changed}, state, self.columns(self.ids)

    def update(self, third: int) -> tuple[float, float]:
        """Change three times as many; return the seconds by CPU time and by the wall clock."""
        new = np.arange(self.at, self.at + third)
        some = np.unique(self.rng.integers(0, len(self.ids), 3 * third))
        places = self.rng.permutation(some)[: 2 * third]
        gone, scored = self.ids[places[:third]], self.ids[places[third:]]
        scores = self.rng.choice(self.work.score, len(scored))
        columns = self.columns(new)
        own, wall = OWN(), WALL()
        self.index.insert_many(*columns)
        self.index.delete_many(gone)
        self.index.rescore_many(scored, scores)
        took = OWN() - own, WALL() - wall
        self.score[scored] = scores
        self.ids[places[:third]] = new
        self.at += len(new)
        return took


def meanwhile(served: Served) -> dict[str, Any]:
    """Run rounds for some seconds, as long as there are future intervals."""
    rounds: list[tuple[float, float]] = []
    asked: dict[bool, list[float]] = {True: [], False: []}
    most = min(PACE * SECONDS, 3 * served.size) / UPDATES
    kept, every, begun = [], max(1, int(most / KEPT)), WALL()
    calm = max(LEAST, served.size // SHARE) // UPDATES  # the last round before a rebuild
    while WALL() - begun < SECONDS and served.at + UPDATES // 3 < 2 * served.size:
        rounds.append(served.update(UPDATES // 3))
        asked[served.busy].append(
            timed(lambda: served.index.top_many(served.work.queries, K), OWN)[1]
        )
        if len(rounds) % every == 0 or len(rounds) == calm:
            kept.append(served.kept())
        time.sleep(max(0.0, begun + len(rounds) * UPDATES / PACE - WALL()))
    count, passed = len(rounds) * UPDATES, WALL() - begun
    own, wall = np.array(rounds).sum(axis=0).tolist()
    served.index.settle()
    figures = {"paced": count / passed, "own": count / own, "wall": count / wall, "updates": count}
    figures["rebuilds"] = served.index.counters()["rebuilds"]
    figures["states"] = [beside_static(served.work.queries, *each) for each in kept]
    return {**figures, "calm_us": quartile(asked[False]), "busy_us": quartile(asked[True])}


def beside_static(
    queries: Any, stands: dict[str, Any], state: Any, contents: Any
) -> dict[str, Any]:
    """Query a state and a static index of the same contents in turn."""
    static = interval_index("sopt-r-64", *contents)
    asks = (lambda: state.top_many(queries, K), lambda: static.top_many(queries, K))
    seconds = np.array([[timed(ask, OWN)[1] for ask in asks] for _ in range(TIMES)])
    ours, theirs = (seconds.min(axis=0) / len(queries) * 1e6).tolist()
    return {**stands, "live_us": ours, "static_us": theirs}


def quartile(seconds: list[float]) -> float | None:
    """Return microseconds per query, the lower quartile of the rounds."""
    return float(np.quantile(seconds, 0.25)) / BATCH * 1e6 if seconds else None


def rates(work: ScoredIntervals, count: int) -> dict[str, list[float]]:
    """Return updates per second with the rebuilds that they cause: single, and 1024 per call."""
    with Served(work) as served:
        index, old = served.index, served.rng.permutation(served.size)[: 3 * count // 4]
        gone, scored, placed = np.array_split(old, 3)
        new = served.columns(np.arange(served.size, served.size + count))
        score = served.rng.choice(work.score, count)
        rows = list(zip(*(each.tolist() for each in new), strict=True))
        moved = list(zip(placed.tolist(), *(each.tolist() for each in new), strict=False))
        pairs = list(zip(scored.tolist(), score.tolist(), strict=False))
        by_change = {
            "insert": per_second(index.insert, rows, count),
            "delete": per_second(index.delete, [(each,) for each in gone.tolist()], len(gone)),
            "rescore": per_second(index.rescore, pairs, len(pairs)),
            "replace": per_second(index.replace, moved, len(moved)),
        }
    with Served(work) as served:
        index = served.index
        several = (
            ("insert_many", index.insert_many, new),
            ("delete_many", index.delete_many, (gone,)),
            ("rescore_many", index.rescore_many, (scored, score)),
            ("replace_many", index.replace_many, (placed, *new)),
        )
        for name, change, columns in several:
            size = min(map(len, columns))
            parts = [slice(at, min(at + BATCH, size)) for at in range(0, size, BATCH)]
            calls = [tuple(column[part] for column in columns) for part in parts]
            by_change[name] = per_second(change, calls, size)
    return by_change


def per_second(change: Callable[..., Any], calls: list[tuple[Any, ...]], count: int) -> list[float]:
    """Return updates per second of the thread's CPU time, and by the wall clock."""
    own, wall = OWN(), WALL()
    for arguments in calls:
        change(*arguments)
    return [count / (OWN() - own), count / (WALL() - wall)]


def page(result: dict[str, Any]) -> str:
    rows = result["rows"]
    lines = opening(
        "The live index under change",
        result,
        "Updates per second of the writer's CPU time / wall time, with the rebuilds that they "
        f"cause; _many: {BATCH} per call.",
    )
    kinds = list(rows[0]["rates"])
    lines += table(("workload", "intervals", "bytes/interval", *kinds), map(rate_cells, rows))
    lines += [
        "",
        f"Rounds of {UPDATES} updates with random new scores, paced to {PACE:,} per second of",
    ]
    lines += [
        f"wall time, and {BATCH} queries, k = {K}. `own`, `wall`: the rates that the updates alone"
    ]
    lines += ["could reach. `us`: a query in the rounds, lower quartile, CPU time.", ""]
    head = ("workload", "intervals", "paced/s", "own/s", "wall/s", "updates", "rebuilds")
    lines += table((*head, "us, quiet", "us, rebuilding"), map(round_cells, rows))
    lines += ["", "States kept in these rounds, in turn with the static `sopt-r-64` of the same"]
    lines += ["contents, CPU time: `changed` counts tombstones and new intervals.", ""]
    head = ("workload", "intervals", "rebuilding", "changed", "live us", "static us", "x")
    lines += table(head, (cells for row in rows for cells in state_cells(row)))
    return "\n".join(lines)


def rate_cells(row: dict[str, Any]) -> tuple[str, ...]:
    head = (row["workload"], f"{row['size']:,}", f"{row['bytes']:.1f}")
    return (*head, *(f"{own:,.0f} / {wall:,.0f}" for own, wall in row["rates"].values()))


def round_cells(row: dict[str, Any]) -> tuple[str, ...]:
    figures = row["meanwhile"]
    counts = (f"{figures[key]:,.0f}" for key in ("paced", "own", "wall", "updates", "rebuilds"))
    times = (figure(figures, key) for key in ("calm_us", "busy_us"))
    return (row["workload"], f"{row['size']:,}", *counts, *times)


def state_cells(row: dict[str, Any]) -> list[tuple[str, ...]]:
    def cells(state: dict[str, Any]) -> tuple[str, ...]:
        times = (state["live_us"], state["static_us"], state["live_us"] / state["static_us"])
        busy = "yes" if state["busy"] else "no"
        changed = f"{state['changed']:.1%}"
        return (row["workload"], f"{row['size']:,}", busy, changed, *(f"{t:.2f}" for t in times))

    return [cells(state) for state in row["meanwhile"]["states"]]


if __name__ == "__main__":
    main()
