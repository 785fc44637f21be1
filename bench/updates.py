"""The live index under change: updates a second, and what queries cost meanwhile.

python bench/updates.py [--sizes 100000 1000000] [--quick]

A round is some updates (inserts, deletes and new scores alike) and then 1024 queries. Its figure is
the median over rounds, beside that of a static index asked in the same rounds: once as long as no
rebuild is under way, once while one is. Results go to bench/results/updates.json and updates.md.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from interval import BATCH, RESULTS, K, least, line, machine, timed
from rps import Workload, tiny, workload

from tidings.index.interval import interval_index
from tidings.index.interval.live import Live

WORKLOADS = {"rps": workload, "tiny": tiny}
UPDATES = (48, 1023)
"""Updates between two batches of queries."""

SINGLE, ROUNDS, NEVER = 12_000, 200, 10**9


def main() -> None:
    wanted = arguments()
    rows = [figures(name, size, wanted) for name in WORKLOADS for size in wanted.sizes]
    result = {"machine": machine(), "k": K, "rows": rows}
    text = page(result)
    print(text)
    (RESULTS / "updates.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "updates.md").write_text(text + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true", help="10,000 intervals")
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes = [10_000]
    return wanted


def figures(name: str, size: int, wanted: argparse.Namespace) -> dict[str, Any]:
    """All figures of one workload; the intervals to come are drawn with those that are there."""
    work = WORKLOADS[name](2 * size, BATCH, 7)
    there, coming = halves(work, size)
    compile_all(there)
    row: dict[str, Any] = {"workload": name, "size": size}
    row["build_s"] = timed(lambda: live(there))[1]
    row["bytes"] = live(there).nbytes / size
    row["rates"] = rates(there, coming)
    static = interval_index("sopt-r-64", there.low, there.high, there.score)
    table = interval_index("topk-table", there.low, there.high, there.score)
    row["table_us"] = least(lambda: table.top_many(work.queries, K), 20, 2) / BATCH * 1e6
    row["meanwhile"] = [meanwhile(there, coming, static, updates) for updates in UPDATES]
    return row


def halves(work: Workload, size: int) -> tuple[Workload, Workload]:
    return tuple(
        Workload(work.low[part], work.high[part], work.score[part], work.queries)
        for part in (slice(0, size), slice(size, 2 * size))
    )  # type: ignore[return-value]


def live(work: Workload, **options: Any) -> Live:
    return interval_index("live", work.low, work.high, work.score, **options)


def compile_all(work: Workload) -> None:
    small = Workload(work.low[:5000], work.high[:5000], work.score[:5000], work.queries)
    index = live(small, bound=NEVER)
    rates(small, small, count=600)
    for step in Changes(index, (small, small), 48, range(20)):
        index.top_many(step, K)
    index.settle()
    index.rebuild()
    index.settle()


def rates(there: Workload, coming: Workload, count: int = SINGLE) -> dict[str, float]:
    """Updates a second with the rebuilds that they bring about: by one call each, 1024 a call."""
    columns = [each[:count] for each in (coming.low, coming.high, coming.score)]
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    old = np.random.default_rng(3).permutation(len(there.low))
    gone, scored = old[: count // 3], old[count // 3 : 2 * (count // 3)]
    found = {}
    with live(there) as index:
        found["insert"] = len(rows) / timed(lambda: [index.insert(*row) for row in rows])[1]
        gone_list, scored_list = gone.tolist(), scored.tolist()
        found["delete"] = len(gone) / timed(lambda: [index.delete(id) for id in gone_list])[1]
        new = nearby(there.score[scored], np.random.default_rng(4)).tolist()
        pairs = list(zip(scored_list, new, strict=True))
        found["rescore"] = len(pairs) / timed(lambda: [index.rescore(*each) for each in pairs])[1]
    with live(there) as index:
        parts = [slice(at, at + 1024) for at in range(0, len(rows), 1024)]
        seconds = timed(lambda: [index.insert_many(*(c[p] for c in columns)) for p in parts])[1]
        found["insert_many"] = len(rows) / seconds
        seconds = timed(lambda: [index.delete_many(gone[p]) for p in parts])[1]
        found["delete_many"] = len(gone) / seconds
        score = there.score[scored]
        seconds = timed(lambda: [index.rescore_many(scored[p], score[p]) for p in parts])[1]
        found["rescore_many"] = len(scored) / seconds
    return found


class Changes:
    """Rounds of updates, a third of each kind; after each the queries are to be asked."""

    def __init__(self, index: Live, works: Any, updates: int, rounds: Any) -> None:
        there, coming = works
        self.index, self.coming, self.third = index, coming, updates // 3
        self.rounds, self.rng = rounds, np.random.default_rng(5)
        self.alive, self.score = np.arange(len(there.low)), there.score.copy()
        self.at = 0

    def __iter__(self) -> Iterator[Any]:
        for _ in self.rounds:
            self.update()
            yield self.coming.queries

    def update(self) -> None:
        some = (self.at + np.arange(self.third)) % len(self.coming.low)
        self.at += self.third
        new = self.index.insert_many(*(getattr(self.coming, c)[some] for c in COLUMNS))
        places = self.rng.choice(len(self.alive), 2 * self.third, replace=False)
        gone, scored = places[: self.third], places[self.third :]
        self.index.delete_many(self.alive[gone])
        self.score[scored] = nearby(self.score[scored], self.rng)
        self.index.rescore_many(self.alive[scored], self.score[scored])
        self.alive[gone], self.score[gone] = new, self.coming.score[some]


def nearby(score: Any, rng: np.random.Generator) -> Any:
    """New scores that keep what the workload says of scores and lengths: 1 - score is 10 % off."""
    return np.maximum(1 - (1 - score) * rng.uniform(0.9, 1.1, len(score)), 0)


COLUMNS = ("low", "high", "score")


def meanwhile(there: Workload, coming: Workload, static: Any, updates: int) -> dict[str, Any]:
    with live(there) as index:
        rounds = quiet(index, ROUNDS)
        calm = asked(index, static, Changes(index, (there, coming), updates, rounds))
    with live(there) as index:
        index.rebuild()
        busy = asked(index, static, Changes(index, (there, coming), updates, busy_rounds(index)))
    base = calm["static_us"]
    return {
        "updates": updates,
        "static_us": base,
        "calm": {**calm, "ratio": calm["live_us"] / base},
        "busy": {**busy, "ratio": busy["live_us"] / base},
    }


def quiet(index: Live, most: int) -> Iterator[int]:
    """Rounds without a rebuild: one that is due is waited for."""
    for each in range(most):
        index.settle()
        yield each


def busy_rounds(index: Live) -> Iterator[int]:
    """Rounds until the first rebuild is done."""
    while index.counters()["rebuilds"] == 0:
        yield 0


def asked(index: Live, static: Any, changes: Changes) -> dict[str, Any]:
    times: list[tuple[float, float]] = []
    spent, started = 0.0, time.perf_counter()
    for queries in changes:
        ours = timed(lambda: index.top_many(queries, K))[1]  # noqa: B023 - called at once
        theirs = timed(lambda: static.top_many(queries, K))[1]  # noqa: B023
        times.append((ours, theirs))
        spent += ours + theirs
    seconds = time.perf_counter() - started - spent
    if not times:
        return {"rounds": 0, "live_us": float("nan"), "static_us": float("nan")}
    ours, theirs = (np.array(each) / BATCH * 1e6 for each in zip(*times, strict=True))
    return {
        "rounds": len(times),
        "live_us": float(np.median(ours)),
        "live_p90_us": float(np.quantile(ours, 0.9)),
        "static_us": float(np.median(theirs)),
        "updates_per_s": 3 * changes.third * len(times) / seconds,
        "end": index.describe(),
    }


def page(result: dict[str, Any]) -> str:
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = ["# The live index under change", "", about, ""]
    lines += ["Updates a second, with the rebuilds that they bring about:", ""]
    kinds = list(result["rows"][0]["rates"])
    lines += [line(("workload", "intervals", "build s", "bytes/interval", *kinds))]
    lines += ["|---" * (4 + len(kinds)) + "|"]
    for row in result["rows"]:
        head = (row["workload"], f"{row['size']:,}", f"{row['build_s']:.2f}", f"{row['bytes']:.1f}")
        lines.append(line((*head, *(f"{row['rates'][kind]:,.0f}" for kind in kinds))))
    lines += ["", f"Microseconds a query, {BATCH} a call, k = {K}; medians of rounds. `x`: times"]
    lines += ["the static `sopt-r-64` of the rounds without a rebuild; `x same`: same ones.", ""]
    head = ("workload", "intervals", "updates a batch", "topk-table", "sopt-r-64", "live", "x")
    head += ("live, rebuilding", "x", "static meanwhile", "x same", "updates/s meanwhile")
    lines += [line(head), "|---" * len(head) + "|"]
    for row in result["rows"]:
        lines += [line(cells(row, each)) for each in row["meanwhile"]]
    return "\n".join(lines)


def cells(row: dict[str, Any], each: dict[str, Any]) -> tuple[str, ...]:
    calm, busy = each["calm"], each["busy"]
    figures = (row["table_us"], each["static_us"], calm["live_us"], calm["ratio"])
    figures += (busy["live_us"], busy["ratio"], busy["static_us"])
    figures += (busy["live_us"] / busy["static_us"],)
    texts = tuple(f"{figure:.3f}" for figure in figures)
    head = (row["workload"], f"{row['size']:,}", str(each["updates"]))
    return (*head, *texts, f"{busy.get('updates_per_s', float('nan')):,.0f}")


if __name__ == "__main__":
    main()
