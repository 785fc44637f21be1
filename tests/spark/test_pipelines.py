"""Pipelines from any source into any sink."""

import json
import os
import runpy
import shutil
import signal
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from tests.spark.processes import by_sequence, read_lines, write_lines
from typer.testing import CliRunner

from tidings import Event
from tidings.app.cli import app
from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan, read_plan
from tidings.app.run.spark import dry_run, run_spark
from tidings.app.run.summary import RunSummary
from tidings.errors import TidingsError
from tidings.formats.files import write_events
from tidings.index_files.versions import IndexFolder
from tidings.spark.ops.metrics import BatchReport, Reporter, Totals
from tidings.store import open_store
from tidings.store.address import read_address

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
EXAMPLES = Path(__file__).parents[2] / "examples"
WISHES = [{"id": "s1", "subscriber": "ann", "where": "n >= 3"}]


@pytest.fixture
def pipeline(tmp_path):
    """Return a function that writes and runs a config with one subscription."""
    write_lines(tmp_path / "wishes.jsonl", WISHES)

    def run(source, sink='path = "out"\nformat = "jsonl"', rest="", engine=run_spark):
        text = f'[source]\n{source}\n[subscriptions]\npath = "wishes.jsonl"\n[sink]\n{sink}\n{rest}'
        (tmp_path / "run.toml").write_text(text)
        plan = make_plan(load_config(tmp_path / "run.toml"))
        return RunSummary.of(plan, list(engine(plan)), seconds=0)

    return run


def delivered(folder):
    return [each["event"] for each in by_sequence(folder / "out")]


def test_the_example_from_store_to_store_delivers_as_in_one_process(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("*.db*", "out"))
    place = tmp_path / "examples" / "store"
    runpy.run_path(str(place / "fill.py"))
    config = load_config(place / "pipeline.toml")
    for engine, name in ((run_spark, "spark"), (run_local, "local")):
        address = read_address(f"sqlite:///{tmp_path}/{name}.db")
        chosen = replace(config, engine=name, sink=SinkConfig(tmp_path / name, "store", address))
        plan = make_plan(chosen)
        account = RunSummary.of(plan, list(engine(plan)), seconds=0)
        assert (account.events, account.deliveries) == (30, sum(account.delivered.values()))
        assert account.deliveries > 30
    spark, local = (notifications(tmp_path / f"{name}.db") for name in ("spark", "local"))
    assert spark == local
    assert {name for name, _ in spark} == set(account.delivered)
    metrics = (place / "tidings.prom").read_text()
    assert f'tidings_deliveries_total{{query="{spark_query(tmp_path)}"}} {len(spark)}\n' in metrics
    (line,) = (place / "batches.jsonl").read_text().splitlines()
    assert json.loads(line)["events"] == 30


def test_a_run_follows_its_store_and_stops_gracefully(tmp_path):
    """A subscription added between two batches counts from the next one on."""
    (tmp_path / "in").mkdir()
    (tmp_path / "run.toml").write_text(
        '[source]\npath = "in/*.jsonl"\n[subscriptions]\nstore = "sqlite:///people.db"\n'
        '[policies.default]\nk = 5\n[sink]\npath = "out"\nformat = "jsonl"\n'
        '[stream]\ntrigger = "1s"\n'
    )

    def publish(name):
        form = {"id": name, "published_at": int(name[1:]), "attributes": {"n": 3}}
        write_lines(tmp_path / f"{name}.new", [form])
        (tmp_path / f"{name}.new").rename(tmp_path / "in" / f"{name}.jsonl")

    with open_store(tmp_path / "people.db") as store:
        store.catalogue.put({"id": "s1", "subscriber": "ann", "where": "n >= 3"})
        publish("e1")
        batches = run_spark(make_plan(load_config(tmp_path / "run.toml")))
        assert dict(next(batches).delivered) == {"ann": 1}
        version = store.catalogue.put({"id": "s2", "subscriber": "bob", "where": "n >= 3"})
        published = IndexFolder((tmp_path / "out" / "index").resolve())
        while published.manifest(published.newest()).source < version:
            time.sleep(0.05)
        publish("e2")
        assert dict(next(batches).delivered) == {"ann": 1, "bob": 1}
        os.kill(os.getpid(), signal.SIGINT)
        assert list(batches) == []


