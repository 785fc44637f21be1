"""The k best subscriptions of an event through the engine, next to the indexes alone.

python bench/target.py [--sizes 100000 1000000] [--quick]

Subscriptions have 5 ranges on 20 attributes, each half as wide as the values are spread; top-20,
200 events a call. `boxes` is the box index alone, numbers in and numbers out; `access` is the index
over whole conditions, which the engine used for every event before it had boxes. `mixed` adds a
condition on a string to one subscription in four. Times are processor time, the best of several
rounds, in microseconds an event. Results go to bench/results/target.json and target.md.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from pages import machine, opening, publish, table
from timing import OWN, least

from tidings import Engine, Event, Subscription
from tidings.index.boxes import box_index
from tidings.model.conditions.predicate import Condition, predicate
from tidings.rank.target_index import ASKED

K, ATTRIBUTES, RANGES, CALL, ROUNDS, MIXED = 20, 20, 5, 200, 5, 4
Row = dict[str, Any]


class Work(NamedTuple):
    """Boxes with scores, and rows of values."""

    low: Any
    high: Any
    score: Any
    rows: Any


def main() -> None:
    wanted = arguments()
    result: Row = {"machine": machine()}
    result["rows"] = [
        measured(size, scorer, mixed=mixed)
        for size in wanted.sizes
        for scorer, mixed in (("exact", False), ("exact", True), ("relaxed", False))
    ]
    publish("target", result, page, wanted)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "3,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes = [3_000]
    return wanted


def work(size: int, seed: int = 7) -> Work:
    chance = np.random.default_rng(seed)
    low, high = np.full((size, ATTRIBUTES), -np.inf), np.full((size, ATTRIBUTES), np.inf)
    chosen = np.argsort(chance.random((size, ATTRIBUTES)), axis=1)[:, :RANGES]
    start = chance.random((size, RANGES)).round(6) * 0.5
    owner = np.arange(size)[:, None]
    low[owner, chosen], high[owner, chosen] = start, start + 0.5
    rows = chance.random((CALL, ATTRIBUTES))
    return Work(low, high, chance.random(size).round(6), rows)


def subscriptions(boxes: Work, *, mixed: bool) -> list[Subscription]:
    """Return boxes as subscriptions, whose ids are in their order."""
    found = []
    for number, (low, high) in enumerate(zip(boxes.low, boxes.high, strict=True)):
        columns = np.flatnonzero(low > -np.inf).tolist()
        bounds = [(float(low[each]), float(high[each])) for each in columns]
        parts = [
            predicate(f"a{each}", "between", bound)
            for each, bound in zip(columns, bounds, strict=True)
        ]
        if mixed and number % MIXED == 0:
            parts.append(predicate("word", "=", f"w{number % 1000}"))
        score = float(boxes.score[number])
        found.append(Subscription(f"s{number:07d}", "u", Condition((tuple(parts),)), score=score))
    return found


def measured(size: int, scorer: str, *, mixed: bool) -> Row:
    """Time the engine before and after it has boxes, and the box index alone."""
    boxes = work(size)
    engine = Engine(index="access", default_policy=None)
    engine.add_many(subscriptions(boxes, mixed=mixed))
    stream = events(boxes.rows)
    targets = engine._stages.matcher.targets  # noqa: SLF001 - it is waited for
    assert targets is not None
    row: Row = {"size": size, "scorer": scorer, "mixed": mixed}
    before, row["access_us"] = timed_call(lambda: targets.by_access(stream, K, scorer == "exact"))
    for _ in range(0, ASKED, CALL):
        engine.target_many(stream, K, scorer)
    engine.target_many(stream, K, scorer)
    targets.settle()
    after, row["engine_us"] = timed_call(lambda: engine.target_many(stream, K, scorer))
    row["one_us"] = timed_call(lambda: [engine.target(one, K, scorer) for one in stream])[1]
    worth = boxes.score if scorer == "exact" else np.where(boxes.low > -np.inf, 1.0, 0.0)
    index = box_index("auto", boxes.low, boxes.high, worth)
    _, row["boxes_us"] = timed_call(lambda: index.top_many(boxes.rows, K))
    row |= {"right": before == after, "about": str(targets.describe()[scorer != "exact"])}
    print(row, file=sys.stderr, flush=True)
    return row


def timed_call(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and its microseconds for each event."""
    return call(), least(call, ROUNDS, 20.0, OWN) / CALL * 1e6


def events(rows: Any) -> list[Event]:
    return [
        Event(
            f"e{number}",
            {f"a{column}": float(value) for column, value in enumerate(row)}
            | {"word": f"w{number}"},
            published_at=number,
        )
        for number, row in enumerate(rows)
    ]


HEAD = ("subscriptions", "scorer", "conditions", "access", "engine", "x access", "boxes", "x boxes")
MORE = ("one by one", "right")


def page(result: Row) -> str:
    remark = f"Microseconds an event; top-{K}, {CALL} events a call; processor time."
    lines = opening("Targets through the engine", result, remark)
    lines += table((*HEAD, *MORE), map(cells, result["rows"]))
    return "\n".join(
        [*lines, "", *(f"- {row['size']:,}: {row['about']}" for row in result["rows"])]
    )


def cells(row: Row) -> tuple[str, ...]:
    access, engine, boxes = (row[f"{name}_us"] for name in ("access", "engine", "boxes"))
    return (
        f"{row['size']:,}",
        row["scorer"],
        "mixed" if row["mixed"] else "ranges",
        f"{access:,.1f}",
        f"{engine:,.1f}",
        f"{access / engine:.1f}",
        f"{boxes:,.1f}",
        f"{engine / boxes:.1f}",
        f"{row['one_us']:,.1f}",
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
