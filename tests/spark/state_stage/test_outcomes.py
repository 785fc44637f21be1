"""Outcomes of a bucket as rows, and the cost of a hot subscriber."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.match_stage.match_batches import arrived_rows, match_batch, rows

from tidings import Event, Subscriber, Subscription
from tidings.feed.columnar import ranked_cohort
from tidings.feed.columnar.kernels import layout
from tidings.formats.arrow import events_to_table, read_events
from tidings.formats.json_forms import loads_event
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.model.records import Match
from tidings.model.values import format_time, time_us
from tidings.policy import Policy
from tidings.rules.verdict import QuotaSpent, Verdict
from tidings.spark.match_stage.matcher_source import PickledSource
from tidings.spark.match_stage.stage import BUCKET_ROWS, MatchStage
from tidings.spark.publications import ReadLines
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.bucket import Bucket
from tidings.spark.state_stage.outcomes import late_rows
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.processor import read_rows
from tidings.spark.state_stage.watermark import Tick


def test_a_mean_score_does_not_depend_on_the_order() -> None:
    ranks = np.array([0.1, 0.7, 0.2, 0.3, 1e16, -1e16, 0.5])
    owners = np.array([0, 1, 0, 0, 0, 0, 0], np.int32)
    order = np.array([4, 6, 1, 0, 3, 5, 2])
    one = outcomes.accounts(["u", "v"], owners, ranks)
    assert one == outcomes.accounts(["u", "v"], owners[order], ranks[order])
    assert [(row["subscriber"], row["position"]) for row in one.to_pylist()] == [("u", 6), ("v", 1)]


def test_what_rules_drop_is_a_row_and_what_they_hold_or_release_a_count() -> None:
    spent = QuotaSpent(2, 3_600_000_000)
    verdicts = {
        "u": [
            Verdict("e1", "quota", "held", 1, "", until_us=5),
            Verdict("e2", "quota", "held", 2, "", until_us=5),
            Verdict("e3", "quota", "dropped", 3, spent),
            Verdict("e1", "quota", "released", 5, ""),
        ],
        "v": [Verdict("e1", "quiet", "held", 1, "", until_us=5)],
    }
    rows = outcomes.judged(verdicts).to_pylist()
    named = [(row["kind"], row["subscriber"], row["position"], row["reason"]) for row in rows]
    assert named == [
        ("dropped", "u", None, f"quota: {spent}"),
        ("held", "u", 2, "quota"),
        ("held", "v", 1, "quiet"),
        ("released", "u", 1, "quota"),
    ]
    assert (rows[0]["event"], format_time(time_us(rows[0]["delivered_at"]))) == (
        "e3",
        "1970-01-01T00:00:00.000003Z",
    )
    assert len(outcomes.judged({})) == 0


def crowd(events: int, hot: int) -> tuple[Any, Any]:
    """Return matches of one subscriber with `hot` events, and of each other with one."""
    published = [Event(f"e{n:05}", {}, n, n) for n in range(1, events + 1)]
    matches = [
        [Match(name, event, 0.5, ("s",)) for name in (["hot"] * (n < hot) + [f"u{n}"])]
        for n, event in enumerate(published)
    ]
    return match_batch(published, matches), Tick(published[-1].published_us, events)


def passes(monkeypatch: pytest.MonkeyPatch, hot: int) -> tuple[int, int, Any]:
    """Return the kernel calls of a micro-batch, the bytes of its state, and its outcomes."""
    window = {"name": "sliding", "length": 100}
    subscribers = {f"u{n}": Subscriber(f"u{n}", Policy(k=2, window=window)) for n in range(2000)}
    subscribers["hot"] = Subscriber("hot", Policy(k=2, window=window))
    calls: list[int] = []
    kernel = ranked_cohort.KERNELS[layout.SLIDING]

    def counted(world: Any, sink: Any, offers: Any) -> None:
        calls.append(len(offers[0]))
        kernel(world, sink, offers)

    monkeypatch.setitem(ranked_cohort.KERNELS, layout.SLIDING, counted)
    bucket = Bucket(ListedPolicies.of(subscribers))
    batch, tick = crowd(2000, hot)
    table = bucket.run([batch], [tick])
    return len(calls), len(bucket.pack()), table


def test_a_subscriber_that_matches_everything_costs_no_more_than_its_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, small, _ = passes(monkeypatch, hot=100)
    many, large, table = passes(monkeypatch, hot=2000)
    delivered = [row["subscriber"] for row in rows(table, "delivery")]
    assert {f"u{n}" for n in range(2000)} <= set(delivered)
    assert len(delivered) == 4000
    assert many <= few + 4 <= 100
    assert large - small < 4096


def test_a_dead_letter_of_a_bucket_keeps_the_content_of_its_event() -> None:
    """It can be published again; with its attributes only where they were sent to the bucket."""
    first, second = (
        Event(f"e{n}", {"n": n}, n, n, content={"t": "x"} if n else None) for n in (0, 1)
    )
    matches = [[Match("ann", event, 1.0, ("s1",))] for event in (first, second)]
    batch = match_batch([first, second], matches)
    assert [loads_event(json.loads(record)) for record in outcomes.records(batch)] == [
        first,
        second,
    ]
    short = [json.loads(record) for record in outcomes.records(batch._replace(forms=["", ""]))]
    assert [form.get("content") for form in short] == [None, {"t": "x"}]


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
    return [row for batch in stage.batches([rows]) for row in batch.to_pylist()]


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
