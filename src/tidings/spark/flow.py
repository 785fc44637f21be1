"""From publications to the buckets of subscribers: what the match stage hands to the state stage.

For every publication there is a row for each bucket with a match in it. Besides, each Arrow batch
sends a tick to every bucket, so that time passes where nothing matches, and what cannot be read
travels along as a dead letter. All of it is Arrow in, Arrow out; no session is needed.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import pyarrow as pa

from tidings.columns import MATCHES
from tidings.files import read_event_line
from tidings.matching import Matcher
from tidings.model import Event, Match
from tidings.rows import BadRecord

ReadEvents = Callable[[pa.RecordBatch], Iterator[Event | BadRecord]]

FLOW: Final = pa.schema(
    {
        "bucket": pa.int32(),
        "kind": pa.string(),
        "published_us": pa.int64(),
        "sequence": pa.int64(),
        "event": pa.string(),
        "body": pa.string(),
    }
)


@dataclass(frozen=True)
class Flow:
    """The match stage: reads events, matches them, and addresses the matches to buckets."""

    matcher: Matcher
    read: ReadEvents
    buckets: int
    needs_sequence: bool = False

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take record batches of publications; the function that Spark is given."""
        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_pylist(list(self._rows(batch)), FLOW)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        good: list[Event] = []
        for found in map(self._checked, self.read(batch)):
            if isinstance(found, BadRecord):
                yield _dead(found)
            else:
                good.append(found)
                yield from self._addressed(found)
        if good:
            us, number = (
                max(event.published_us for event in good),
                max(event.sequence or 0 for event in good),
            )
            yield from (tick(bucket, us, number) for bucket in range(self.buckets))

    def _checked(self, event: Event | BadRecord) -> Event | BadRecord:
        if isinstance(event, BadRecord) or not self.needs_sequence or event.sequence is not None:
            return event
        return BadRecord(event.to_dict(), 'count="published" needs a sequence', 0)

    def _addressed(self, event: Event) -> Iterator[dict[str, Any]]:
        addressed: dict[int, list[Any]] = {}
        for match in self.matcher.matches(event):
            entry = [match.subscriber, match.score, match.matched]
            addressed.setdefault(bucket_of(match.subscriber, self.buckets), []).append(entry)
        form = event.to_dict()
        for bucket, entries in addressed.items():
            yield {
                "bucket": bucket,
                "kind": "match",
                "published_us": event.published_us,
                "sequence": event.sequence,
                "event": event.id,
                "body": json.dumps({"event": form, "matches": entries}),
            }


def tick(bucket: int, us: int, sequence: int) -> dict[str, Any]:
    """Give the row that says: the stream has come to this time and number."""
    return {"bucket": bucket, "kind": "tick", "published_us": us, "sequence": sequence}


def _dead(bad: BadRecord) -> dict[str, Any]:
    return {"bucket": 0, "kind": "dead", "body": json.dumps(bad.to_dict())}


def bucket_of(subscriber: str, buckets: int) -> int:
    """Give the bucket of a subscriber, the same in every process."""
    return crc32(subscriber.encode()) % buckets


def match_batches(
    matcher: Matcher, read: ReadEvents, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give the matches of publications as rows of MATCHES; bad records give none."""
    for batch in batches:
        events = (event for event in read(batch) if isinstance(event, Event))
        rows = [_match_row(match) for event in events for match in matcher.matches(event)]
        yield pa.RecordBatch.from_pylist(rows, MATCHES)


def _match_row(match: Match) -> dict[str, Any]:
    return match.to_dict() | {"event": match.event.id, "published_at": match.event.published_us}


def read_lines(batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
    """Read events from text lines, each the JSON form of one (the column `value`).

    A line that was refused before has its `reason` with it.
    """
    for position, row in enumerate(batch.to_pylist(), start=1):
        if row.get("reason"):
            yield BadRecord(json.loads(row["value"]), row["reason"], position)
        else:
            yield read_event_line(row["value"], position)
