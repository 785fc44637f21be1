"""Counts of the outcomes of a batch, and the outcomes as objects."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidings.model.dead_letter import DeadLetter
from tidings.model.records import Delivery
from tidings.model.values import time_us
from tidings.policy import PAUSED

KINDS: Final = ("delivery", "late", "dead", "account", "dropped", "held", "released")
Row = dict[str, Any]
_RULE: Final = "case when kind = 'dropped' then substring_index(reason, ':', 1) end"


@dataclass(frozen=True)
class OutcomeCounts:
    """Number of outcomes of each kind; an event that many buckets refuse counts once.

    `ranks` is the sum over the deliveries, `scores` that over all `matches`.
    """

    deliveries: int = 0
    late: int = 0
    dead: int = 0
    delivered: Mapping[str, int] = field(default_factory=dict)
    ranks: float = 0.0
    matches: int = 0
    scores: float = 0.0
    held: int = 0
    released: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)
    """Chosen events that will not be delivered, by rule; "pause" is the pause of a subscriber."""


def count_outcomes(outcomes: DataFrame, *, by_name: bool = True) -> OutcomeCounts:
    """Count the outcomes of a batch; with `by_name`, also the deliveries of each subscriber."""
    groups = outcomes.groupBy(
        "kind", f.expr(_RULE).alias("rule"), *(["subscriber"] if by_name else [])
    )
    rows = groups.agg(
        f.count(f.lit(1)).alias("rows"),
        f.count_distinct("event", "reason").alias("events"),
        f.count_if(f.col("event").isNull()).alias("nameless"),
        f.sum("rank").alias("ranks"),
        f.sum("position").alias("matches"),
        f.sum(f.col("rank") * f.col("position")).alias("scores"),
    ).collect()
    counts = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    return OutcomeCounts(
        sum(row["rows"] for row in counts["delivery"]),
        sum(row["events"] for row in counts["late"]),
        sum(row["events"] + row["nameless"] for row in counts["dead"]),
        {row["subscriber"]: row["rows"] for row in counts["delivery"]} if by_name else {},
        sum(row["ranks"] for row in counts["delivery"]),
        sum(row["matches"] for row in counts["account"]),
        sum(row["scores"] for row in counts["account"]),
        sum(row["matches"] for row in counts["held"]),
        sum(row["matches"] for row in counts["released"]),
        dict(sorted(_sums_by_rule(counts["dropped"]).items())),
    )


def _sums_by_rule(rows: Iterable[Any]) -> Counter[str]:
    sums = Counter[str]()
    for row in rows:
        sums["pause" if row["rule"] == PAUSED else row["rule"]] += row["rows"]
    return sums


@dataclass(frozen=True)
class OutcomeObjects:
    """The outcomes of a batch as objects."""

    deliveries: Sequence[Delivery]
    late: Mapping[str, DeadLetter]
    dead: Sequence[DeadLetter]


def read_outcomes(table: pa.Table) -> OutcomeObjects:
    """Return rows of OUTCOMES as objects, late events by their ids."""
    kinds: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    for row in table.to_pylist():
        kinds[row["kind"]].append(row)
    return OutcomeObjects(
        [_delivery(row) for row in kinds["delivery"]],
        {row["event"]: _letter(row) for row in kinds["late"]},
        unique_letters(kinds["dead"]),
    )


def unique_letters(rows: Iterable[Row]) -> list[DeadLetter]:
    """Return the letters of late or dead outcomes, those of the same event and reason once."""
    unique: dict[Any, DeadLetter] = {}
    for number, row in enumerate(rows):
        key = number if row["event"] is None else (row["event"], row["reason"])
        unique.setdefault(key, _letter(row))
    return list(unique.values())


def _letter(row: Row) -> DeadLetter:
    record = None if row["record"] is None else json.loads(row["record"])
    return DeadLetter(record, row["reason"])


def _delivery(row: Row) -> Delivery:
    return Delivery(
        subscriber=row["subscriber"],
        event=row["event"],
        rank=row["rank"],
        position=row["position"],
        window=json.loads(row["window"]),
        matched=tuple(row["matched"]),
        sequence=row["sequence"],
        delivered_us=time_us(row["delivered_at"]),
        content_json=row["content"],
    )
