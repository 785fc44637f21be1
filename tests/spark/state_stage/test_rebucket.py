"""Deliveries continue after a change of the number of buckets as if nothing had changed."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, enrolled, plain_or_diverse, policies, run, streams
from tests.spark.match_stage.match_batches import deliveries, rows, sent
from tests.spark.state_stage.test_bucket import FAR, Packed, by_engine, run_batch

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.plain import PlainFeeds
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.rebucket import rebucketed
from tidings.spark.state_stage.watermark import BucketClock, Tick
from tidings.testing import Workload, workload


def drive(
    work: Workload, config: BucketSettings, states: dict[int, Packed], events: Any
) -> list[pa.Table]:
    """Run events through all buckets, five per micro-batch, updating their states."""
    matcher, tables = Matcher(work.subscribers, work.subscriptions), list[pa.Table]()
    for first in range(0, len(events), 5):
        for number in range(config.buckets):
            own = [s.id for s in work.subscribers if bucket_of(s.id, config.buckets) == number]
            batch = sent(matcher, events[first : first + 5], own)
            tables += run_batch(
                states, number, Bucket(ListedPolicies.of(matcher.subscribers), config), batch
            )
    return tables


def rebucket_states(states: dict[int, Packed], buckets: int) -> dict[int, Packed]:
    """Return the states of another number of buckets."""
    unpacked = [(blob, BucketClock.unpack(clock)) for blob, clock in states.values()]
    blobs, clock = rebucketed(unpacked, buckets)
    return {number: (blob, clock.pack()) for number, blob in blobs.items()}


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (3, 4), (2, 2)])
@pytest.mark.parametrize("lateness", [0, 20])
def test_deliveries_continue_in_other_buckets(before: int, after: int, lateness: int) -> None:
    work, half = workload(before + after, events=60), 30
    states: dict[int, Packed] = {}
    late_us = lateness * 1_000_000
    tables = drive(work, BucketSettings(late_us, buckets=before), states, work.events[:half])
    states = rebucket_states(states, after)
    assert sorted(states) == list(range(after))
    config = BucketSettings(late_us, buckets=after)
    tables += drive(work, config, states, work.events[half:])
    again = drive(work, config, dict(states), work.events[half:])
    assert not deliveries(again)
    for number in states:
        bucket = Bucket(
            ListedPolicies.of({subscriber.id: subscriber for subscriber in work.subscribers}),
            config,
        )
        tables += run_batch(states, number, bucket, ([], [Tick(FAR * 1_000_000, 0)]))
    assert deliveries(tables) == by_engine(work, f"{lateness}s", until=FAR)
    assert not [row for table in tables for row in rows(table, "late")]


def test_each_subscriber_is_written_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    work, states = workload(3, events=20), dict[int, Packed]()
    drive(work, BucketSettings(0, buckets=4), states, work.events)
    written: list[str] = []
    snapshot_of = TableFeeds.snapshot_of

    def watched(feeds: TableFeeds, subscribers: Any) -> bytes:
        assert subscribers
        written.extend(subscribers)
        return snapshot_of(feeds, subscribers)

    monkeypatch.setattr(TableFeeds, "snapshot_of", watched)
    assert len(rebucket_states(states, 8)) == 8
    assert sorted(written) == sorted(subscriber.id for subscriber in work.subscribers)


def test_no_state_has_no_buckets() -> None:
    assert rebucketed([], 4)[0] == {}


@settings(max_examples=60)
@given(data=st.data())
def test_split_feeds_deliver_as_they_would_together(data: st.DataObject) -> None:
    names = "uvwxyz"
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    some = [data.draw(policies(window, plain_or_diverse)) for _ in range(2)]
    drawn = {name: some[data.draw(st.integers(0, 1))] for name in names}
    stream = data.draw(streams(names))
    half = data.draw(st.integers(0, len(stream)))
    table, plain = TableFeeds(), enrolled(PlainFeeds(), drawn)
    enrolled(table, drawn)
    run(table, stream[:half])
    run(plain, stream[:half])
    parts = data.draw(st.lists(st.integers(0, 2), min_size=6, max_size=6))
    pieces = [
        table.snapshot_of({n for n, part in zip(names, parts, strict=True) if part == number})
        for number in range(3)
    ]
    again = TableFeeds()
    again.restore_many(pieces)
    key = lambda each: each.subscriber  # noqa: E731
    assert sorted(run(again, stream[half:]), key=key) == sorted(run(plain, stream[half:]), key=key)


def test_the_parts_of_a_waiting_event_are_joined() -> None:
    work = workload(4, events=10)
    config, states = BucketSettings(10**9, buckets=4), dict[int, Packed]()
    drive(work, config, states, work.events)
    [(blob, clock)] = rebucket_states(states, 1).values()
    bucket = Bucket(
        ListedPolicies.of({subscriber.id: subscriber for subscriber in work.subscribers}),
        BucketSettings(10**9),
    )
    bucket.unpack(blob, BucketClock.unpack(clock))
    assert len(set(bucket.waiting.events)) == len(bucket.waiting.events)
    assert (np.diff(bucket.waiting.us) >= 0).all()
    matcher = Matcher(work.subscribers, work.subscriptions)
    every = sum(len(matcher.matches(event)) for event in work.events)
    assert len(bucket.waiting.matches.ranks) == every