def spark_query(folder):
    return json.loads((folder / "spark" / "tidings.json").read_text())["query"]


def notifications(path):
    names = ("ada", "bruno", "chiara", "dev", "festival-desk", "guest")
    with open_store(path) as store:
        return [
            (name, notification)
            for name in names
            for notification in store.notifications.after(name)
        ]


def test_columns_make_publications_of_any_rows(pipeline, tmp_path):
    """Rows of the rate source: ten rows per batch, numbered from 0."""
    source = """format = "rate-micro-batch"
options = { rowsPerBatch = 10, startTimestamp = 1000, advanceMillisPerBatch = 1000 }
columns = { id = "concat('e', value)", published_at = "timestamp", n = "value" }"""
    endless = '[stream]\ntrigger = "50ms"\n'
    pipeline(source, rest=endless, engine=first_batches(2))
    found = pipeline(source, rest=endless, engine=first_batches(1))
    assert found.events == 10 * found.batches
    here = delivered(tmp_path)  # with a batch more where one was under way when it was stopped
    assert here == [f"e{number}" for number in range(3, len(here) + 3)]
    assert len(here) + 3 in (30, 40, 50)


def first_batches(number):
    """Run some batches on Spark, then stop gracefully."""

    def engine(plan):
        running = run_spark(plan)
        yield from islice(running, number)

    return engine


def test_a_query_makes_publications_of_any_rows(pipeline, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("e1;3;1\ne2;1;2\ne3;7;3\n")
    source = """format = "csv"
schema = "name string, n int, at long"
select = "select name as id, timestamp_seconds(at) as published_at, n from source where n != 1"
options = { path = "in", sep = ";" }"""
    assert pipeline(source).events == 2
    assert delivered(tmp_path) == ["e1", "e3"]


def numbers():
    """Return a source of JSON text with one bad line; it is pickled by value."""

    class Reader(SimpleDataSourceStreamReader):
        def __init__(self, upto):
            self.upto = upto

        def initialOffset(self):  # noqa: N802
            return {"at": 0}

        def read(self, start):
            return self.readBetweenOffsets(start, {"at": self.upto}), {"at": self.upto}

        def readBetweenOffsets(self, start, end):  # noqa: N802
            return iter([(self.line(at),) for at in range(start["at"], end["at"])])

        def line(self, at):
            form = {"id": f"e{at}", "published_at": at, "attributes": {"n": at}}
            return json.dumps(form) if at != 4 else "{broken"

    class Numbers(DataSource):
        @classmethod
        def name(cls):
            return "numbers"

        def schema(self):
            return "value string"

        def simpleStreamReader(self, schema):  # noqa: N802
            return Reader(int(self.options["upto"]))

    return Numbers


def test_a_python_data_source_is_a_source_and_a_bad_line_a_dead_letter(spark, pipeline, tmp_path):
    spark.dataSource.register(numbers())
    found = pipeline('format = "numbers"\noptions = { upto = 6 }')
    assert (found.events, found.dead, delivered(tmp_path)) == (6, 1, ["e3", "e5"])
    (letter,) = read_lines(tmp_path / "out", "dead_letters")
    assert letter["record"] == {"text": "{broken"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('format = "kafka"\noptions = { subscribe = "a" }', r"format = 'kafka': .*kafka"),
        ('format = "rate"\nselect = "select nothing from source"', "format = 'rate': .*`nothing`"),
        ('format = "rate"\ncolumns = { id = "(" }', "format = 'rate': .*[Ss]yntax error"),
        ('format = "rate"\noptions = { rowsPerSecond = "x" }', "format = 'rate': "),
        ('format = "rate"', "published_at|id"),
    ],
)
def test_a_wrong_source_is_refused_before_anything_is_created(pipeline, tmp_path, source, reason):
    with pytest.raises(TidingsError, match=reason):
        pipeline(source)
    assert not (tmp_path / "out/checkpoint").exists()


def events(folder, name, forms):
    path = folder / "in" / name
    path.parent.mkdir(exist_ok=True)
    write_lines(path, forms)
    os.utime(path, (ord(name[0]), ord(name[0])))


