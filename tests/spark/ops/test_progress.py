"""Reports of Spark as progress, without a session."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.ops.reports import NO_TIME, report

from tidings.spark.ops.progress import Progress, read_progress, time_of_text

PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1"


@pytest.mark.parametrize(
    ("end", "latest", "unread"),
    [
        ({"a": {"0": 3, "1": 9}}, {"a": {"0": 5, "1": 9}, "b": {"0": 4}}, 6),
        ({"key": 7}, {"key": 7}, 0),
        ({"a": {"0": 50}}, {"a": {"0": 5}}, 0),
        (None, {"key": 7}, 7),
        ({"key": 7}, None, None),
        ({"log": "x"}, {"log": "y"}, None),
        ({"shard-0": "4965"}, {"until_ms": 1_795_025_005_305}, None),
        ("3", "5", None),
    ],
)
def test_unread_input_of_a_python_source_is_computed_from_offsets(
    end: Any, latest: Any, unread: int | None
) -> None:
    source = {"description": PYTHON, "endOffset": end, "latestOffset": latest}
    found = read_progress(report(source=source))
    assert found is not None
    assert found.behind == ({} if unread is None else {"offsetsBehindLatest": unread})
    other = read_progress(report(source={**source, "description": "RateStream"}))
    assert other is not None
    assert other.behind == {}


def test_a_report_is_read_with_lag_speed_state_and_unread_input() -> None:
    behind = {"avgOffsetsBehindLatest": "12.5", "maxOffsetsBehindLatest": "20", "other": "x"}
    found = read_progress(report(metrics=behind))
    assert found == Progress(
        batch=3,
        events=50,
        done_us=4_000_000,
        seconds=0.5,
        newest_us=1_000_000,
        deliveries=7,
        late=2,
        dead=1,
        state_rows=16,
        state_bytes=13_884,
        memory_bytes=16_720,
        behind={"avgOffsetsBehindLatest": 12.5, "maxOffsetsBehindLatest": 20.0},
    )
    assert (found.events_per_second, found.lag_s) == (100.0, 3.0)
    assert found.to_dict()["lag_seconds"] == 3.0
    assert found.to_dict()["done_at"] == "1970-01-01T00:00:04Z"


def test_a_query_that_is_not_watched_has_no_progress() -> None:
    """Spark reports an idle trigger in the same way."""
    assert read_progress(report(observed={})) is None


def test_without_a_time_there_is_no_lag() -> None:
    found = read_progress(report(observed=NO_TIME))
    assert found is not None
    assert (found.lag_s, found.to_dict()["lag_seconds"], found.deliveries) == (None, None, 0)


@pytest.mark.spark
def test_the_time_of_a_text_is_a_number_of_seconds_or_rfc_3339(spark: SparkSession) -> None:
    texts = ["1049", "1049.5", "2026-11-15T20:05:00Z", "soon", "1e400", "NaN", ""]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    found = frame.selectExpr(f"unix_micros({time_of_text('text')}) us").collect()
    seconds = [None if row.us is None else row.us / 1e6 for row in found]
    assert seconds == [1049, 1049.5, 1_794_773_100, None, None, None, None]
