"""From publications to the buckets of subscribers: what the match stage hands to the state stage.

Some events at a time, every bucket gets a row: a parcel with its matches, or a tick, so that time
passes where nothing matches. What cannot be read travels along as a dead letter, and in streams one
bucket gets the rows themselves, for the late table. All of it is Arrow in, Arrow out; no session is
needed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidings.errors import InvalidPolicy, clipped, shown
from tidings.formats.arrow import ReadEvents
from tidings.formats.files import read_event_line
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_table import hash_of
from tidings.model.dead_letter import BadRecord, Failure, try_call
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event
from tidings.model.values import SECOND_US, format_time
from tidings.spark.match_stage.batch_size import Pace
from tidings.spark.match_stage.bucketize import Addressed, Lost, addressed
from tidings.spark.match_stage.isolation import Culprit, Done, isolated
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.matcher_source import Matchers
from tidings.spark.state_stage.late_events import pack_rows

TOGETHER: Final = 4096
"""Rows that are read at once, at most."""

PART: Final = "tidings_part"
"""The column that tells which part of the subscribers a row is for, where there are several."""

NOW: Final = "tidings_now"
"""The column with the time of the micro-batch in microseconds, where a stream has a clock."""

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

    The buckets of a part are those whose number is the part, modulo the number of parts. An event
    that is further ahead of the clock than `future_us` is a dead letter and moves no watermark;
    the clock is the column NOW, which is the same when a batch is replayed.
    """

    matchers: Matchers
    read: ReadEvents
    buckets: int
    prune: bool = False
    streams: bool = False
    future_us: int | None = None

    def __post_init__(self) -> None:
        if self.buckets % self.matchers.parts:
            raise InvalidPolicy(
                f"{self.buckets} buckets cannot be split over {self.matchers.parts} parts; "
                "make the buckets a multiple of the parts"
            )

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take record batches of publications; the function that Spark is given."""
        pace = Pace()
        for part, given in by_part(batches):
            served = self.matchers.serve(part)
            events, bad, rows = self._read(given)
            if bad and part == 0:
                yield pa.RecordBatch.from_pylist([_dead(each) for each in bad], FLOW)
            if events and self.streams and part == 0:
                yield pa.RecordBatch.from_pylist([self._kept(events, rows)], FLOW)
            for some in pace.cut(part, served, events):
                for done in isolated(partial(self._addressed, served), some):
                    if isinstance(done, Culprit):
                        yield pa.RecordBatch.from_pylist([_unmatched(done)], FLOW)
                        continue
                    pace.note(part, len(done.events), done.made.matches)
                    yield pa.RecordBatch.from_pylist(self._sent(done, part), FLOW)

    def _read(self, rows: pa.RecordBatch) -> tuple[list[Event], list[BadRecord], pa.RecordBatch]:
        """Return the events of rows, what is refused of them, and the rows that may be late."""
        now_us = None
        if NOW in rows.schema.names:
            now_us = rows.column(NOW)[0].as_py() if rows.num_rows else None
            rows = rows.drop_columns([NOW])
        found = list(self.read(rows))
        events = [each for each in found if isinstance(each, Event)]
        bad = [each for each in found if isinstance(each, BadRecord)]
        if now_us is None or self.future_us is None or not events:
            return events, bad, rows
        latest_us = now_us + self.future_us
        if max(event.published_us for event in events) <= latest_us:
            return events, bad, rows
        ahead = [isinstance(e, Event) and e.published_us > latest_us for e in found]
        bad += [
            BadRecord(_form(each), self._ahead(each, now_us), place)
            for place, (each, is_ahead) in enumerate(zip(found, ahead, strict=True), start=1)
            if is_ahead and isinstance(each, Event)
        ]
        events = [each for each in events if each.published_us <= latest_us]
        return events, bad, rows.filter(pa.array([not each for each in ahead]))

    def _ahead(self, event: Event, now_us: int) -> str:
        seconds = (self.future_us or 0) / SECOND_US
        return (
            f"published_at {format_time(event.published_us)} is more than {seconds:g} s ahead of "
            f"the clock, which says {format_time(now_us)}; the option `future` sets how much"
        )

    def _addressed(self, served: OverlayMatcher, events: Sequence[Event]) -> Addressed:
        return addressed(served, events, self.buckets, prune=self.prune)

    def _sent(self, done: Done[Addressed], part: int) -> list[dict[str, Any]]:
        rows = self._rows(done.events, done.made.parcels, part)
        letters = (map(_unnumbered, done.made.refused), map(_unranked, done.made.lost))
        return [*rows, *chain.from_iterable(letters)]

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
    return _dead(BadRecord(_form(event), reason, 0), event=event.id)


def _unmatched(culprit: Culprit) -> dict[str, Any]:
    """Return the letter of an event that cannot be matched; each part may tell of it."""
    reason = clipped(f"the event cannot be matched: {culprit.reason}")
    return _dead(BadRecord(_form(culprit.event), reason, 0), event=culprit.event.id)


def _unranked(lost: Lost) -> dict[str, Any]:
    """Return the letter of a match that a subscriber does not get because of its own scorer."""
    name, event = shown(lost.subscriber), shown(lost.event.id)
    reason = f"subscriber {name} did not get event {event}: its scorer failed: {lost.reason}"
    record = {"subscriber": lost.subscriber, "event": lost.event.id}
    return _dead(BadRecord(record, clipped(reason), 0), event=lost.event.id)


def _form(event: Event) -> Mapping[str, Any]:
    form = try_call(event.to_dict)
    return {"id": event.id} if isinstance(form, Failure) else form


def bucket_of(subscriber: str, buckets: int) -> int:
    """Give the bucket of a subscriber, the same in every process."""
    return hash_of(subscriber) % buckets


@dataclass(frozen=True)
class ReadLines:
    """Reads events from text lines, each the JSON form of one (the column `value`).

    A line that was refused before has its `reason` with it. One that is above the limits, is null
    or is no UTF-8 is a bad record.
    """

    limits: Limits = TRUSTED

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read the lines of a batch."""
        reasons = _texts(batch.column("reason")) if "reason" in batch.schema.names else []
        pairs = zip_longest(_texts(batch.column("value")), reasons)
        for position, (line, reason) in enumerate(pairs, start=1):
            if reason:
                yield BadRecord(_record(line), str(reason), position)
            else:
                yield self._event(line, position)

    def _event(self, line: str | bytes | None, position: int) -> Event | BadRecord:
        if line is None:
            return BadRecord({}, "the line is null", position)
        if isinstance(line, bytes):
            return BadRecord(_record(line), "the line is not UTF-8", position)
        return read_event_line(line, position, limits=self.limits)


read_lines: Final = ReadLines()


def _texts(column: pa.Array) -> list[Any]:
    """Return texts; those that are no UTF-8 are bytes. Spark does not look at what it reads."""
    texts: list[Any] | Failure = try_call(column.to_pylist)
    if not isinstance(texts, Failure):
        return texts
    cells = [try_call(column.slice(place, 1).to_pylist) for place in range(len(column))]
    raw = column.cast(pa.large_binary()).to_pylist()
    pairs = zip(cells, raw, strict=True)
    return [body if isinstance(cell, Failure) else cell[0] for cell, body in pairs]


def _record(line: object) -> Mapping[str, Any]:
    """Return what a refused line held, or its text."""
    if isinstance(line, bytes):
        return {"text": line.decode(errors="replace")}
    form = try_call(json.loads, line)
    if isinstance(form, Failure):
        return {"text": line}
    return form if isinstance(form, dict) else {"value": form}
