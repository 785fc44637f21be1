"""Rules on Spark: batch and stream deliver as the engine does, through restarts and rebuckets."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.test_api import as_forms, frame, in_order, read, run, stream, write_files

import tidings.spark as ts
from tidings import Delivery, Engine, Event
from tidings.formats.arrow import events_to_table
from tidings.testing import Workload, workload

pytestmark = pytest.mark.spark
RULES: list[list[Any]] = [
    [{"name": "quota", "n": 2, "per": "5m"}],
    [{"name": "quiet", "start": "02:01:30", "end": "02:06", "zone": "Europe/Athens"}],
    [{"name": "different", "min": 0.4, "within": "3m"}, {"name": "quota", "n": 3, "per": "hour"}],
    [{"name": "quota", "n": 3}, {"name": "quiet", "start": "00:05", "end": "00:30"}],
    [],
]


@pytest.fixture(scope="module")
def ruled() -> Workload:
    """A stream of ten minutes for subscribers with rules, and an event two days later."""
    work = workload(seed=11, events=60, subscribers=15)
    subscribers = [
        replace(each, policy=replace(each.policy, rules=RULES[number % len(RULES)]))
        for number, each in enumerate(work.subscribers)
    ]
    last = Event("last", {"other": 1}, published_at=200_000, sequence=10**6)
    return Workload(subscribers, work.subscriptions, [*work.events, last])


@pytest.fixture(scope="module")
def engine_and_forms(ruled: Workload) -> tuple[Engine, list[dict[str, Any]]]:
    engine = Engine()
    for subscriber in ruled.subscribers:
        engine.subscribe(subscriber)
    engine.add_many(ruled.subscriptions)
    return engine, in_order(map(Delivery.to_dict, engine.publish_many(ruled.events)))


def test_a_batch_with_rules_gives_the_account_of_the_engine(
    spark: SparkSession, ruled: Workload, engine_and_forms: tuple[Engine, list[dict[str, Any]]]
) -> None:
    engine, expected = engine_and_forms
    publications = frame(spark, events_to_table(ruled.events))
    rows = ts.outcomes(publications, ruled.subscriptions, ruled.subscribers).toArrow()
    kinds = Counter(rows["kind"].to_pylist())
    report = engine.quality()
    assert report.held
    assert report.released
    assert kinds["delivery"] == len(expected)
    assert kinds["dropped"] == report.dropped
    numbers = dict.fromkeys(("held", "released"), 0)
    for row in rows.select(["kind", "position"]).to_pylist():
        if row["kind"] in numbers:
            numbers[row["kind"]] += row["position"]
    assert numbers == {"held": report.held, "released": report.released}


def test_a_stream_with_rules_restarts_and_changes_its_buckets(
    spark: SparkSession,
    ruled: Workload,
    engine_and_forms: tuple[Engine, list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    source, later, rest = (tmp_path / name for name in ("in", "later", "rest"))
    for folder in (source, later, rest):
        folder.mkdir()
    first, second, *others = write_files(later, ruled.events, 20)
    wanted = (ruled.subscriptions, ruled.subscribers)
    for path in (first, second):
        path.rename(source / path.name)
        run(ts.outcomes(stream(spark, source), *wanted, buckets=2), tmp_path / "out")
    for path in others:
        path.rename(rest / path.name)
    state = ts.rebucket(spark, tmp_path / "out" / "_checkpoint", 3)
    more = ts.outcomes(stream(spark, rest), *wanted, buckets=3, state=state)
    run(more, tmp_path / "more")
    folders = (tmp_path / "out", tmp_path / "more")
    forms = [form for folder in folders for form in as_forms(read(folder, "deliveries"))]
    assert in_order(forms) == engine_and_forms[1]