def event(at, **attributes):
    return {"id": f"e{at}", "published_at": at, "attributes": attributes}


def test_any_format_of_spark_is_a_sink_and_the_folder_keeps_dead_letters(pipeline, spark, tmp_path):
    events(tmp_path, "a.jsonl", [event(60, n=3), event(61, n=9), {"id": "bad"}])
    events(tmp_path, "b.jsonl", [event(1, n=9)])
    sink = """path = "out"
format = "csv"
select = "select subscriber, event, rank * 2 as twice from deliveries"
options = { path = "table", header = true }"""
    found = pipeline('path = "in"', sink)
    assert (found.deliveries, found.late, found.dead) == (2, 1, 1)
    rows = spark.read.option("header", "true").csv(str(tmp_path / "table")).collect()
    assert sorted(tuple(row) for row in rows) == [("ann", "e60", "2.0"), ("ann", "e61", "2.0")]
    assert [line["event"] for line in read_lines(tmp_path / "out", "late")] == ["e1"]
    assert [line["record"] for line in read_lines(tmp_path / "out", "dead_letters")] == [
        {"id": "bad"}
    ]


def films(path, **columns):
    path.parent.mkdir(exist_ok=True)
    at = pa.array([ord(path.stem)], pa.timestamp("us"))
    parquet.write_table(pa.table({"id": [path.stem], "published_at": at, **columns}), path)
    os.utime(path, (ord(path.stem), ord(path.stem)))


def drift(path):
    films(path, n=["nine"])


def corrupt(path):
    path.write_bytes(b"PAR1 and no more")
    os.utime(path, (ord(path.stem), ord(path.stem)))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (drift, "Parquet column [n]. Expected Spark type bigint, actual Parquet type BINARY"),
        (corrupt, "b.parquet is not a Parquet file. Expected magic number at tail"),
    ],
)
def test_a_parquet_file_that_cannot_be_read_is_named_and_the_stream_goes_on_without_it(
    pipeline, tmp_path, spoil, why
):
    films(tmp_path / "in/a.parquet", n=[5])
    films(tmp_path / "in/b.parquet", n=[7])
    spoil(tmp_path / "in/b.parquet")
    films(tmp_path / "in/c.parquet", n=[9], extra=["more"])
    with pytest.raises(TidingsError) as stopped:
        pipeline('path = "in"')
    assert f"the stream stopped: {tmp_path}/in/b.parquet cannot be read: " in str(stopped.value)
    assert why in str(stopped.value)
    assert 'unreadable = "dead-letter" in [source]' in str(stopped.value)
    assert delivered(tmp_path) == []  # the newest time waits for the next file
    found = pipeline('path = "in"\nunreadable = "dead-letter"')
    assert found.batches == 2
    if spoil is corrupt:
        (letter,) = read_lines(tmp_path / "out", "dead_letters")
        assert letter["record"] == {"file": f"{tmp_path}/in/b.parquet"}
    assert delivered(tmp_path) == ["a", "c"]


