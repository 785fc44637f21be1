"""Blobs, parcels and pulses of buckets that are damaged or hostile: refused, or run; no more."""

import json
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
from tidings.spark.match_stage.match_batch import FRAME as PARCEL
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.ops.error_messages import said
from tidings.spark.state_stage.bucket import FRAME, Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.progress_mark import Pulse
from tidings.spark.state_stage.rebucket import rebucketed
from tidings.testing import Workload, workload

HALF = 20
TERMS = Terms(lateness_us=30_000_000)
MARKED = pytest.mark.fuzz


@cache
def work() -> Workload:
    return workload(seed=3, events=2 * HALF, subscribers=24)


@cache
def halves() -> list[Any]:
    made = work()
    names = [each.id for each in made.subscribers]
    matcher = Matcher(made.subscribers, made.subscriptions)
    return [sent(matcher, some, names) for some in (made.events[:HALF], made.events[HALF:])]


def bucket() -> Bucket:
    return Bucket({each.id: each for each in work().subscribers}, TERMS)


@cache
def states() -> tuple[bytes, bytes]:
    made = bucket()
    made.run(*halves()[0])
    return made.pack(), made.pulse.pack()


def drive(blob: bytes, pulse: bytes, parcels: list[Parcel] | None = None) -> Any:
    made = bucket()
    made.unpack(blob, Pulse.unpack(pulse))
    found, ticks = halves()[1]
    told = [made.run(found if parcels is None else parcels, ticks)]
    told.append(made.run([], [Tick(10**13, 0)]))
    made.pack()
    return [each.to_pylist() for each in told]


@cache
def undisturbed() -> Any:
    return drive(*states())


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    undisturbed()


def flip(rng: Random) -> None:
    blob, pulse = states()
    assert drive(flipped(rng, blob), pulse) == undisturbed(), "another answer"


def flip_parcel(rng: Random) -> None:
    [parcel] = halves()[1][0]
    found = drive(*states(), [Parcel.unpack(flipped(rng, parcel.pack()))])
    assert found == undisturbed(), "another answer"


def hostile_parcel(rng: Random) -> None:
    [parcel] = halves()[1][0]
    columns = hostile_columns(rng, parcel.columns())
    drive(*states(), [Parcel.unpack(PARCEL.pack({}, columns))])


def hostile_blob(rng: Random) -> None:
    blob, pulse = states()
    header, columns = FRAME.unpack(blob)
    if rng.random() < 0.2:
        header = hostile_json(rng, header)
    else:
        columns = hostile_columns(rng, columns)
    made = FRAME.pack(header, columns)
    if rng.random() < 0.3:
        rebucketed([(made, Pulse.unpack(pulse))], 2)
    drive(made, pulse)


def hostile_pulse(rng: Random) -> None:
    blob, pulse = states()
    form = hostile_json(rng, json.loads(pulse))
    found = flipped(rng, pulse) if rng.random() < 0.2 else json.dumps(form).encode()
    Pulse.unpack(found).after([Tick(5, 5)], 0)
    drive(blob, found)


@MARKED
@pytest.mark.parametrize("case", [flip, flip_parcel, hostile_parcel, hostile_blob, hostile_pulse])
def test_state_of_a_bucket(case: Any) -> None:
    run_cases(case.__name__, case, cases(100))


def test_an_error_names_the_bucket_and_spark_tells_it_in_a_sentence() -> None:
    blob, pulse = states()
    with pytest.raises(StateError) as raised, prefix_errors("bucket 7: ", StateError, StateError):
        bucket().unpack(blob[:-1], Pulse.unpack(pulse))
    assert str(raised.value).startswith("bucket 7: the state of a bucket should have")
    lines = f"Traceback\n  File x\ntidings.errors.StateError: {raised.value}\n at java"
    assert said(PySparkException(lines)) == str(raised.value)


def test_damage_names_what_is_damaged() -> None:
    blob, pulse = states()
    for state, name in [
        (blob[:-1], "the state of a bucket"),
        (blob[:-200] + bytes(100) + blob[-100:], "the state of a bucket"),
    ]:
        with pytest.raises(StateError, match=f"^{name}.*; start from an earlier snapshot"):
            bucket().unpack(state, Pulse.unpack(pulse))
