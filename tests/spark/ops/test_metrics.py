"""Metrics of queries: totals, a file for Prometheus and JSON Lines, without a session."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress
from tests.spark.ops.reports import NO_TIME, report

from tidings.spark.ops.metrics import (
    BatchReport,
    QueryTotals,
    Reporter,
    Totals,
    json_file,
    prometheus_file,
    prometheus_text,
)
from tidings.spark.ops.progress import Progress

ONE = Progress(batch=4, events=6, done_us=9_000_000, seconds=2.0, deliveries=3, late=2, dead=1)


def tell(listener: Reporter, *reports: StreamingQueryProgress) -> None:
    for progress in reports:
        event: Any = SimpleNamespace(progress=progress)
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
    assert [path.name for path in tmp_path.iterdir()] == ["tidings.prom"]
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


def test_totals_add_up_batch_by_batch() -> None:
    total = Totals().plus(ONE).plus(ONE)
    assert total == Totals(batches=2, events=12, deliveries=6, late=4, dead_letters=2)


def test_each_query_has_its_own_totals() -> None:
    told: list[Any] = []
    queries = QueryTotals(told.append)
    for name in ("a", "b", "a"):
        queries.add(name, ONE)
    queries.reset("a")
    queries.reset("unknown")
    queries.add("a", ONE)
    queries.add("b", ONE)
    assert [(each.query, each.totals.batches) for each in told] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("a", 1),
        ("b", 2),
    ]


def test_a_report_is_one_form_with_its_totals() -> None:
    form = BatchReport("films", ONE, Totals().plus(ONE)).to_dict()
    assert form == {
        "query": "films",
        **ONE.to_dict(),
        "totals": {
            "batches": 1,
            "events": 6,
            "deliveries": 3,
            "late": 2,
            "dead_letters": 1,
            "held": 0,
            "released": 0,
            "dropped": 0,
        },
    }


def test_every_sample_follows_its_help_and_type() -> None:
    lines = prometheus_text({"films": BatchReport("films", ONE, Totals(7))}).splitlines()
    at = lines.index("# HELP tidings_batches_total Finished batches.")
    assert lines[at + 1 : at + 3] == [
        "# TYPE tidings_batches_total counter",
        'tidings_batches_total{query="films"} 7',
    ]
    assert 'tidings_batch{query="films"} 4' in lines
    assert 'tidings_events_per_second{query="films"} 3.0' in lines
    assert 'tidings_last_batch_timestamp_seconds{query="films"} 9.0' in lines


def test_labels_are_escaped() -> None:
    text = prometheus_text({'a\\b"c\nd': BatchReport("", ONE, Totals())})
    assert r'tidings_batch{query="a\\b\"c\nd"} 4' in text.splitlines()


def test_without_queries_there_are_only_headers() -> None:
    assert all(line.startswith("# ") for line in prometheus_text({}).splitlines())


def test_lines_are_appended_to_a_file(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("{}\n")
    export = json_file(path)
    export(BatchReport("films", ONE, Totals()))
    export(BatchReport("films", ONE, Totals()))
    first, *rest = path.read_text().splitlines()
    assert first == "{}"
    assert [json.loads(line)["batch"] for line in rest] == [4, 4]
