"""Reports of Spark as progress and metrics, without a session."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidings.spark.ops.metrics import Reporter, Totals, json_file, prometheus_file, prometheus_text
from tidings.spark.ops.progress import Progress, read_progress

OBSERVED = {
    "tidings_events": {"events": 50, "newest_us": 1_000_000},
    "tidings_outcomes": {"deliveries": 7, "late": 2, "dead": 1},
}
NO_TIME = {"tidings_events": {"events": 0, "newest_us": None}}


def report(
    batch: int = 3,
    name: str | None = "films",
    observed: Any = None,
    metrics: Any = None,
    source: Any = None,
) -> StreamingQueryProgress:
    state = {
        "operatorName": "x",
        "numRowsTotal": 8,
        "numRowsUpdated": 8,
        "allUpdatesTimeMs": 1,
        "numRowsRemoved": 0,
        "allRemovalsTimeMs": 0,
        "commitTimeMs": 1,
        "memoryUsedBytes": 8_360,
        "numRowsDroppedByWatermark": 0,
        "numShufflePartitions": 2,
        "numStateStoreInstances": 2,
        "customMetrics": {"rocksdbSstFileSize": 6_942},
    }
    kafka = {
        "description": "KafkaV2[Subscribe[films]]",
        "startOffset": None,
        "endOffset": None,
        "latestOffset": None,
        "numInputRows": 50,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 1.0,
        "metrics": metrics or {},
    }
    form = {
        "id": "0d6572e8-2253-4fc0-874c-d1fcdcd1fde3",
        "runId": "04cdee89-a879-4374-a77e-915b15773f7c",
        "name": name,
        "timestamp": "1970-01-01T00:00:03.500Z",
        "batchId": batch,
        "batchDuration": 500,
        "numInputRows": 50,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 1.0,
        "durationMs": {},
        "stateOperators": [state, state],
        "sources": [{**kafka, **(source or {})}],
        "sink": {"description": "ForeachBatchSink", "numOutputRows": -1, "metrics": {}},
        "observedMetrics": OBSERVED if observed is None else observed,
    }
    return StreamingQueryProgress.fromJson(form)


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


def tell(listener: Reporter, *reports: StreamingQueryProgress) -> None:
    for each in reports:
        event: Any = SimpleNamespace(progress=each)
        listener.onQueryProgress(event)


def test_a_listener_keeps_totals_and_calls_every_export(tmp_path) -> None:
    told: list[Any] = []
    listener = Reporter(told.append, json_file(tmp_path / "m.jsonl"))
    tell(listener, report(0), report(0, name=None), report(1), report(2, observed={}))
    assert [(each.query, each.progress.batch) for each in told] == [
        ("films", 0),
        ("0d6572e8-2253-4fc0-874c-d1fcdcd1fde3", 0),
        ("films", 1),
    ]
    assert told[-1].totals == Totals(2, 100, 14, 4, 2)
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert lines == [each.to_dict() for each in told]
    assert lines[2]["totals"]["deliveries"] == 14


def test_the_file_for_prometheus_has_each_metric_once_and_a_sample_for_each_query(tmp_path) -> None:
    path = tmp_path / "tidings.prom"
    listener = Reporter(prometheus_file(path))
    behind = {"maxOffsetsBehindLatest": "20"}
    tell(listener, report(0), report(1, name='the "best"\n'), report(1, metrics=behind))
    text = path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["tidings.prom"]
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['tidings_events_total{query="films"}'] == "100"
    assert samples[r'tidings_events_total{query="the \"best\"\n"}'] == "50"
    assert samples['tidings_lag_seconds{query="films"}'] == "3.0"
    assert samples['tidings_behind{query="films",metric="maxOffsetsBehindLatest"}'] == "20.0"
    kinds = [line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len({name for name, _ in kinds}) == len(kinds)
    assert all(kind == ("counter" if name.endswith("_total") else "gauge") for name, kind in kinds)


def test_an_unknown_lag_is_left_out() -> None:
    told: list[Any] = []
    tell(Reporter(told.append), report(observed=NO_TIME))
    assert "tidings_lag_seconds{" not in prometheus_text({"films": told[0]})
    assert "# TYPE tidings_lag_seconds gauge" in prometheus_text({"films": told[0]})


@pytest.mark.parametrize("name", ["films", None])
def test_a_restarted_query_counts_from_zero(name: str | None) -> None:
    told: list[Any] = []
    listener = Reporter(told.append)
    started: Any = SimpleNamespace(name=name, id=report().id)
    other: Any = SimpleNamespace(name="other", id="x")
    for event in (started, started, other):
        listener.onQueryStarted(event)
        tell(listener, report(0, name=name))
    assert [each.totals.events for each in told] == [50, 50, 100]


@pytest.mark.parametrize("name", ["onQueryIdle", "onQueryTerminated"])
def test_other_events_of_a_listener_change_nothing(name: str) -> None:
    told: list[Any] = []
    getattr(Reporter(told.append), name)(SimpleNamespace())
    assert told == []
