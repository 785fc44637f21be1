"""Another number of buckets: deliveries go on as if it had always been so."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, enrolled, plain_or_diverse, policies, run, streams
from tests.spark.match_stage.match_batches import deliveries, rows, sent
from tests.spark.state_stage.test_bucket import FAR, Kept, by_engine, taken

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.plain import PlainFeeds
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.progress_mark import Pulse
from tidings.spark.state_stage.rebucket import rebucketed
from tidings.testing import Workload, workload


def drive(work: Workload, terms: Terms, kept: dict[int, Kept], events: Any) -> list[pa.Table]:
    """Send events to all buckets, five a micro-batch; what they keep is replaced."""
    matcher, found = Matcher(work.subscribers, work.subscriptions), list[pa.Table]()
    for first in range(0, len(events), 5):
        for number in range(terms.buckets):
            mine = [s.id for s in work.subscribers if bucket_of(s.id, terms.buckets) == number]
            batch = sent(matcher, events[first : first + 5], mine)
            found += taken(kept, number, Bucket(matcher.subscribers, terms), batch)
    return found


def others(kept: dict[int, Kept], buckets: int) -> dict[int, Kept]:
    """Give what other buckets keep."""
    states = [(blob, Pulse.unpack(pulse)) for blob, pulse in kept.values()]
    blobs, pulse = rebucketed(states, buckets)
    return {number: (blob, pulse.pack()) for number, blob in blobs.items()}


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (3, 4), (2, 2)])
@pytest.mark.parametrize("lateness", [0, 20])
def test_deliveries_go_on_in_other_buckets(before: int, after: int, lateness: int) -> None:
    work, half = workload(before + after, events=60), 30
    kept: dict[int, Kept] = {}
    late_us = lateness * 1_000_000
    found = drive(work, Terms(late_us, buckets=before), kept, work.events[:half])
    kept = others(kept, after)
    assert sorted(kept) == list(range(after))
    terms = Terms(late_us, buckets=after)
    found += drive(work, terms, kept, work.events[half:])
    again = drive(work, terms, dict(kept), work.events[half:])
    assert not deliveries(again)
    for number in kept:
        bucket = Bucket({each.id: each for each in work.subscribers}, terms)
        found += taken(kept, number, bucket, ([], [Tick(FAR * 1_000_000, 0)]))
    assert deliveries(found) == by_engine(work, f"{lateness}s", until=FAR)
    assert not [row for table in found for row in rows(table, "late")]


def test_each_subscriber_is_written_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    work, kept = workload(3, events=20), dict[int, Kept]()
    drive(work, Terms(0, buckets=4), kept, work.events)
    written: list[str] = []
    snapshot_of = TableFeeds.snapshot_of

    def watched(feeds: TableFeeds, subscribers: Any) -> bytes:
        assert subscribers
        written.extend(subscribers)
        return snapshot_of(feeds, subscribers)

    monkeypatch.setattr(TableFeeds, "snapshot_of", watched)
    assert len(others(kept, 8)) == 8
    assert sorted(written) == sorted(each.id for each in work.subscribers)


def test_nothing_is_no_buckets() -> None:
    assert rebucketed([], 4)[0] == {}


@settings(max_examples=60)
@given(data=st.data())
def test_feeds_that_were_parted_deliver_what_they_would_have_together(data: st.DataObject) -> None:
    names = "uvwxyz"
    window = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    some = [data.draw(policies(window, plain_or_diverse)) for _ in range(2)]
    people = {name: some[data.draw(st.integers(0, 1))] for name in names}
    stream = data.draw(streams(names))
    half = data.draw(st.integers(0, len(stream)))
    table, plain = TableFeeds(), enrolled(PlainFeeds(), people)
    enrolled(table, people)
    run(table, stream[:half])
    run(plain, stream[:half])
    parts = data.draw(st.lists(st.integers(0, 2), min_size=6, max_size=6))
    pieces = [
        table.snapshot_of({n for n, part in zip(names, parts, strict=True) if part == at})
        for at in range(3)
    ]
    again = TableFeeds()
    again.restore_many(pieces)
    key = lambda each: each.subscriber  # noqa: E731
    assert sorted(run(again, stream[half:]), key=key) == sorted(run(plain, stream[half:]), key=key)


def test_parts_of_an_event_that_waits_are_one_again() -> None:
    work = workload(4, events=10)
    terms, kept = Terms(10**9, buckets=4), dict[int, Kept]()
    drive(work, terms, kept, work.events)
    [(blob, pulse)] = others(kept, 1).values()
    bucket = Bucket({each.id: each for each in work.subscribers}, Terms(10**9))
    bucket.unpack(blob, Pulse.unpack(pulse))
    assert len(set(bucket.waiting.events)) == len(bucket.waiting.events)
    assert (np.diff(bucket.waiting.us) >= 0).all()
    matcher = Matcher(work.subscribers, work.subscriptions)
    every = sum(len(matcher.matches(event)) for event in work.events)
    assert len(bucket.waiting.matches.ranks) == every
