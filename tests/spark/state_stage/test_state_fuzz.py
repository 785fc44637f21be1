"""Damaged or hostile states, match batches and clocks of buckets are refused, or run."""

import json
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.damage import flipped, hostile_columns, hostile_json, run_cases
from tests.fuzz import cases
from tests.spark.match_stage.match_batches import sent

from tidings.errors import StateError, prefix_errors
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.match_batch import FRAME as BATCH_FRAME
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.ops.error_messages import describe_error
from tidings.spark.state_stage.bucket import FRAME, Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.rebucket import rebucketed
from tidings.spark.state_stage.watermark import FRAME as CLOCK_FRAME
from tidings.spark.state_stage.watermark import BucketClock, Tick
from tidings.testing import Workload, workload

HALF = 20
SETTINGS = BucketSettings(lateness_us=30_000_000)
MARKED = pytest.mark.fuzz


@cache
def work() -> Workload:
    return workload(seed=3, events=2 * HALF, subscribers=24)


@cache
def halves() -> list[Any]:
    names = [each.id for each in work().subscribers]
    matcher = Matcher(work().subscribers, work().subscriptions)
    return [sent(matcher, some, names) for some in (work().events[:HALF], work().events[HALF:])]


def bucket() -> Bucket:
    return Bucket(ListedPolicies.of({each.id: each for each in work().subscribers}), SETTINGS)


@cache
def states() -> tuple[bytes, bytes]:
    fresh = bucket()
    fresh.run(*halves()[0])
    return fresh.pack(), fresh.clock.pack()


def drive(blob: bytes, clock: bytes, batches: list[MatchBatch] | None = None) -> Any:
    restored = bucket()
    restored.unpack(blob, BucketClock.unpack(clock))
    later, ticks = halves()[1]
    tables = [restored.run(later if batches is None else batches, ticks)]
    tables.append(restored.run([], [Tick(10**13, 0)]))
    restored.pack()
    return [table.to_pylist() for table in tables]


@cache
def undisturbed() -> Any:
    return drive(*states())


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    undisturbed()


def flip(rng: Random) -> None:
    blob, clock = states()
    assert drive(flipped(rng, blob), clock) == undisturbed(), "another answer"


def flip_batch(rng: Random) -> None:
    [batch] = halves()[1][0]
    outcomes = drive(*states(), [MatchBatch.unpack(flipped(rng, batch.pack()))])
    assert outcomes == undisturbed(), "another answer"


def hostile_batch(rng: Random) -> None:
    [batch] = halves()[1][0]
    columns = hostile_columns(rng, batch.columns())
    drive(*states(), [MatchBatch.unpack(BATCH_FRAME.pack({}, columns))])


def hostile_blob(rng: Random) -> None:
    blob, clock = states()
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
    drive(packed, clock)


def hostile_clock(rng: Random) -> None:
    blob, clock = states()
    hostile = clock
    form = hostile_json(rng, CLOCK_FRAME.unpack(clock)[0])
    if rng.random() < 0.2:
        assert drive(blob, flipped(rng, clock)) == undisturbed(), "another answer"
        return
    with suppress(RecursionError):  # a form may nest deeper than it can be written
        hostile = json.dumps(form).encode()
        if rng.random() < 0.5:
            hostile = CLOCK_FRAME.pack(form, {})
    BucketClock.unpack(hostile).after([Tick(5, 5)], 0)
    drive(blob, hostile)


@MARKED
@pytest.mark.parametrize("case", [flip, flip_batch, hostile_batch, hostile_blob, hostile_clock])
def test_state_of_a_bucket(case: Any) -> None:
    run_cases(case.__name__, case, cases(100))


def test_an_error_names_the_bucket_and_is_found_in_a_spark_error() -> None:
    blob, clock = states()
    with pytest.raises(StateError) as raised, prefix_errors("bucket 7: ", StateError, StateError):
        bucket().unpack(blob[:-1], BucketClock.unpack(clock))
    assert str(raised.value).startswith("bucket 7: the state of a bucket has")
    lines = f"Traceback\n  File x\ntidings.errors.StateError: {raised.value}\n at java"
    assert describe_error(PySparkException(lines)) == str(raised.value)


def test_an_error_names_the_damaged_state() -> None:
    blob, clock = states()
    for state, name in [
        (blob[:-1], "the state of a bucket"),
        (blob[:-200] + bytes(100) + blob[-100:], "the state of a bucket"),
    ]:
        with pytest.raises(StateError, match=f"^{name}.*; start from an earlier snapshot"):
            bucket().unpack(state, BucketClock.unpack(clock))
