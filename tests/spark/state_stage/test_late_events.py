"""The late table: every event before the watermark, whole, and once."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.match_stage.match_batches import kept, rows

from tidings import Event, Subscriber, Subscription
from tidings.formats.arrow import events_to_table, read_events
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.spark.match_stage.matcher_source import Objects
from tidings.spark.match_stage.stage import FLOW, Flow, read_lines
from tidings.spark.state_stage.late_events import late_rows
from tidings.spark.state_stage.processor import read_rows

ANN = bundle_subscribers([Subscriber("ann")], [Subscription("s", "ann", "x = 1")])
times = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=4)


def batch(events: list[Event]) -> pa.RecordBatch:
    return events_to_table(events).combine_chunks().to_batches()[0]


@given(times, st.none() | st.integers(0, 9))
def test_what_is_before_the_watermark_is_told_whole(
    arrived: list[list[int]], watermark: int | None
) -> None:
    events = [
        [Event(f"e{place}-{nth}", {"x": nth}, at) for nth, at in enumerate(some)]
        for place, some in enumerate(arrived)
    ]
    us = None if watermark is None else watermark * 1_000_000
    found = rows(late_rows(map(kept, events), us, read_events), "late")
    late = [each for some in events for each in some if us and each.published_us < us]
    assert [json.loads(row["record"]) for row in found] == [each.to_dict() for each in late]
    assert [row["event"] for row in found] == [each.id for each in late]


def test_the_reason_says_by_how_much() -> None:
    event = Event("old", {}, 7.5)
    [row] = late_rows([kept([event])], 10_000_000, read_events).to_pylist()
    assert row["reason"] == "published 2.5 s before the watermark"


def sent(flow: Flow, given: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for each in flow.batches([given]) for row in each.to_pylist()]


def test_one_bucket_gets_the_rows_of_a_stream_whether_they_match_or_not() -> None:
    events = batch([Event("e1", {"x": 2}, 5), Event("e2", {"x": 3}, 3)])
    made = sent(Flow(Objects(ANN), read_events, 4, streams=True), events)
    held = [row for row in made if row["kind"] == "rows"]
    assert [row["published_us"] for row in held] == [3_000_000]
    frame = pa.Table.from_pylist(made, FLOW).to_pandas()
    found = late_rows(read_rows(iter([frame])).batches, 4_000_000, read_events)
    assert [row["event"] for row in rows(found, "late")] == ["e2"]
    assert {row["kind"] for row in sent(Flow(Objects(ANN), read_events, 4), events)} == {"tick"}


def test_what_cannot_be_read_is_dead_and_not_late_as_well() -> None:
    lines = ['{"id": "e", "published_at": 1, "attributes": {}}', "nonsense"]
    given = pa.RecordBatch.from_pydict({"value": lines})
    made = sent(Flow(Objects(ANN), read_lines, 1, streams=True), given)
    told = read_rows(iter([pa.Table.from_pylist(made, FLOW).to_pandas()]))
    assert len(told.letters) == 1
    found = late_rows(told.batches, 9_000_000, read_lines)
    assert [row["event"] for row in rows(found, "late")] == ["e"]
