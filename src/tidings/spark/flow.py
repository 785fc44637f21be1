"""From publications to the buckets of subscribers: what the match stage hands to the state stage.

Each Arrow batch sends a row to every bucket: a parcel with its matches, or a tick, so that time
passes where nothing matches. What cannot be read travels along as a dead letter. All of it is Arrow
in, Arrow out; no session is needed.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from tidings.columns import MATCHES
from tidings.files import read_event_line
from tidings.matching import Matcher
from tidings.model import Event, Match
from tidings.rows import BadRecord
from tidings.spark.parcel import UNNUMBERED, Parcel

Entry = tuple[Event, list[Match]]
ReadEvents = Callable[[pa.RecordBatch], Iterator[Event | BadRecord]]

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
        if good:
            us, number = (
                max(event.published_us for event in good),
                max(event.sequence or 0 for event in good),
            )
            addressed = self._addressed(good)
            for bucket in range(self.buckets):
                row = tick(bucket, us, number)
                if bucket in addressed:
                    row |= {"kind": "parcel", "body": self._parcel(addressed[bucket]).pack()}
                yield row

    def _checked(self, event: Event | BadRecord) -> Event | BadRecord:
        if isinstance(event, BadRecord) or not self.needs_sequence or event.sequence is not None:
            return event
        return BadRecord(event.to_dict(), 'count="published" needs a sequence', 0)

    def _addressed(self, events: Iterable[Event]) -> dict[int, list[Entry]]:
        """Give the matches of each bucket, event by event."""
        found: dict[int, list[Entry]] = {}
        for event in events:
            mine: dict[int, list[Match]] = {}
            for match in self.matcher.matches(event):
                mine.setdefault(bucket_of(match.subscriber, self.buckets), []).append(match)
            for bucket, matches in mine.items():
                found.setdefault(bucket, []).append((event, matches))
        return found

    def _parcel(self, entries: list[Entry]) -> Parcel:
        matches = [match for _, some in entries for match in some]
        subscribers, owners = _numbered(match.subscriber for match in matches)
        subscriptions, matched = _numbered(each for match in matches for each in match.matched)
        return Parcel(
            events=[event.id for event, _ in entries],
            us=np.array([event.published_us for event, _ in entries], np.int64),
            sequence=np.array([_number(event) for event, _ in entries], np.int64),
            forms=[self._form(*entry) for entry in entries],
            starts=np.cumsum([0, *(len(some) for _, some in entries)]),
            owners=owners,
            ranks=np.array([match.score for match in matches], np.float64),
            matched_starts=np.cumsum([0, *(len(match.matched) for match in matches)]),
            matched=matched,
            subscribers=subscribers,
            subscriptions=subscriptions,
        )

    def _form(self, event: Event, matches: list[Match]) -> str:
        """Give the JSON form of an event if some policy has to compare it with others."""
        people = self.matcher.subscribers
        parts = (people[match.subscriber].policy.diversify for match in matches)
        return json.dumps(event.to_dict()) if any(part.name != "none" for part in parts) else ""


def _numbered(names: Iterable[str]) -> tuple[list[str], Any]:
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(name, len(numbers)) for name in names]
    return list(numbers), np.array(found, np.int32)


def _number(event: Event) -> int:
    return UNNUMBERED if event.sequence is None else event.sequence


def tick(bucket: int, us: int, sequence: int) -> dict[str, Any]:
    """Give the row that says: the stream has come to this time and number."""
    return {"bucket": bucket, "kind": "tick", "published_us": us, "sequence": sequence}


def _dead(bad: BadRecord) -> dict[str, Any]:
    row = {"bucket": 0, "kind": "dead", "published_us": 0, "sequence": 0}
    return row | {"body": json.dumps(bad.to_dict()).encode()}


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
