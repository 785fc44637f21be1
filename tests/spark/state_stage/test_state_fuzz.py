"""Damaged or hostile states, match batches and clocks of buckets are refused, or run."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from tests.damage import flipped, hostile_columns, hostile_json, run_cases
from tests.fuzz import cases
from tests.spark.match_stage.match_batches import sent

from tidings.errors import StateError, prefix_errors
from tidings.policy import Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.match_batch import FRAME as BATCH_FRAME
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.ops.error_messages import describe_error
from tidings.spark.state_stage.bucket import FRAME, Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.rebucket import rebucketed
from tidings.spark.state_stage.watermark import FRAME as CLOCK_FRAME
from tidings.spark.state_stage.watermark import BucketClock, Tick
from tidings.testing import workload

HALF = 20
SETTINGS = BucketSettings(lateness_us=30_000_000)
MARKED = pytest.mark.fuzz


class SmallBucket(NamedTuple):
    """Some subscribers of a workload, and all events: few policies make a case cheap."""

    subscribers: Sequence[Subscriber]
    halves: list[Any]

    def empty(self) -> Bucket:
        policies = ListedPolicies.of({subscriber.id: subscriber for subscriber in self.subscribers})
        return Bucket(policies, SETTINGS)

    def state(self) -> tuple[bytes, bytes]:
        fresh = self.empty()
        fresh.run(*self.halves[0])
        return fresh.pack(), fresh.clock.pack()

    def drive(self, blob: bytes, clock: bytes, batches: list[MatchBatch] | None = None) -> Any:
        restored = self.empty()
        restored.unpack(blob, BucketClock.unpack(clock))
        later, ticks = self.halves[1]
        tables = [restored.run(later if batches is None else batches, ticks)]
        tables.append(restored.run([], [Tick(10**13, 0)]))
        restored.pack()
        return [table.to_pylist() for table in tables]


class StateCase(NamedTuple):
    """A bucket, its state and clock after the first half, and what the second half delivers."""

    bucket: SmallBucket
    blob: bytes
    clock: bytes
    undisturbed: Any


@cache
def state_cases() -> list[StateCase]:
    work = workload(seed=3, events=2 * HALF, subscribers=24)
    found = []
    for group in range(4):
        subscribers = work.subscribers[group::4]
        names = [subscriber.id for subscriber in subscribers]
        wanted = [
            subscription for subscription in work.subscriptions if subscription.subscriber in names
        ]
        matcher = Matcher(subscribers, wanted)
        halves = [sent(matcher, some, names) for some in (work.events[:HALF], work.events[HALF:])]
        bucket = SmallBucket(subscribers, halves)
        state = bucket.state()
        found.append(StateCase(bucket, *state, bucket.drive(*state)))
    return found


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    state_cases()


def flip(rng: Random) -> None:
    bucket, blob, clock, undisturbed = rng.choice(state_cases())
    assert bucket.drive(flipped(rng, blob), clock) == undisturbed, "another answer"


def flip_batch(rng: Random) -> None:
    bucket, blob, clock, undisturbed = rng.choice(state_cases())
    [batch] = bucket.halves[1][0]
    outcomes = bucket.drive(blob, clock, [MatchBatch.unpack(flipped(rng, batch.pack()))])
    assert outcomes == undisturbed, "another answer"


def hostile_batch(rng: Random) -> None:
    bucket, blob, clock, _ = rng.choice(state_cases())
    [batch] = bucket.halves[1][0]
    columns = hostile_columns(rng, batch.columns())
    bucket.drive(blob, clock, [MatchBatch.unpack(BATCH_FRAME.pack({}, columns))])


def hostile_blob(rng: Random) -> None:
    bucket, blob, clock, _ = rng.choice(state_cases())
    header, columns = FRAME.unpack(blob)
    if rng.random() < 0.2:
        header = hostile_json(rng, header)
    else:
        columns = hostile_columns(rng, columns)
    packed = blob
    with suppress(RecursionError):  # a header may nest deeper than it can be written
        packed = FRAME.pack(header, columns)
    if rng.random() < 0.3:
        rebucketed([(packed, BucketClock.unpack(clock))], 2)
    bucket.drive(packed, clock)


def hostile_clock(rng: Random) -> None:
    bucket, blob, clock, undisturbed = rng.choice(state_cases())
    hostile = clock
    form = hostile_json(rng, CLOCK_FRAME.unpack(clock)[0])
    if rng.random() < 0.2:
        assert bucket.drive(blob, flipped(rng, clock)) == undisturbed, "another answer"
        return
    with suppress(RecursionError):  # a form may nest deeper than it can be written
        hostile = json.dumps(form).encode()
        if rng.random() < 0.5:
            hostile = CLOCK_FRAME.pack(form, {})
    BucketClock.unpack(hostile).after([Tick(5, 5)], 0)
    bucket.drive(blob, hostile)


@MARKED
@pytest.mark.parametrize("case", [flip, flip_batch, hostile_batch, hostile_blob, hostile_clock])
def test_state_of_a_bucket(case: Any) -> None:
    run_cases(case.__name__, case, cases(100))


def test_an_error_names_the_bucket_and_is_found_in_a_spark_error() -> None:
    bucket, blob, clock, _ = state_cases()[0]
    with pytest.raises(StateError) as raised, prefix_errors("bucket 7: ", StateError, StateError):
        bucket.empty().unpack(blob[:-1], BucketClock.unpack(clock))
    assert str(raised.value).startswith("bucket 7: the state of a bucket has")
    lines = f"Traceback\n  File x\ntidings.errors.StateError: {raised.value}\n at java"
    assert describe_error(PySparkException(lines)) == str(raised.value)


def test_an_error_names_the_damaged_state() -> None:
    bucket, blob, clock, _ = state_cases()[0]
    for state, name in [
        (blob[:-1], "the state of a bucket"),
        (blob[:-200] + bytes(100) + blob[-100:], "the state of a bucket"),
    ]:
        with pytest.raises(StateError, match=f"^{name}.*; start from an earlier snapshot"):
            bucket.empty().unpack(state, BucketClock.unpack(clock))
