"""Matches, targets and dead letters as rows: Arrow in, Arrow out, without a session."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidings.formats.arrow import MATCHES, ReadEvents
from tidings.index_files.overlay_matcher import OverlayMatcher, TargetColumns
from tidings.index_files.subscriber_table import OverlaidStrings
from tidings.model.dead_letter import BadRecord, Finished
from tidings.model.event_columns import ids_of, times_of
from tidings.model.records import Event
from tidings.score import Scorer
from tidings.spark.bisect_failures import bisect
from tidings.spark.match_stage.matcher_source import MatcherSource
from tidings.spark.match_stage.stage import BatchSizer, by_part, read_columns
from tidings.spark.publications import ReadColumns

ROW: Final = "tidings_row"
"""Column with the input row of a target, needed to combine the targets of several parts."""

TARGETS: Final = pa.schema(
    {
        "event": pa.string(),
        "position": pa.int64(),
        "subscription": pa.string(),
        "score": pa.float64(),
    }
)

DEAD_LETTERS: Final = pa.schema({"record": pa.string(), "reason": pa.string()})


def dead_letter_batches(
    read: ReadEvents, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that cannot be read as publications, as rows of DEAD_LETTERS."""
    for batch in batches:
        bad = [record.to_dict() for record in read(batch) if isinstance(record, BadRecord)]
        rows = [{"record": json.dumps(form["record"]), "reason": form["reason"]} for form in bad]
        yield pa.RecordBatch.from_pylist(rows, DEAD_LETTERS)


def match_batches(
    source: MatcherSource, read: ReadEvents, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of publications as rows of MATCHES.

    Bad records, events for which matching fails, and matches that a subscriber's own scorer cannot
    rank yield no rows.
    """
    sizer = BatchSizer()
    for part, rows in by_part(batches):
        events: Sequence[Event] | None = read_columns(read, rows)
        if events is None:
            events = [event for event in read(rows) if isinstance(event, Event)]
        matcher = source.matcher(part)
        for some in sizer.split(part, matcher, events):
            for result in bisect(partial(match_rows, matcher), some):
                if isinstance(result, Finished):
                    sizer.report(part, len(result.items), result.result.num_rows)
                    yield result.result


def match_rows(matcher: OverlayMatcher, events: Sequence[Event]) -> pa.RecordBatch:
    """Return the matches of events, event by event, as rows of MATCHES."""
    matches = matcher.match_many(events, [])
    event = matches.events
    us, ids = times_of(events), pa.array(ids_of(events), pa.string())
    matched = pa.ListArray.from_arrays(
        pa.array(matches.matched_starts, pa.int32()), _texts(matcher.ids, matches.matched)
    )
    columns = [
        _texts(matcher.names, matches.subscribers),
        ids.take(pa.array(event)),
        pa.array(us[event]).cast(MATCHES.field("published_at").type),
        pa.array(matches.ranks),
        matched,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MATCHES)


def _texts(names: OverlaidStrings, numbers: Any) -> pa.StringArray:
    return names.take(numbers).cast(pa.string())


@dataclass(frozen=True)
class TargetStage:
    """Finds the k best subscriptions of events by a scorer; bad records have none."""

    source: MatcherSource
    read: ReadEvents
    k: int
    scorer: Scorer

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of TARGETS for record batches of events, with ROW if the input has it."""
        for part, rows in by_part(batches):
            matcher, numbered = self.source.matcher(part), ROW in rows.schema.names
            plain = rows.drop_columns([ROW]) if numbered else rows
            numbers = rows.column(ROW) if numbered else None
            if (answered := self._by_numbers(matcher, plain, numbers)) is not None:
                yield answered
                continue
            records = [*self.read(plain)]
            places = [place for place, record in enumerate(records) if isinstance(record, Event)]
            numbers = None if numbers is None else numbers.take(pa.array(places, pa.int64()))
            events = [records[place] for place in places]
            done = 0
            for result in bisect(partial(self._tops, matcher), events):
                if isinstance(result, Finished):
                    size = len(result.items)
                    some = numbers.slice(done, size) if numbers is not None else None
                    ids = pa.array([event.id for event in result.items], pa.string())
                    yield target_rows(ids, result.result, some)
                done += len(result.items) if isinstance(result, Finished) else 1

    def _by_numbers(
        self, matcher: OverlayMatcher, rows: pa.RecordBatch, numbers: pa.Array | None
    ) -> pa.RecordBatch | None:
        """Return the targets of rows without an event for each, where boxes can answer them all."""
        names = matcher.target_attributes(self.scorer)
        if names is None or not isinstance(self.read, ReadColumns) or not rows.num_rows:
            return None
        if (events := self.read.numbers(rows, names)) is None:
            return None
        tops = matcher.top_rows(events.rows, self.k, self.scorer)
        return None if tops is None else target_rows(events.ids, tops, numbers)

    def _tops(self, matcher: OverlayMatcher, events: Sequence[Event]) -> TargetColumns:
        return matcher.top_columns(events, self.k, self.scorer)


def target_rows(
    ids: pa.StringArray, tops: TargetColumns, numbers: pa.Array | None
) -> pa.RecordBatch:
    """Return the targets of events as rows of TARGETS, with ROW if events have numbers."""
    event = np.repeat(np.arange(len(ids)), tops.counts)
    starts = np.repeat(np.cumsum(tops.counts) - tops.counts, tops.counts)
    places = pa.array(event)
    columns = [
        ids.take(places),
        pa.array(np.arange(1, len(event) + 1) - starts),
        tops.subscriptions.cast(pa.string()),
        pa.array(tops.scores),
    ]
    if numbers is None:
        return pa.RecordBatch.from_arrays(columns, schema=TARGETS)
    schema = TARGETS.append(pa.field(ROW, pa.int64()))
    return pa.RecordBatch.from_arrays([*columns, numbers.take(places)], schema=schema)