def test_a_stream_resumes_after_a_parquet_file_is_repaired(pipeline, tmp_path):
    for name, n in (("a", 5), ("b", 7), ("c", 9)):
        films(tmp_path / f"in/{name}.parquet", n=[n])
    drift(tmp_path / "in/b.parquet")
    with pytest.raises(TidingsError, match=r"b.parquet cannot be read"):
        pipeline('path = "in"')
    films(tmp_path / "in/b.parquet", n=[7])
    pipeline('path = "in"')
    assert delivered(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize(("rest", "seen"), [("", []), ('\nunreadable = "dead-letter"', ["b"])])
def test_more_columns_than_the_first_parquet_file_has_are_seen_file_by_file_only(
    pipeline, tmp_path, rest, seen
):
    write_lines(tmp_path / "wishes.jsonl", [{**WISHES[0], "where": "extra = 'more'"}])
    films(tmp_path / "in/a.parquet", n=[5])
    films(tmp_path / "in/b.parquet", n=[7], extra=["more"])
    found = pipeline(f'path = "in"{rest}')
    assert (found.events, found.dead, delivered(tmp_path)) == (2, 0, seen)


def test_json_events_may_change_their_attributes_in_mid_stream(pipeline, tmp_path):
    """Each event has its own types; an attribute of another family matches nothing."""
    events(tmp_path, "a.jsonl", [event(1, n=3)])
    events(tmp_path, "b.jsonl", [event(2, n="nine"), event(3, n=[1, 4]), event(4, m=9)])
    events(tmp_path, "c.jsonl", [event(5, n={"a": 1}), event(6, n=3.5, new="x"), event(7, n=True)])
    found = pipeline('path = "in"')
    assert (found.events, found.dead) == (7, 1)
    assert delivered(tmp_path) == ["e1", "e3", "e6"]
    (letter,) = read_lines(tmp_path / "out", "dead_letters")
    assert letter["record"]["id"] == "e5"


def test_a_listener_of_the_session_gets_every_batch(spark, pipeline, tmp_path):
    events(tmp_path, "a.jsonl", [event(60, n=3), event(61, n=9)])
    events(tmp_path, "b.jsonl", [event(62, n=9)])
    told: list[BatchReport] = []
    listener = Reporter(told.append)
    spark.streams.addListener(listener)
    try:
        pipeline('path = "in"')
        end = time.monotonic() + 300
        while len(told) < 2 and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
    assert [(each.progress.batch, each.progress.events) for each in told] == [(0, 2), (1, 1)]
    assert told[0].progress.newest_us == 61_000_000
    assert told[-1].totals == Totals(2, 3, 3, 0, 0)
    assert told[-1].query == json.loads((tmp_path / "out/tidings.json").read_text())["query"]


def test_without_a_readable_parquet_file_nothing_is_started(pipeline, tmp_path):
    films(tmp_path / "in/a.parquet", n=[5])
    corrupt(tmp_path / "in/a.parquet")
    with pytest.raises(TidingsError, match="none of 1 Parquet files can be read: "):
        pipeline('path = "in"')


@pytest.mark.parametrize(
    ("suffix", "bad"),
    [("json", b'[{"id": "e1"'), ("csv", b"id,published_at,n\xff\n"), ("arrow", b"ARROW1 no")],
)
def test_a_file_that_cannot_be_read_is_a_dead_letter(pipeline, tmp_path, suffix, bad):
    (tmp_path / "in").mkdir()
    (tmp_path / f"in/a.{suffix}").write_bytes(bad)
    write_events([Event("e1", {"n": 3}, published_at=1)], tmp_path / f"in/b.{suffix}")
    found = pipeline('path = "in"')
    assert (found.dead, delivered(tmp_path)) == (1, ["e1"])
    (letter,) = read_lines(tmp_path / "out", "dead_letters")
    assert letter["record"] == {"file": f"{tmp_path}/in/a.{suffix}"}


def test_a_dry_run_returns_columns_and_plan_and_writes_nothing(tmp_path):
    config = replace(
        load_config(EXAMPLES / "movies/pipeline.toml"), sink=SinkConfig(tmp_path / "out")
    )
    found = dry_run(read_plan(config))
    assert found.columns == (("value", "string"),)
    assert "== Analyzed Logical Plan ==" in found.plan
    assert not (tmp_path / "out").exists()


def test_a_dry_run_on_spark_prints_columns_and_with_verbose_the_plan(tmp_path):
    events(tmp_path, "a.jsonl", [event(1, n=3)])
    write_lines(tmp_path / "wishes.jsonl", WISHES)
    config = tmp_path / "run.toml"
    config.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "wishes.jsonl"\n[sink]\npath = "out"\n'
    )
    result = CliRunner(env={"TERM": "dumb"}).invoke(app, ["run", str(config), "--dry-run"])
    assert result.exit_code == 0
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert (rows["columns"], rows["buckets"], rows["trigger"]) == (
        "value string",
        "8",
        "available-now",
    )
    result = CliRunner().invoke(app, ["run", str(config), "--dry-run", "--verbose", "--json"])
    form = json.loads(result.stdout)
    assert form["columns"] == {"value": "string"}
    assert "== Optimized Logical Plan ==" in form["plan"]
    assert not (tmp_path / "out").exists()
