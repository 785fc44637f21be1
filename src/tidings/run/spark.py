"""Runs a config on Spark, going on where its last run stopped."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tidings.model import Delivery
from tidings.run.account import Batch
from tidings.run.folder import CHECKPOINT, Folder, Form
from tidings.run.plan import Plan
from tidings.spark import outcomes, parquet_sink, session
from tidings.spark.stream import Write, count, follow, read_stream, start
from tidings.values import time_us

Counts = Mapping[tuple[str, str | None], int]


def run_spark(plan: Plan) -> Iterator[Batch]:
    """Run all files that are new; give what came of each batch when it is written."""
    found = outcomes(
        read_stream(session(), plan.config.source),
        plan.subscriptions,
        plan.subscribers,
        lateness=plan.config.lateness,
        buckets=plan.config.buckets,
    )
    counts: dict[int, Counts] = {}
    query = start(found, _sink(plan.folder, counts), plan.folder.path / CHECKPOINT)
    for number, events in follow(query):
        yield _batch(number, events, counts.pop(number))


def _sink(folder: Folder, counts: dict[int, Counts]) -> Write:
    """Give a sink that also counts: Parquet is written by Spark, JSON Lines by this process."""

    def note(number: int, batch: Any) -> None:
        counts[number] = count(batch)

    def lines(batch: Any, number: int) -> None:
        rows = batch.toArrow().to_pylist()
        counts[number] = write_lines(folder, number, rows)

    return lines if folder.format == "jsonl" else parquet_sink(folder.path, note)


def write_lines(folder: Folder, number: int, rows: list[Form]) -> Counts:
    """Write the outcomes of a batch in the forms of a local run, and count them."""
    kinds: dict[str, list[Form]] = {"delivery": [], "late": [], "dead": [], "account": []}
    for row in rows:
        kinds[row["kind"]].append(row)
    late = {row["event"]: _late(row) for row in kinds["late"]}
    folder.write_deliveries(number, [_delivery(row) for row in kinds["delivery"]])
    folder.write_letters("late", number, list(late.values()))
    folder.write_letters("dead_letters", number, [_dead(row) for row in kinds["dead"]])
    delivered = Counter(row["subscriber"] for row in kinds["delivery"])
    counts: Counts = {("delivery", name): number for name, number in delivered.items()}
    return {**counts, ("late", None): len(late), ("dead", None): len(kinds["dead"])}


def _dead(row: Form) -> Form:
    return {"record": json.loads(row["record"]), "reason": row["reason"]}


def _late(row: Form) -> Form:
    return {**_dead(row), "event": row["event"]}


def _delivery(row: Form) -> Delivery:
    return Delivery(
        subscriber=row["subscriber"],
        event=row["event"],
        rank=row["rank"],
        position=row["position"],
        window=json.loads(row["window"]),
        matched=tuple(row["matched"]),
        sequence=row["sequence"],
        delivered_us=time_us(row["delivered_at"]),
    )


def _batch(number: int, events: int, counts: Counts) -> Batch:
    delivered = {name: n for (kind, name), n in counts.items() if kind == "delivery" and name}
    late, dead = (counts.get((kind, None), 0) for kind in ("late", "dead"))
    return Batch(number, events, delivered, late, dead)
