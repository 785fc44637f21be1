"""Matches, targets and dead letters as rows: Arrow in, Arrow out, without a session."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidings.formats.arrow import MATCHES, ReadEvents
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.string_table import OverlaidStrings
from tidings.model.bisection import Culprit, Finished
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event
from tidings.score import Scorer
from tidings.spark.bisect_failures import bisect
from tidings.spark.match_stage.matcher_source import MatcherSource
from tidings.spark.match_stage.stage import BatchSizer, by_part

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
    us = np.array([event.published_us for event in events], np.int64)
    ids = pa.array([event.id for event in events], pa.string())
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
            numbers = rows.column(ROW).to_pylist() if numbered else [None] * rows.num_rows
            records = self.read(rows.drop_columns([ROW]) if numbered else rows)
            pairs = zip(numbers, records, strict=True)
            events = [(row, event) for row, event in pairs if isinstance(event, Event)]
            yield self._targets(matcher, events, numbered=numbered)

    def _targets(
        self, matcher: OverlayMatcher, numbered_events: list[Any], *, numbered: bool
    ) -> pa.RecordBatch:
        events = [event for _, event in numbered_events]
        numbers = iter([row for row, _ in numbered_events])
        rows = []
        for result in bisect(lambda some: matcher.top_many(some, self.k, self.scorer), events):
            if isinstance(result, Culprit):
                next(numbers)
                continue
            for event, best, row in zip(result.items, result.result, numbers, strict=False):
                rows += [
                    {"event": event.id, "position": position, "subscription": id, "score": score}
                    | {ROW: row}
                    for position, (id, score) in enumerate(best, start=1)
                ]
        schema = TARGETS.append(pa.field(ROW, pa.int64())) if numbered else TARGETS
        return pa.RecordBatch.from_pylist(rows, schema)
