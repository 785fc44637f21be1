"""From publications to the buckets of subscribers: what the match stage hands to the state stage.

Some events at a time, every bucket gets a row: a parcel with its matches, or a tick, so that time
passes where nothing matches. What cannot be read travels along as a dead letter, and in streams one
bucket gets the rows themselves, for the late table. All of it is Arrow in, Arrow out; no session is
needed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidings.columns import ReadEvents
from tidings.errors import InvalidPolicy
from tidings.files import read_event_line
from tidings.model import Event
from tidings.rows import BadRecord
from tidings.sealed.people import hash_of
from tidings.spark.addressed import addressed
from tidings.spark.late import pack_rows
from tidings.spark.matchers import Matchers
from tidings.spark.pace import Pace
from tidings.spark.parcel import Parcel

TOGETHER: Final = 4096
"""Rows that are read at once, at most."""

PART: Final = "tidings_part"
"""The column that tells which part of the subscribers a row is for, where there are several."""

FLOW: Final = pa.schema(
    {
        "bucket": pa.int32(),
        "kind": pa.string(),
        "published_us": pa.int64(),
        "sequence": pa.int64(),
        "body": pa.binary(),
    }
)


@dataclass(frozen=True)
class Flow:
    """The match stage: reads events, matches them, and addresses the matches to buckets.

    The buckets of a part are those whose number is the part, modulo the number of parts.
    """

    matchers: Matchers
    read: ReadEvents
    buckets: int
    prune: bool = False
    streams: bool = False

    def __post_init__(self) -> None:
        if self.buckets % self.matchers.parts:
            raise InvalidPolicy(
                f"{self.buckets} buckets cannot be split over {self.matchers.parts} parts; "
                "make the buckets a multiple of the parts"
            )

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take record batches of publications; the function that Spark is given."""
        pace = Pace()
        for part, rows in by_part(batches):
            served = self.matchers.serve(part)
            found = list(self.read(rows))
            bad = [_dead(each) for each in found if isinstance(each, BadRecord) and part == 0]
            if bad:
                yield pa.RecordBatch.from_pylist(bad, FLOW)
            events = [each for each in found if isinstance(each, Event)]
            if events and self.streams and part == 0:
                yield pa.RecordBatch.from_pylist([self._kept(events, rows)], FLOW)
            for some in pace.cut(part, served, events):
                parcels, refused = addressed(served, some, self.buckets, prune=self.prune)
                pace.note(part, len(some), sum(len(each.ranks) for each in parcels.values()))
                sent = self._rows(some, parcels, part) + [_unnumbered(each) for each in refused]
                yield pa.RecordBatch.from_pylist(sent, FLOW)

    def _kept(self, events: Sequence[Event], rows: pa.RecordBatch) -> dict[str, Any]:
        """Give the row that holds what was read."""
        oldest = min(event.published_us for event in events)
        row = tick(bucket_of(events[0].id, self.buckets), oldest, 0)
        return row | {"kind": "rows", "body": pack_rows(rows)}

    def _rows(
        self, events: Sequence[Event], parcels: Mapping[int, Parcel], part: int
    ) -> list[dict[str, Any]]:
        us = max(event.published_us for event in events)
        number = max(event.sequence or 0 for event in events)
        rows = [
            tick(bucket, us, number) for bucket in range(part, self.buckets, self.matchers.parts)
        ]
        for row in rows:
            if row["bucket"] in parcels:
                row |= {"kind": "parcel", "body": parcels[row["bucket"]].pack()}
        return rows


def by_part(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Give rows by part, not too many at once; without a column that tells, all are of part 0."""
    for batch in batches:
        if PART not in batch.schema.names:
            yield from ((0, rows) for rows in _slices(batch))
            continue
        parts = batch.column(PART).to_numpy(zero_copy_only=False)
        others = batch.drop_columns([PART])
        for part in np.unique(parts).tolist():
            yield from ((part, rows) for rows in _slices(others.filter(pa.array(parts == part))))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(at, TOGETHER) for at in range(0, batch.num_rows, TOGETHER))


def tick(bucket: int, us: int, sequence: int) -> dict[str, Any]:
    """Give the row that says: the stream has come to this time and number."""
    return {"bucket": bucket, "kind": "tick", "published_us": us, "sequence": sequence}


def _dead(bad: BadRecord, **about: str) -> dict[str, Any]:
    row = {"bucket": 0, "kind": "dead", "published_us": 0, "sequence": 0}
    return row | {"body": json.dumps(bad.to_dict() | about).encode()}


def _unnumbered(event: Event) -> dict[str, Any]:
    """Give the letter of an event that some have not got; each part may tell of it."""
    reason = (
        "the event has no sequence, so subscribers whose windows count published events "
        '(count="published") did not get it; all others did'
    )
    return _dead(BadRecord(event.to_dict(), reason, 0), event=event.id)


def bucket_of(subscriber: str, buckets: int) -> int:
    """Give the bucket of a subscriber, the same in every process."""
    return hash_of(subscriber) % buckets


def read_lines(batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
    """Read events from text lines, each the JSON form of one (the column `value`).

    A line that was refused before has its `reason` with it.
    """
    for position, row in enumerate(batch.to_pylist(), start=1):
        if row.get("reason"):
            yield BadRecord(json.loads(row["value"]), row["reason"], position)
        else:
            yield read_event_line(row["value"], position)
