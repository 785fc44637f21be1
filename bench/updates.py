"""The live index under change: updates a second, and what queries cost meanwhile.

python bench/updates.py [--sizes 100000 1000000] [--quick]

A round is some updates, a third each of inserts, deletes and new scores, which are drawn from all
scores, and then 1024 queries, asked also of a static index. Rounds are counted apart while a
rebuild is under way and while none is; figures are lower quartiles, since on a busy machine the
median is the scheduler's. At the end the static index is built anew from what is there then, and
both are asked again. Results go to bench/results/updates.json and updates.md.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from interval import BATCH, RESULTS, K, line, machine, timed
from rps import Workload, tiny, workload

from tidings.index.interval import interval_index
from tidings.index.interval.live import Live

WORKLOADS = {"rps": workload, "tiny": tiny}
SINGLE, UPDATES, SECONDS, TIMES = 12_000, 1023, 4.0, 15
COLUMNS = ("low", "high", "score")


def main() -> None:
    wanted = arguments()
    rows = [figures(name, size) for name in WORKLOADS for size in wanted.sizes]
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


def figures(name: str, size: int) -> dict[str, Any]:
    """All figures of one workload; the intervals to come are drawn with those that are there."""
    work = WORKLOADS[name](2 * size, BATCH, 7)
    rates(WORKLOADS[name](4000, BATCH, 7), 1000)  # compiles
    with Served(work) as served:
        row = {"workload": name, "size": size, "bytes": served.index.nbytes / size}
        row["meanwhile"] = meanwhile(served)
    return {**row, "rates": rates(work, SINGLE)}


class Served:
    """A live index, a static one of what was there at first, and what is there now."""

    def __init__(self, work: Workload) -> None:
        self.work, self.size = work, len(work.low) // 2
        self.rng, self.at = np.random.default_rng(5), self.size
        self.ids = np.arange(self.size)
        self.score = work.score.copy()
        self.index: Live = interval_index("live", *self.columns(self.ids))
        self.static = interval_index("sopt-r-64", *self.columns(self.ids))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close()

    def columns(self, rows: Any) -> tuple[Any, Any, Any]:
        return self.work.low[rows], self.work.high[rows], self.score[rows]

    def update(self, third: int) -> float:
        """Change three times as many; give the seconds that it took. Rows are numbered as ids."""
        new = np.arange(self.at, min(self.at + third, 2 * self.size))
        places = self.rng.choice(len(self.ids), 2 * third, replace=False)
        gone, scored = self.ids[places[:third]], self.ids[places[third:]]
        scores = self.rng.choice(self.work.score, len(scored))
        columns = self.columns(new)
        started = time.perf_counter()
        self.index.insert_many(*columns)
        self.index.delete_many(gone)
        self.index.rescore_many(scored, scores)
        seconds = time.perf_counter() - started
        self.score[scored] = scores
        self.ids = np.concatenate([np.delete(self.ids, places[:third]), new])
        self.at += len(new)
        return seconds


def meanwhile(served: Served) -> dict[str, Any]:
    """Rounds for some seconds of updating, as long as there are intervals to come."""
    ask = served.work.queries
    rounds: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    spent, count = 0.0, 0
    while spent < SECONDS and served.at + UPDATES // 3 < 2 * served.size:
        spent += served.update(UPDATES // 3)
        count += 3 * (UPDATES // 3)
        busy = "a rebuild is under way" in served.index.describe()
        ours = timed(lambda: served.index.top_many(ask, K))[1]
        theirs = timed(lambda: served.static.top_many(ask, K))[1]
        rounds[busy].append((ours, theirs))
    return {
        "updates_per_s": count / spent,
        "updates": count,
        "rebuilds": served.index.counters()["rebuilds"],
        "calm": summary(rounds[False]),
        "busy": summary(rounds[True]),
        "end": at_the_end(served),
    }


def summary(rounds: list[tuple[float, float]]) -> dict[str, float]:
    """The lower quartiles of both, and their ratio."""
    if not rounds:
        return {"rounds": 0, "live_us": float("nan"), "static_us": float("nan"), "ratio": 0.0}
    ours, theirs = np.quantile(np.array(rounds) / BATCH * 1e6, 0.25, axis=0).tolist()
    return {"rounds": len(rounds), "live_us": ours, "static_us": theirs, "ratio": ours / theirs}


def at_the_end(served: Served) -> dict[str, float]:
    """Ask a static index of the same contents: in batches and by one call each; then rebuilt."""
    served.index.settle()
    static = interval_index("sopt-r-64", *served.columns(served.ids))
    ask, single = served.work.queries, served.work.queries.tolist()
    found = {"many": ratio(lambda index: index.top_many(ask, K), served.index, static)}
    found["one"] = ratio(lambda index: [index.top(q, K) for q in single], served.index, static)
    served.index.rebuild()
    served.index.settle()
    found["rebuilt"] = ratio(lambda index: index.top_many(ask, K), served.index, static)
    return found


def ratio(ask: Callable[[Any], Any], ours: Any, theirs: Any) -> float:
    pairs = [[timed(lambda: ask(index))[1] for index in (ours, theirs)] for _ in range(TIMES)]  # noqa: B023
    best = np.array(pairs).min(axis=0)
    return float(best[0] / best[1])


def rates(work: Workload, count: int) -> dict[str, float]:
    """Updates a second with the rebuilds that they bring about: by one call each, 1024 a call."""
    with Served(work) as served:
        index, old = served.index, served.rng.permutation(served.size)[: 3 * count // 4]
        gone, scored, placed = np.array_split(old, 3)
        new = served.columns(np.arange(served.size, served.size + count))
        score = served.rng.choice(work.score, count)
        rows = list(zip(*(each.tolist() for each in new), strict=True))
        moved = list(zip(placed.tolist(), *(each.tolist() for each in new), strict=False))
        pairs = list(zip(scored.tolist(), score.tolist(), strict=False))
        found = {
            "insert": per_second(index.insert, rows),
            "delete": per_second(index.delete, [(each,) for each in gone.tolist()]),
            "rescore": per_second(index.rescore, pairs),
            "replace": per_second(index.replace, moved),
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
            calls = [tuple(each[part] for each in columns) for part in parts]
            found[name] = per_second(change, calls) * size / len(calls)
    return found


def per_second(change: Callable[..., Any], calls: list[tuple[Any, ...]]) -> float:
    return len(calls) / timed(lambda: [change(*each) for each in calls])[1]


def page(result: dict[str, Any]) -> str:
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = ["# The live index under change", "", about, ""]
    lines += [f"Updates a second, with the rebuilds they bring about; _many: {BATCH} a call.", ""]
    kinds = list(result["rows"][0]["rates"])
    lines += [line(("workload", "intervals", "bytes/interval", *kinds))]
    lines += ["|---" * (3 + len(kinds)) + "|"]
    for row in result["rows"]:
        head = (row["workload"], f"{row['size']:,}", f"{row['bytes']:.1f}")
        lines.append(line((*head, *(f"{row['rates'][kind]:,.0f}" for kind in kinds))))
    lines += ["", f"Rounds of {UPDATES} updates with any new scores and {BATCH} queries, k = {K}."]
    lines += ["Microseconds a query, lower quartiles; `x`: times the static `sopt-r-64` of the"]
    lines += ["intervals at first, in the same rounds; at the end of what is there then.", ""]
    head = ("workload", "intervals", "updates/s", "updates", "rebuilds", "quiet", "x")
    head += ("rebuilding", "x", "end x", "end, one call x", "rebuilt x")
    lines += [line(head), "|---" * len(head) + "|"]
    return "\n".join(lines + [line(cells(row, row["meanwhile"])) for row in result["rows"]])


def cells(row: dict[str, Any], each: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{each[key]:,.0f}" for key in ("updates_per_s", "updates", "rebuilds"))
    phases = (each["calm"], each["busy"])
    times = (f"{phase[key]:.2f}" for phase in phases for key in ("live_us", "ratio"))
    ends = (f"{each['end'][key]:.2f}" for key in ("many", "one", "rebuilt"))
    return (row["workload"], f"{row['size']:,}", *counts, *times, *ends)


if __name__ == "__main__":
    main()
