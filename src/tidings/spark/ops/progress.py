"""Progress of a query, batch by batch: Spark's reports, and counts observed on the way."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidings.model.values import SECOND_US, format_time

_EVENTS: Final = "tidings_events"
_OUTCOMES: Final = "tidings_outcomes"
_ON_DISK: Final = "rocksdbSstFileSize"
_PYTHON: Final = ".PythonMicroBatchStream"
_UNREAD: Final = "offsetsBehindLatest"
# Of a column `value`, the JSON form of an event.
_STATED: Final = "get_json_object(value, '$.published_at')"


@dataclass(frozen=True)
class Progress:
    """A finished batch: its size, its duration, its newest event, and the size of the state.

    `late` counts events and is an estimate if they are thousands. `held`, `released` and `dropped`
    count chosen events by what rules did with them, or a pause. `behind` is the unread input as
    far as the source reports it, and `reached` the offsets up to which it is read. `newest_us` is
    the newest publication time of the batch.
    """

    batch: int
    events: int
    done_us: int
    seconds: float
    newest_us: int | None = None
    deliveries: int = 0
    late: int = 0
    dead: int = 0
    held: int = 0
    released: int = 0
    dropped: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    memory_bytes: int = 0
    behind: Mapping[str, float] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)

    @property
    def events_per_second(self) -> float:
        """Throughput of the batch."""
        return self.events / self.seconds if self.seconds else 0.0

    @property
    def lag_s(self) -> float | None:
        """Age of the newest event when the batch was finished."""
        return None if self.newest_us is None else (self.done_us - self.newest_us) / SECOND_US

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        lag = None if self.lag_s is None else round(self.lag_s, 3)
        return {
            "batch": self.batch,
            "done_at": format_time(self.done_us),
            "seconds": round(self.seconds, 3),
            "events": self.events,
            "events_per_second": round(self.events_per_second, 1),
            "lag_seconds": lag,
            "behind": dict(self.behind),
            "reached": dict(self.reached),
            "deliveries": self.deliveries,
            "late": self.late,
            "dead_letters": self.dead,
            "held": self.held,
            "released": self.released,
            "dropped": self.dropped,
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "state_memory_bytes": self.memory_bytes,
        }


def watch_events(publications: DataFrame) -> DataFrame:
    """Observe the number of publications and their newest time."""
    newest = f.lit(None).cast("timestamp")
    types = dict(publications.dtypes)
    if types.get("published_at", "string") != "string":
        newest = f.max(f.expr("try_cast(published_at as timestamp)"))
    elif "published_at" in types:
        newest = f.max(f.expr(time_of_text("published_at")))
    elif types.get("value") == "string":
        newest = f.max(f.expr(time_of_text(_STATED)))
    return publications.observe(
        _EVENTS, f.count(f.lit(1)).alias("events"), f.unix_micros(newest).alias("newest_us")
    )


def time_of_text(text: str) -> str:
    """Return SQL for the time that a text states: seconds since the epoch, or RFC 3339.

    A number is tried first: Spark takes a time of four digits for a year.
    """
    return f"coalesce(timestamp_seconds(try_cast({text} as double)), try_to_timestamp({text}))"


def watch_outcomes(outcomes: DataFrame) -> DataFrame:
    """Observe the number of outcomes of each kind.

    An event that many buckets refuse counts about once: distinct ones are estimated.
    """
    return outcomes.observe(
        _OUTCOMES,
        f.count_if(f.col("kind") == "delivery").alias("deliveries"),
        _refused("late").alias("late"),
        _refused("dead").alias("dead"),
        _total("held").alias("held"),
        _total("released").alias("released"),
        f.count_if(f.col("kind") == "dropped").alias("dropped"),
    )


def _total(kind: str) -> Column:
    """Return the sum of counts of a kind."""
    return f.expr(f"coalesce(sum(case when kind = '{kind}' then position end), 0)")


def _refused(kind: str) -> Column:
    """Count the letters of a kind, those of the same event and reason once."""
    named = f"case when kind = '{kind}' and event is not null then struct(event, reason) end"
    nameless = f.count_if((f.col("kind") == kind) & f.col("event").isNull())
    return f.expr(f"approx_count_distinct({named}, 0.01)") + nameless


def read_progress(report: StreamingQueryProgress) -> Progress | None:
    """Return the progress in a report of Spark; None if its publications are not watched."""
    observed = {name: row.asDict() for name, row in report.observedMetrics.items()}
    if _EVENTS not in observed:
        return None
    began = datetime.strptime(report.timestamp, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    states, sources = report.stateOperators, report.sources
    return Progress(
        batch=report.batchId,
        done_us=round(began.timestamp() * SECOND_US) + report.batchDuration * 1_000,
        seconds=report.batchDuration / 1_000,
        state_rows=sum(state.numRowsTotal for state in states),
        state_bytes=sum(state.customMetrics.get(_ON_DISK, 0) for state in states),
        memory_bytes=sum(state.memoryUsedBytes for state in states),
        # The publications are the first source: what they lack counts, not what a clock lacks.
        behind={
            name: float(count) for source in reversed(sources) for name, count in _behind(source)
        },
        reached=dict(_reached(sources)),
        **observed[_EVENTS],
        **observed.get(_OUTCOMES, {}),
    )


def _reached(sources: Sequence[Any]) -> Iterator[tuple[str, int]]:
    """Yield the offsets of all sources; those of a second one, as a clock is, begin with `1.`."""
    for place, source in enumerate(sources):
        prefix = f"{place}." if place else ""
        yield from ((prefix + name, offset) for name, offset in _numbers(source.endOffset).items())


def _behind(source: Any) -> list[tuple[str, Any]]:
    """Return the unread input of a source, from its metrics, as Kafka has them, or its offsets."""
    metrics = source.metrics or {}
    reported = [
        (name, count)
        for name, count in sorted(metrics.items())
        if "Behind" in name or "Outstanding" in name
    ]
    if reported or _PYTHON not in source.description:
        return reported
    end, latest = (_numbers(offset) for offset in (source.endOffset, source.latestOffset))
    # Kinesis plans up to a time and reads up to texts, whose difference counts nothing.
    if not latest or (not end and _parts(source.endOffset)):
        return []
    return [(_UNREAD, sum(max(0, offset - end.get(name, 0)) for name, offset in latest.items()))]


def _numbers(offset: str | None) -> dict[str, int]:
    """Return the integers of an offset by their paths; none if it holds anything else."""
    parts = _parts(offset)
    return parts if all(type(part) is int for part in parts.values()) else {}


def _parts(offset: str | None) -> dict[str, Any]:
    """Return the values of an offset by their paths."""
    return dict(_leaves(json.loads(offset))) if offset and offset.startswith("{") else {}


def _leaves(form: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in form.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
