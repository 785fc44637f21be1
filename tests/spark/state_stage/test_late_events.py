"""The late table has every event before the watermark, whole and once."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.match_stage.match_batches import arrived_rows, rows

from tidings import Event, Subscriber, Subscription
from tidings.formats.arrow import events_to_table, read_events
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.spark.match_stage.matcher_source import PickledSource
from tidings.spark.match_stage.stage import BUCKET_ROWS, MatchStage
from tidings.spark.publications import ReadLines
from tidings.spark.state_stage.late_events import late_rows
from tidings.spark.state_stage.processor import read_rows

ANN = bundle_subscribers([Subscriber("ann")], [Subscription("s", "ann", "x = 1")])
times = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=4)


def batch(events: list[Event]) -> pa.RecordBatch:
    return events_to_table(events).combine_chunks().to_batches()[0]


@given(times, st.none() | st.integers(0, 9))
def test_events_before_the_watermark_are_reported_whole(
    arrived: list[list[int]], watermark: int | None
) -> None:
    events = [
        [Event(f"e{place}-{nth}", {"x": nth}, at) for nth, at in enumerate(some)]
        for place, some in enumerate(arrived)
    ]
    us = None if watermark is None else watermark * 1_000_000
    late = rows(late_rows(map(arrived_rows, events), us, read_events), "late")
    expected = [each for some in events for each in some if us and each.published_us < us]
    assert [json.loads(row["record"]) for row in late] == [each.to_dict() for each in expected]
    assert [row["event"] for row in late] == [each.id for each in expected]


def test_the_reason_says_by_how_much() -> None:
    event = Event("old", {}, 7.5)
    [row] = late_rows([arrived_rows([event])], 10_000_000, read_events).to_pylist()
    assert row["reason"] == "published 2.5 s before the watermark"


def sent(stage: MatchStage, rows: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for each in stage.batches([rows]) for row in each.to_pylist()]


def test_one_bucket_gets_the_rows_of_a_stream_even_if_none_match() -> None:
    events = batch([Event("e1", {"x": 2}, 5), Event("e2", {"x": 3}, 3)])
    bucket_rows = sent(MatchStage(PickledSource.of(ANN), read_events, 4, streams=True), events)
    arrived = [row for row in bucket_rows if row["kind"] == "rows"]
    assert [row["published_us"] for row in arrived] == [3_000_000]
    frame = pa.Table.from_pylist(bucket_rows, BUCKET_ROWS).to_pandas()
    late = late_rows(read_rows(iter([frame])).arrived, 4_000_000, read_events)
    assert [row["event"] for row in rows(late, "late")] == ["e2"]
    assert {
        row["kind"] for row in sent(MatchStage(PickledSource.of(ANN), read_events, 4), events)
    } == {"tick"}


def test_a_bad_record_is_a_dead_letter_but_not_late() -> None:
    lines = ['{"id": "e", "published_at": 1, "attributes": {}}', "nonsense"]
    text_rows = pa.RecordBatch.from_pydict({"value": lines})
    bucket_rows = sent(MatchStage(PickledSource.of(ANN), ReadLines(), 1, streams=True), text_rows)
    inputs = read_rows(iter([pa.Table.from_pylist(bucket_rows, BUCKET_ROWS).to_pandas()]))
    assert len(inputs.letters) == 1
    late = late_rows(inputs.arrived, 9_000_000, ReadLines())
    assert [row["event"] for row in rows(late, "late")] == ["e"]
