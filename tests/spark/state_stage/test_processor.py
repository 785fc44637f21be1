"""The state operator in real streams: clocks that close periods, and other numbers of buckets."""

import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from tests.spark.state_stage.test_bucket import by_engine
from tests.spark.test_api import as_forms, in_order, read, run, stream, write_files

import tidings.spark as ts
from tidings import Event, Periodic, Policy, Subscriber, Subscription, TidingsError
from tidings.formats.arrow import read_events
from tidings.formats.files import write_events
from tidings.spark.session import SHUFFLE
from tidings.spark.state_stage.bucket import BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.processor import BucketRunner, bucket_processor, clock_ticks, spread
from tidings.testing import workload

pytestmark = pytest.mark.spark
SUBSCRIPTIONS = [Subscription("s", "u", where="x = 1")]


def wait_for(done: Any, query: Any, seconds: int = 300) -> None:
    """Wait until a condition holds while a query runs, then stop the query."""
    try:
        for _ in range(10 * seconds):
            if done():
                return
            assert query.isActive, query.exception()
            time.sleep(0.1)
        pytest.fail("the condition did not hold in time")
    finally:
        query.stop()


def test_a_clock_ends_a_period_after_the_last_event(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    write_events([Event("e", {"x": 1}, published_at=time.time())], source / "e.jsonl")
    subscribers = [Subscriber("u", Policy(window=Periodic("2s")))]
    rows: list[Any] = []

    def keep(batch: DataFrame, _: int) -> None:
        rows.extend(batch.collect())

    timed = ts.feed(stream(spark, source), SUBSCRIPTIONS, subscribers, clock="1s", buckets=2)
    query = timed.writeStream.foreachBatch(keep).start()
    wait_for(lambda: bool(rows), query)
    assert [(row.subscriber, row.event) for row in rows] == [("u", "e")]


def test_a_process_that_asks_for_the_states_loads_nothing_of_the_stages() -> None:
    """Spark starts one with each query, and waits for it."""
    runner = BucketRunner(ListedPolicies.of({}), BucketSettings(buckets=2), read_events)
    code = """
import pickle, sys
states = []
class Handle:
    def getValueState(self, *names):
        states.append(names)
pickle.load(sys.stdin.buffer).init(Handle())
assert states == [("bucket", "blob binary"), ("pulse", "pulse binary")]
loaded = {"tidings", "numba", "pandas", "pyarrow"} & set(sys.modules)
assert not loaded, loaded
"""
    pickled = CPickleSerializer().dumps(bucket_processor(runner))
    child = subprocess.run(
        [sys.executable, "-c", code], check=False, input=pickled, capture_output=True
    )
    assert child.returncode == 0, child.stderr


def test_a_replayed_batch_has_the_same_ticks(spark: SparkSession, tmp_path: Path) -> None:
    batches: dict[int, set[Any]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        rows = {(row.bucket, row.kind, row.published_us, row.sequence) for row in batch.collect()}
        assert batches.setdefault(number, rows) == rows

    def start() -> Any:
        ticks = clock_ticks(spark, 2, 1_000_000)
        writer = ticks.writeStream.foreachBatch(keep).trigger(processingTime="1 second")
        return writer.option("checkpointLocation", str(tmp_path)).start()

    wait_for(lambda: len(batches) > 3, start())
    last = max(int(path.name) for path in (tmp_path / "commits").iterdir() if path.name.isdigit())
    (tmp_path / "commits" / str(last)).unlink()
    (tmp_path / "commits" / f".{last}.crc").unlink(missing_ok=True)
    before = len(batches)
    wait_for(lambda: len(batches) > before, start())
    ticks = sorted({us for rows in batches.values() for _, _, us, _ in rows})
    assert {later - us for us, later in pairwise(ticks)} == {1_000_000}
    assert {bucket for rows in batches.values() for bucket, *_ in rows} == {0, 1}


def test_wrong_clocks_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    lines = stream(spark, tmp_path)
    with pytest.raises(TidingsError, match=r"whole number of seconds, not 0\.5 s"):
        ts.feed(lines, SUBSCRIPTIONS, clock="500ms")
    with pytest.raises(TidingsError, match="until is for batches"):
        ts.feed(lines, SUBSCRIPTIONS, until=5)
    with pytest.raises(TidingsError, match="clock is for streams"):
        ts.feed(spark.sql("select 'e' id, now() published_at, 1 x"), SUBSCRIPTIONS, clock="1s")


def test_a_new_query_continues_with_the_state_of_fewer_buckets(
    spark: SparkSession, tmp_path: Path
) -> None:
    work = workload(seed=11, events=60, subscribers=12)
    first, second, out = tmp_path / "a", tmp_path / "b", tmp_path / "out"
    for folder, events in ((first, work.events[:30]), (second, work.events[30:])):
        folder.mkdir()
        write_files(folder, events)
    run(ts.outcomes(stream(spark, first), work.subscriptions, work.subscribers, buckets=2), out)
    state = ts.rebucket(spark, out / "_checkpoint", 5)
    assert [row.bucket for row in state.orderBy("bucket").collect()] == list(range(5))
    more = ts.outcomes(
        stream(spark, second), work.subscriptions, work.subscribers, buckets=5, state=state
    )
    run(more, tmp_path / "more")
    forms = [
        form for folder in (out, tmp_path / "more") for form in as_forms(read(folder, "deliveries"))
    ]
    expected = [form for forms in by_engine(work).values() for form in forms]
    assert in_order(forms) == in_order(expected)
    write_events([Event("new", {"x": 1}, published_at=10**6, sequence=99)], first / "new.jsonl")
    with pytest.raises(StreamingQueryException, match="has 2 buckets, but the option buckets is 5"):
        run(ts.outcomes(stream(spark, first), work.subscriptions, work.subscribers, buckets=5), out)


@pytest.mark.parametrize("buckets", [1, 8, 12])
def test_tasks_of_a_batch_have_equally_many_buckets(spark: SparkSession, buckets: int) -> None:
    numbers = spark.range(buckets).select(f.col("id").cast("int").alias("bucket"))
    tasks = spread(numbers, buckets).select(f.spark_partition_id()).collect()
    sizes = Counter(task for (task,) in tasks).values()
    assert len(sizes) == min(buckets, int(spark.conf.get(SHUFFLE) or 0))
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_is_shuffled_once(spark: SparkSession) -> None:
    events = spark.createDataFrame([("e", 0, 1)], "id string, published_at long, x long")
    deliveries: Any = ts.feed(events, SUBSCRIPTIONS, until=10)
    plan = deliveries._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange") == 1
