"""The k best subscriptions of an event through the engine, next to the indexes alone.

python bench/target.py [--sizes 100000 1000000] [--quick]

Subscriptions have 5 ranges on 20 attributes, each half as wide as the values are spread; top-20,
200 events a call. `boxes` is the box index alone, numbers in and numbers out; `access` is the index
over whole conditions, which the engine used for every event before it had boxes. `mixed` adds a
condition on a string to one subscription in four. `one attribute` has one range, and the top-K
table instead of the box index; `d = 8` and so on have a range on each of so many attributes, for
at most 5,000,000 ranges in all. `table` is `target_table`, Arrow in and Arrow out, 10,000 events a
call, and the ratio next to it is that to the index alone for as many. `stage` is the function that
Spark calls.
Times are processor time, the best of several rounds, in microseconds an event. Results go to
bench/results/target.json and target.md.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
import pyarrow as pa
from pages import figure, machine, opening, publish, table
from timing import OWN, least

from tidings import Engine, Event, Exact, Subscription
from tidings.formats.arrow import events_to_table
from tidings.index import box_index, interval_index
from tidings.index_files.base_files import build_folder
from tidings.index_files.mapped_matcher import REPAID
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.model.conditions.predicate import Condition, predicate
from tidings.rank.target_index import ASKED
from tidings.spark.match_stage.matcher_source import FolderSource
from tidings.spark.match_stage.results import TargetStage
from tidings.spark.publications import ReadColumns

K, CALL, MIXED, MOST_RANGES, MOST_STAGED = 20, 200, 4, 5_000_000, 100_000
Row = dict[str, Any]


class Effort(NamedTuple):
    """The rounds of each call, and the calls whose events are one table."""

    rounds: int = 5
    repeated: int = 50


class Case(NamedTuple):
    """What subscriptions ask for, and how they are scored."""

    name: str
    scorer: str
    attributes: int = 20
    ranges: int = 5


CASES = (
    Case("ranges", "exact"),
    Case("mixed", "exact"),
    Case("one attribute", "exact", 1, 1),
    Case("ranges", "relaxed"),
    *(Case(f"d = {count}", "relaxed", count, count) for count in (8, 32, 100)),
)


class Work(NamedTuple):
    """Boxes with scores, and rows of values."""

    low: Any
    high: Any
    score: Any
    rows: Any


def main() -> None:
    options = arguments()
    result: Row = {"machine": machine()}
    effort = Effort(rounds=1, repeated=2) if options.quick else Effort()
    result["rows"] = [
        measured(min(size, MOST_RANGES // case.ranges), case, effort)
        for size in options.sizes
        for case in CASES
    ]
    publish("target", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 subscriptions, one round")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args()
    if options.quick:
        options.sizes = [2_000]
    return options


def work(size: int, case: Case, seed: int = 7) -> Work:
    chance = np.random.default_rng(seed)
    shape = size, case.attributes
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    chosen = np.argsort(chance.random(shape), axis=1)[:, : case.ranges]
    start = chance.random((size, case.ranges)).round(6) * 0.5
    owner = np.arange(size)[:, None]
    low[owner, chosen], high[owner, chosen] = start, start + 0.5
    rows = chance.random((CALL, case.attributes))
    return Work(low, high, chance.random(size).round(6), rows)


def subscriptions(boxes: Work, *, mixed: bool) -> list[Subscription]:
    """Return boxes as subscriptions, whose ids are in their order."""
    found = []
    for number, (low, high) in enumerate(zip(boxes.low, boxes.high, strict=True)):
        columns = np.flatnonzero(low > -np.inf).tolist()
        bounds = [(float(low[column]), float(high[column])) for column in columns]
        parts = [
            predicate(f"a{each}", "between", bound)
            for each, bound in zip(columns, bounds, strict=True)
        ]
        if mixed and number % MIXED == 0:
            parts.append(predicate("word", "=", f"w{number % 1000}"))
        score = float(boxes.score[number])
        found.append(Subscription(f"s{number:07d}", "u", Condition((tuple(parts),)), score=score))
    return found


def measured(size: int, case: Case, effort: Effort) -> Row:
    """Time the engine before and after it has boxes, and the box index alone."""
    boxes, scorer, rounds = work(size, case), case.scorer, effort.rounds
    engine = Engine(index="access", default_policy=None)
    wishes = subscriptions(boxes, mixed=case.name == "mixed")
    engine.add_many(wishes)
    stream = events(boxes.rows)
    targets = engine._stages.matcher.targets  # noqa: SLF001 - it is waited for
    assert targets is not None
    row: Row = {"size": size, "scorer": scorer, "case": case.name}
    by_access = partial(targets.by_access, stream, K, scorer == "exact")
    before, row["access_us"] = timed_call(by_access, rounds)
    for _ in range(0, ASKED, CALL):
        engine.target_many(stream, K, scorer)
    engine.target_many(stream, K, scorer)
    targets.settle()
    after, row["engine_us"] = timed_call(lambda: engine.target_many(stream, K, scorer), rounds)
    one_by_one = timed_call(lambda: [engine.target(one, K, scorer) for one in stream], rounds)
    row["one_us"] = one_by_one[1]
    row["boxes_us"] = timed_call(alone(boxes, case), rounds)[1]
    row |= by_table(engine, boxes, stream, case, effort)
    row["right"] = row.pop("first") == after
    row["right"] &= before == after
    row |= {"about": str(targets.describe()[scorer != "exact"])}
    row["access_ratio"] = row["access_us"] / row["engine_us"]
    row["boxes_ratio"] = row["boxes_us"] / row["engine_us"]
    if case == CASES[0] and size <= MOST_STAGED:
        found, row["stage_us"] = staged(wishes, stream, rounds)
        row["right"] &= found == after
    print(row, file=sys.stderr, flush=True)
    return row


def by_table(
    engine: Engine, boxes: Work, stream: Sequence[Event], case: Case, effort: Effort
) -> Row:
    """Time tables of many events, next to the index alone for as many rows; return the first."""
    rounds, repeated = effort
    events = pa.concat_tables([events_to_table(stream)] * repeated).combine_chunks()
    found, seconds = timed_call(lambda: engine.target_table(events, K, case.scorer), rounds)
    first = found.slice(0, CALL).to_pylist()
    pairs = [[*zip(row["subscription"], row["score"], strict=True)] for row in first]
    many = boxes._replace(rows=np.tile(boxes.rows, (repeated, 1)))
    alone_us = timed_call(alone(many, case), rounds)[1] / repeated
    table_us = seconds / repeated
    return {"table_us": table_us, "table_ratio": table_us / alone_us, "first": pairs}


def alone(boxes: Work, case: Case) -> Callable[[], Any]:
    """Return a call of the numeric index, which gets and returns arrays."""
    if case.attributes == 1:
        table = interval_index("topk-table", boxes.low[:, 0], boxes.high[:, 0], boxes.score)
        return lambda: table.top_many(boxes.rows[:, 0], K)
    worth = boxes.score if case.scorer == "exact" else np.where(boxes.low > -np.inf, 1.0, 0.0)
    index = box_index("auto", boxes.low, boxes.high, worth)
    return lambda: index.top_many(boxes.rows, K)


def staged(
    wishes: Sequence[Subscription], stream: Sequence[Event], rounds: int
) -> tuple[Any, float]:
    """Return the targets that the function of Spark finds, and its microseconds an event."""
    (batch,) = events_to_table(stream).to_batches()
    with TemporaryDirectory() as path:
        folder = build_folder(Path(path), bundle_subscribers((), wishes))
        stage = TargetStage(FolderSource(folder, 1), ReadColumns(), K, Exact())
        for _ in range(0, len(wishes) // REPAID + ASKED, CALL):  # until there are boxes
            rows = [*stage.batches([batch])]
        seconds = least(lambda: [*stage.batches([batch])], rounds, 20.0, OWN)
        found: list[Any] = [[] for _ in stream]
        for row in pa.Table.from_batches(rows).to_pylist():
            found[int(row["event"][1:])].append((row["subscription"], row["score"]))
        return found, seconds / CALL * 1e6


def timed_call(call: Callable[[], Any], rounds: int) -> tuple[Any, float]:
    """Return the result of a call, and its microseconds for each event."""
    return call(), least(call, rounds, 20.0, OWN) / CALL * 1e6


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
MORE = ("table", "x boxes", "one by one", "stage", "right")


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
        row["case"],
        f"{access:,.1f}",
        f"{engine:,.2f}",
        f"{access / engine:.1f}",
        f"{boxes:,.2f}",
        f"{engine / boxes:.1f}",
        f"{row['table_us']:,.2f}",
        f"{row['table_ratio']:.1f}",
        f"{row['one_us']:,.1f}",
        figure(row, "stage_us", ",.1f"),
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
