"""Ticks, and clocks that tell when a bucket has to be loaded."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, plain_or_diverse, policies
from tests.spark.match_stage.match_batches import deliveries, sent

from tidings import Event, TidingsError
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.watermark import BucketClock, PendingTicks, Tick

some_ticks = st.lists(st.builds(Tick, st.integers(0, 9), st.integers(0, 9)), max_size=6)


@given(st.lists(st.tuples(some_ticks, st.integers(0, 9)), max_size=5))
def test_sequence_numbers_agree_with_a_list_of_all_ticks(
    steps: list[tuple[list[Tick], int]],
) -> None:
    pending, every, watermark, passed = PendingTicks(), list[Tick](), 0, 0
    for new, us in steps:
        pending.add(new)
        every += new
        times = np.arange(watermark, 10)
        before = [
            max([passed, *(tick.sequence for tick in every if tick.us < time)])
            for time in times.tolist()
        ]
        assert pending.sequence_at(times, np.zeros(len(times), np.int64)).tolist() == before
        watermark = max(watermark, us)
        passed = max([passed, *(tick.sequence for tick in every if tick.us <= watermark)])
        pending.pass_until(watermark, 0)
        assert pending.sequence == passed
        pending = PendingTicks(pending.ticks, pending.sequence)
        assert len(pending.ticks) <= 9


def test_events_advance_the_sequence_as_ticks_do() -> None:
    pending = PendingTicks([Tick(5, 7)], 2)
    us, numbers = np.array([1, 4, 5, 6]), np.array([-1, 4, 3, 6])
    assert pending.sequence_at(us, numbers).tolist() == [2, 4, 4, 7]
    pending.pass_until(4, 9)
    assert (pending.sequence, pending.ticks) == (9, [])


ticks = st.lists(st.builds(Tick, st.integers(0, 30).map(lambda s: s * 10**6), st.integers(0, 30)))


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_clock_moves_alone_only_if_the_bucket_emits_nothing(
    window: str, data: st.DataObject
) -> None:
    subscriber = Subscriber("u", data.draw(policies(WINDOWS[window], plain_or_diverse)))
    matcher = Matcher([subscriber], [Subscription("s", "u", where="x = 1", prefrank=0.5)])
    config = BucketSettings(data.draw(st.sampled_from([0, 4_000_000])))
    bucket = Bucket(ListedPolicies.of(matcher.subscribers), config)
    gaps = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    events = [Event(f"e{n}", {"x": 1}, sum(gaps[: n + 1]), n + 1) for n in range(len(gaps))]
    bucket.run(*sent(matcher, events, "u"))
    for some in data.draw(st.lists(ticks.filter(bool), max_size=4)):
        before = bucket.clock
        assert BucketClock.unpack(before.pack()) == before
        moved = before.after(some, config.lateness_us)
        table = bucket.run([], some)
        if moved is not None:
            assert table.num_rows == 0
            assert moved == bucket.clock


def test_a_clock_is_small_and_due_when_the_period_ends() -> None:
    subscriber = Subscriber("u", Policy(window={"name": "periodic", "length": "10s"}))
    matcher = Matcher([subscriber], [Subscription("s", "u", where="x = 1", prefrank=0.5)])
    bucket = Bucket(ListedPolicies.of(matcher.subscribers))
    bucket.run(*sent(matcher, [Event("e", {"x": 1}, 3, 1)], "u"))
    clock: Any = bucket.clock
    assert len(clock.pack()) < 200
    assert clock.due_us == 10_000_000
    for second in range(4, 10):
        clock = clock.after([Tick(second * 1_000_000, second)], 0)
    assert clock.after([Tick(10_000_000, 0)], 0) is None
    again = Bucket(ListedPolicies.of(matcher.subscribers))
    again.unpack(bucket.pack(), clock)
    assert again.watermark_us == 9_000_000
    assert deliveries([again.run([], [Tick(10_000_000, 0)])]).keys() == {"u"}


def test_a_clock_is_due_when_a_waiting_match_is_released() -> None:
    subscriber = Subscriber("u", Policy(window={"name": "sliding", "length": 3}))
    matcher = Matcher([subscriber], [Subscription("s", "u", where="x = 1", prefrank=0.5)])
    bucket = Bucket(ListedPolicies.of(matcher.subscribers), BucketSettings(5_000_000))
    bucket.run(*sent(matcher, [Event("e", {"x": 1}, 3, 1)], "u"))
    assert bucket.clock.after([Tick(7_000_000, 1)], 5_000_000) is not None
    assert bucket.clock.after([Tick(8_000_000, 1)], 5_000_000) is None


def test_the_clock_of_a_new_bucket_is_due() -> None:
    assert BucketClock().after([Tick(5, 1)], 0) is None


@pytest.mark.parametrize(
    "wrong", [b"", b"{", b"[]", b"7", b"{}", b'{"ticks": 3}', b'{"ticks": [], "of": 9}']
)
def test_other_bytes_are_refused(wrong: bytes) -> None:
    with pytest.raises(TidingsError, match="the clock of a bucket"):
        BucketClock.unpack(wrong)


CLOCK = BucketClock(7, 3, (Tick(9, 4),), 11, 5)


def test_a_flipped_bit_is_detected() -> None:
    packed = bytearray(CLOCK.pack())
    packed[-3] ^= 4
    with pytest.raises(TidingsError, match="the clock of a bucket is damaged"):
        BucketClock.unpack(bytes(packed))


def test_a_clock_without_a_checksum_is_still_read() -> None:
    assert BucketClock.unpack(json.dumps(asdict(CLOCK)).encode()) == CLOCK


def test_the_last_ticks_of_a_stream_release_the_newest_time() -> None:
    assert BucketClock().last_ticks([], 1) == []
    assert BucketClock().last_ticks([Tick(7, 3), Tick(5, 9)], 1) == [Tick(8, 0)]
    assert BucketClock(watermark_us=9).last_ticks([Tick(7, 3)], 1) == [Tick(11, 0)]
    assert BucketClock(watermark_us=9).last_ticks([], 1) == [Tick(11, 0)]
