"""The stages of the Spark path without Spark: any split into batches delivers the same."""

import json
import zlib
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tidings import Delivery, Engine, Event, TidingsError
from tidings.columns import events_to_table, read_events
from tidings.matching import Matcher
from tidings.spark.bucket import Bucket, Row
from tidings.spark.flow import FLOW, Flow, bucket_of
from tidings.testing import Workload, workload

BUCKETS = 3


def delivered_by_engine(work: Workload, lateness: str = "0s") -> dict[str, list[dict[str, Any]]]:
    engine = Engine(lateness)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    return by_subscriber(map(Delivery.to_dict, engine.publish_many(work.events)))


def by_subscriber(forms: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for form in forms:
        found.setdefault(form["subscriber"], []).append(form)
    return found


def split(events: list[Event], chance: Random) -> Iterator[list[Event]]:
    while events:
        size = chance.randint(1, 12)
        yield events[:size]
        events = events[size:]


def flow_rows(flow: Flow, table: pa.Table) -> dict[int, list[Row]]:
    rows: dict[int, list[Row]] = {}
    for batch in flow.batches(table.to_batches(max_chunksize=5)):
        assert batch.schema == FLOW
        for row in batch.to_pylist():
            fields = (row["kind"], row["published_us"] or 0, row["sequence"], row["event"] or "")
            rows.setdefault(row["bucket"], []).append(Row(*fields, row["body"] or ""))
    return rows


def outcomes(work: Workload, lateness_us: int = 0, seed: int = 1) -> list[dict[str, Any]]:
    """Run the stages as Spark does: each bucket is packed away between batches."""
    chance = Random(seed)
    matcher = Matcher(work.subscribers, work.subscriptions)
    flow = Flow(matcher, read_events, BUCKETS)
    blobs: dict[int, bytes] = {}
    found: list[dict[str, Any]] = []
    for batch in split(work.events, chance):
        for number, rows in flow_rows(flow, events_to_table(batch)).items():
            bucket = Bucket(matcher.subscribers, lateness_us)
            if number in blobs:
                bucket.unpack(blobs[number])
            chance.shuffle(rows)
            found += bucket.run(rows)
            blobs[number] = bucket.pack()
    return found


def deliveries(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    forms = []
    for row in found:
        if row["kind"] == "delivery":
            window = json.loads(row["window"])
            at = row["delivered_at"].isoformat().replace("+00:00", "Z")
            kept = {name: value for name, value in row.items() if name != "kind"}
            forms.append(kept | {"window": window, "delivered_at": at})
    return by_subscriber(forms)


@pytest.mark.parametrize("seed", range(12))
def test_every_policy_delivers_what_the_engine_delivers(seed: int) -> None:
    work = workload(seed, events=60)
    assert deliveries(outcomes(work, seed=seed)) == delivered_by_engine(work)


def test_the_account_counts_every_match() -> None:
    work = workload(3)
    matcher = Matcher(work.subscribers, work.subscriptions)
    matches = [match.subscriber for event in work.events for match in matcher.matches(event)]
    counted: dict[str, int] = {}
    for row in outcomes(work):
        if row["kind"] == "account":
            counted[row["subscriber"]] = counted.get(row["subscriber"], 0) + row["position"]
    assert counted == {name: matches.count(name) for name in set(matches)}


def test_out_of_order_within_the_lateness_changes_nothing() -> None:
    work = workload(5)
    mix = sorted(work.events, key=lambda each: (each.published_us // 20_000_000, each.id[::-1]))
    mixed = Workload(work.subscribers, work.subscriptions, mix)
    expected = delivered_by_engine(work, "30s")
    assert deliveries(outcomes(mixed, lateness_us=30_000_000)) == expected


def test_an_event_from_the_past_comes_out_as_late() -> None:
    work = workload(5)
    old = Event("old", work.events[0].attributes, published_at=-1000, sequence=1)
    found = outcomes(Workload(work.subscribers, work.subscriptions, [*work.events, old]))
    assert {row["event"] for row in found if row["kind"] == "late"} == {"old"}


def test_an_event_published_again_is_a_dead_letter_and_not_delivered_again() -> None:
    work = workload(5)
    again = [*work.events, work.events[-1]]
    found = outcomes(Workload(work.subscribers, work.subscriptions, again))
    assert deliveries(found) == delivered_by_engine(work)
    assert {row["reason"] for row in found if row["kind"] == "dead"} == {
        f"event {work.events[-1].id!r} was published before"
    }


def test_a_bad_record_is_a_dead_letter_and_stops_nothing() -> None:
    matcher = Matcher()
    columns = {"id": ["a", None, "c"], "published_at": [0, 0, 0], "x": [1.0, 2.0, float("nan")]}
    table = pa.table(columns)
    rows = flow_rows(Flow(matcher, read_events, BUCKETS), table)
    found = list(Bucket({}).run(rows[0]))
    assert [row["kind"] for row in found] == ["dead", "dead"]
    assert "nan" in found[1]["reason"]


def test_state_of_another_version_is_refused() -> None:
    bucket = Bucket({})
    text = zlib.decompress(bucket.pack()).replace(b'"version": 1', b'"version": 99')
    with pytest.raises(TidingsError, match="begun with version 99, and this is 1"):
        bucket.unpack(zlib.compress(text))


def test_state_of_another_number_of_buckets_is_refused() -> None:
    with pytest.raises(TidingsError, match="begun with buckets 8, and this is 4"):
        Bucket({}, buckets=4).unpack(Bucket({}, buckets=8).pack())


def test_a_bucket_is_the_same_in_every_process() -> None:
    assert [bucket_of(name, 8) for name in ("addison", "carson", "bob")] == [1, 3, 0]
