"""Matches, targets and refused rows as rows: Arrow in, Arrow out, no session needed."""

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
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event
from tidings.score import Scorer
from tidings.spark.match_stage.batch_size import Pace
from tidings.spark.match_stage.isolation import Culprit, Done, isolated
from tidings.spark.match_stage.matcher_source import Matchers
from tidings.spark.match_stage.stage import by_part

ROW: Final = "tidings_row"
"""Which row of the input a target is of, where the answers of several parts are put together."""

TARGETS: Final = pa.schema(
    {
        "event": pa.string(),
        "position": pa.int64(),
        "subscription": pa.string(),
        "score": pa.float64(),
    }
)


LETTERS: Final = pa.schema({"record": pa.string(), "reason": pa.string()})


def letter_batches(read: ReadEvents, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the rows that are no publications as rows of LETTERS."""
    for batch in batches:
        forms = [each.to_dict() for each in read(batch) if isinstance(each, BadRecord)]
        rows = [{"record": json.dumps(form["record"]), "reason": form["reason"]} for form in forms]
        yield pa.RecordBatch.from_pylist(rows, LETTERS)


def match_batches(
    matchers: Matchers, read: ReadEvents, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give the matches of publications as rows of MATCHES; bad records give none.

    Nor do events for which matching fails, and matches that a subscriber's own scorer cannot rank.
    """
    pace = Pace()
    for part, rows in by_part(batches):
        events = [event for event in read(rows) if isinstance(event, Event)]
        served = matchers.serve(part)
        for some in pace.cut(part, served, events):
            for done in isolated(partial(matches_of, served), some):
                if isinstance(done, Done):
                    pace.note(part, len(done.events), done.made.num_rows)
                    yield done.made


def matches_of(served: OverlayMatcher, events: Sequence[Event]) -> pa.RecordBatch:
    """Give the matches of events, one after the other."""
    wanted = served.wanted(events, [])
    event = wanted.events
    us = np.array([each.published_us for each in events], np.int64)
    ids = pa.array([each.id for each in events], pa.string())
    matched = pa.ListArray.from_arrays(
        pa.array(wanted.matched_starts, pa.int32()), _texts(served.ids, wanted.matched)
    )
    columns = [
        _texts(served.names, wanted.subscribers),
        ids.take(pa.array(event)),
        pa.array(us[event]).cast(MATCHES.field("published_at").type),
        pa.array(wanted.ranks),
        matched,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MATCHES)


def _texts(names: OverlaidStrings, numbers: Any) -> pa.StringArray:
    return names.take(numbers).cast(pa.string())


@dataclass(frozen=True)
class Targets:
    """Finds the k best subscriptions of events by a scorer; bad records give none."""

    matchers: Matchers
    read: ReadEvents
    k: int
    scorer: Scorer

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take record batches of events; give rows of TARGETS, and which row where rows tell."""
        for part, rows in by_part(batches):
            served, telling = self.matchers.serve(part), ROW in rows.schema.names
            numbers = rows.column(ROW).to_pylist() if telling else [None] * rows.num_rows
            found = self.read(rows.drop_columns([ROW]) if telling else rows)
            pairs = zip(numbers, found, strict=True)
            good = [(row, event) for row, event in pairs if isinstance(event, Event)]
            yield self._found(served, good, telling)

    def _found(self, served: OverlayMatcher, good: list[Any], telling: bool) -> pa.RecordBatch:
        events, numbers = [event for _, event in good], iter([row for row, _ in good])
        rows = []
        for done in isolated(lambda some: served.top_many(some, self.k, self.scorer), events):
            if isinstance(done, Culprit):
                next(numbers)
                continue
            for event, best, row in zip(done.events, done.made, numbers, strict=False):
                rows += [
                    {"event": event.id, "position": place, "subscription": name, "score": score}
                    | {ROW: row}
                    for place, (name, score) in enumerate(best, start=1)
                ]
        schema = TARGETS.append(pa.field(ROW, pa.int64())) if telling else TARGETS
        return pa.RecordBatch.from_pylist(rows, schema)
