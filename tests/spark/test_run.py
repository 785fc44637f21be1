"""Runs of a config on Spark: the same deliveries as in one process, also after a restart."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import pandas as pd
import pyarrow.dataset
import pytest

import tidings.spark as ts
from tidings import Engine, Event, Policy, Sliding, Subscriber, Subscription
from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.app.run.spark import run_spark
from tidings.app.run.summary import RunSummary
from tidings.errors import TidingsError
from tidings.formats.arrow import events_to_table
from tidings.formats.arrow import read_events as read_rows
from tidings.formats.event_source import find_source
from tidings.formats.files import read_events, write_events, write_subscribers, write_subscriptions
from tidings.formats.layout import Layout
from tidings.model.records import publication_order
from tidings.spark.ops.query_control import SinkGate, follow, start
from tidings.spark.publications import ReadLines
from tidings.spark.sources.read_stream import read_stream
from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
EXAMPLE = Path(__file__).parents[2] / "examples" / "movies" / "pipeline.toml"


def run(engine, config):
    plan = make_plan(config)
    return RunSummary.of(plan, list(engine(plan)), seconds=0)


def deliveries(folder):
    rows = pyarrow.dataset.dataset(folder / "deliveries", partitioning=None).to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["subscriber"], row["sequence"]))


def lines(folder, kind):
    files = sorted((folder / kind).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def without(account, *names):
    return {name: each for name, each in account.to_dict().items() if name not in names}


def test_the_example_delivers_as_the_local_engine_does(tmp_path):
    wrong = {"id": "wrong", "subscriber": "guest", "where": "gnere = 'drama' or rating = '7'"}
    subscriptions = EXAMPLE.with_name("subscriptions.jsonl").read_text() + json.dumps(wrong)
    (tmp_path / "subscriptions.jsonl").write_text(subscriptions)
    config = replace(load_config(EXAMPLE), subscriptions=tmp_path / "subscriptions.jsonl")
    spark = run(run_spark, replace(config, sink=SinkConfig(tmp_path / "spark")))
    local = run(run_local, replace(config, engine="local", sink=SinkConfig(tmp_path / "local")))
    assert deliveries(tmp_path / "spark") == deliveries(tmp_path / "local")
    assert len(deliveries(tmp_path / "spark")) == sum(spark.delivered.values()) > 30
    assert without(spark, "engine", "sink", "quality") == without(
        local, "engine", "sink", "quality"
    )
    for name, value in spark.quality.items():
        assert local.quality[name] == (value if name == "dropped_by" else pytest.approx(value))
    assert spark.diagnosis is not None
    assert [finding.predicate for finding in spark.diagnosis.findings] == [
        "gnere = 'drama'",
        "rating = '7'",
    ]


@pytest.fixture
def folder(tmp_path):
    """A folder of events as CSV, file by file, with a bad row and a list."""
    (tmp_path / "in").mkdir()
    write(tmp_path, "a", 'e1,0,"[""drama"", ""noir""]",2003', "e2,soon,drama,2003", "e3,1,drama")
    (tmp_path / "wishes.jsonl").write_text(
        '{"id": "s1", "subscriber": "ann", "where": "genre = \'drama\'"}\n'
        '{"id": "s2", "subscriber": "bob", "where": "year >= 2004"}\n'
    )
    (tmp_path / "run.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "wishes.jsonl"\n'
        '[sink]\npath = "out"\nformat = "jsonl"\n'
    )
    return tmp_path


def write(folder, name, *rows):
    path = folder / "in" / f"{name}.csv"
    path.write_text("\n".join(["id,published_at,genre,year", *rows]) + "\n")
    os.utime(path, (ord(name), ord(name)))


def test_a_restart_continues_with_the_new_files(folder):
    config = load_config(folder / "run.toml")
    first = run(run_spark, config)
    assert (first.events, first.delivered, first.dead) == (3, {"ann": 1}, 2)
    assert [line["reason"][:20] for line in lines(folder / "out", "dead_letters")] == [
        "the row has 3 cells,",
        "event e2: published_",
    ]
    write(folder, "b", "e4,60,drama,2010")
    write(folder, "c", "e0,30,drama,2010", "e5,90,comedy,2010")
    second = run(run_spark, config)
    assert (second.batches, second.events) == (2, 3)
    assert (second.delivered, second.late, second.dead) == ({"ann": 1, "bob": 2}, 1, 0)
    assert [
        (line["subscriber"], line["event"]) for line in lines(folder / "out", "deliveries")
    ] == [
        ("ann", "e1"),
        ("ann", "e4"),
        ("bob", "e4"),
        ("bob", "e5"),
    ]
    assert [line["record"]["id"] for line in lines(folder / "out", "late")] == ["e0"]
    third = run(run_spark, config)
    assert (third.batches, third.events) == (0, 0)


@pytest.mark.parametrize(("suffix", "sizes"), [(".jsonl", [23, 40, 5]), (".csv", [31, 37])])
def test_of_equal_times_all_engines_take_sequence_then_id(spark, tmp_path, suffix, sizes):
    chance = Random(7)
    events = [
        Event(
            f"e{n % 7}-{n:02}", {"genre": chance.choice("abc"), "year": n}, n // 13, n % 2 or None
        )
        for n in range(sum(sizes))
    ]
    inputs = tmp_path / "minute (1) + 50%"
    inputs.mkdir()
    rest = events
    for number, size in enumerate(sizes):  # no file ends where a second does
        path = inputs / f"{number} ä{suffix}"
        write_events(chance.sample(rest[:size], size), path)
        os.utime(path, (number, number))
        rest = rest[size:]
    wishes = [
        Subscription(f"{name}-{genre}", name, where=f"genre = '{genre}'", prefrank=rank)
        for name in ("slide", "period", "first")
        for genre, rank in (("a", 0.9), ("b", 0.5))
    ]
    write_subscriptions(wishes, tmp_path / "wishes.jsonl")
    windows = {
        "slide": {"name": "sliding", "length": 5},
        "period": {"name": "periodic", "length": "2s"},
        "first": {"name": "continuous"},
    }
    people = [Subscriber(name, Policy(k=2, window=window)) for name, window in windows.items()]
    write_subscribers(people, tmp_path / "people.jsonl")
    (tmp_path / "run.toml").write_text(
        f'[source]\npath = "{inputs.name}"\n[subscriptions]\npath = "wishes.jsonl"\n'
        '[subscribers]\npath = "people.jsonl"\n[sink]\npath = "out"\n'
    )
    config = load_config(tmp_path / "run.toml")
    stream = run(run_spark, replace(config, sink=SinkConfig(tmp_path / "stream")))
    local = run(run_local, replace(config, engine="local", sink=SinkConfig(tmp_path / "local")))
    assert (stream.batches, local.batches, stream.late, local.late) == (len(sizes),) * 2 + (0, 0)
    engine = Engine()
    for person in people:
        engine.subscribe(person)
    for wish in wishes:
        engine.add(wish)
    replayed = [
        delivery
        for event in sorted(events, key=publication_order)
        for delivery in engine.publish(event)
    ]
    expected = keys(delivery.to_dict() for delivery in replayed)
    rows = spark.createDataFrame(events_to_table(chance.sample(events, len(events))))
    batch = ts.feed(rows.repartition(3), wishes, people).toArrow().to_pylist()
    assert keys(deliveries(tmp_path / "stream")) == expected
    assert keys(deliveries(tmp_path / "local")) == expected
    assert keys(batch) == expected
    assert {row[0] for row in expected} == {*windows}


def keys(rows):
    names = ("subscriber", "sequence", "event", "rank", "position")
    return sorted(tuple(row[name] for name in names) for row in rows)


def batches(publications, write, folder):
    running = start(publications.writeStream, SinkGate(write), str(folder / "check"))
    return [(progress.batch, progress.events) for progress in follow(running)]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".json", ".arrow"])
def test_every_format_is_read_as_a_stream(spark, tmp_path, suffix):
    folder = tmp_path / "a {strange} [name]*"
    folder.mkdir()
    events = read_events(EXAMPLE.with_name("events.jsonl"))
    write_events((event for event in events if isinstance(event, Event)), folder / f"films{suffix}")
    publications = read_stream(spark, find_source(folder, f"films{suffix}"))
    rows = []
    assert batches(publications, lambda batch, _: rows.extend(batch.collect()), tmp_path) == [
        (0, 30)
    ]
    assert len(rows) == 30


def write_ordinary(path, rows):
    """Write rows in the format of a suffix; those of pandas have nanoseconds and an index."""
    if path.name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.name.endswith(".csv.gz"):
        pd.DataFrame(rows).to_csv(path, index=False, sep=";")
    else:
        frame = pd.DataFrame(rows)
        unit: Literal["ns", "us"] = "ns" if path.name.startswith("nano") else "us"
        frame["bought on"] = pd.to_datetime(frame["bought on"]).dt.as_unit(unit)
        frame[frame.sku > 0].to_parquet(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv.gz", "micro.parquet", "nano.parquet"])
def test_ordinary_files_are_read_as_in_one_process(spark, tmp_path, name):
    rows = [{"sku": n, "bought on": f"2026-11-{n + 10}", "tag": "a.b"} for n in range(3)]
    write_ordinary(tmp_path / name, rows)
    layout = Layout({"id": "sku", "published_at": "bought on"})
    source = replace(find_source(tmp_path, name), layout=layout)
    expected = [each.to_dict() for each in source.read(tmp_path / name) if isinstance(each, Event)]
    found: list[dict[str, Any]] = []

    def collect(batch, _number):
        table = batch.toArrow()
        lines = table.column_names == ["value", "reason"]
        read = ReadLines() if lines else read_rows
        found.extend(each.to_dict() for part in table.to_batches() for each in read(part))

    assert batches(read_stream(spark, source), collect, tmp_path) == [(0, len(expected))]
    assert sorted(found, key=lambda form: form["id"]) == expected
    assert len(expected) == (2 if "parquet" in name else 3)


def test_an_empty_folder_is_watched(spark, tmp_path):
    (tmp_path / "in").mkdir()
    for form in ("csv", "jsonl", "parquet"):
        source = find_source(tmp_path, "in", form, watched=True)
        check = tmp_path / form
        check.mkdir()
        assert batches(read_stream(spark, source), lambda *_: None, check) == []


def test_empty_lines_are_skipped(spark, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n{}\n  \n")
    publications = read_stream(spark, find_source(tmp_path, "*.jsonl"))
    rows = []
    assert batches(publications, lambda batch, _: rows.extend(batch.collect()), tmp_path) == [
        (0, 1)
    ]
    assert len(rows) == 1


def test_a_stream_that_fails_reports_the_reason(spark, tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    publications = read_stream(spark, find_source(tmp_path, "*.jsonl"))

    def fail(_batch: object, _number: int) -> None:
        raise TidingsError("the disk is full")

    with pytest.raises(TidingsError, match="the stream stopped: the disk is full"):
        batches(publications, fail, tmp_path)


BAD_LINES = {
    "nest too deeply": b"[" * 50_000,
    "is not UTF-8": b'{"id": "\xff", "published_at": 1, "attributes": {}}',
    "4300 digits": b'{"id": "big", "published_at": 1, "attributes": {"n": ' + b"9" * 5_000 + b"}}",
    "that UTF-8 can hold": b'{"id": "\\ud800", "published_at": 1, "attributes": {}}',
    "string_bytes = 50": json.dumps(
        {"id": "long", "published_at": 1, "attributes": {"t": "x" * 100}}
    ).encode(),
}
PIPELINE = """
engine = "spark"
[source]
path = "events/*.jsonl"
[subscriptions]
store = "sqlite:///catalogue.db"
[sink]
format = "jsonl"
path = "out"
[limits]
string_bytes = 50
conjunction_predicates = 2
"""


def test_poison_in_a_store_and_in_files_does_not_stop_others(tmp_path):
    """Each of the two files is a batch; the second continues from the state of the first."""
    with open_store(f"sqlite:///{tmp_path}/catalogue.db") as store:
        store.catalogue.put(Subscriber("ann", Policy(k=2, window=Sliding(4))))
        store.catalogue.put(Subscription("fine", "ann", "n >= 0", prefrank=0.5))
        store.catalogue.put(Subscription("poison", "ann", "n = 1", prefrank=1))
        store.catalogue.put(Subscription("large", "ann", "n >= 0 and t >= 0 and u >= 0"))
    with closing(sqlite3.connect(tmp_path / "catalogue.db")) as database, database:
        database.execute("UPDATE records SET form = replace(form, 'n = 1', 'n = = ((')")
    (tmp_path / "events").mkdir()
    events = [Event(f"e{at}", dict.fromkeys("ntu", at), at, at + 1) for at in range(8)]
    for part in range(2):
        good = [json.dumps(event.to_dict()).encode() for event in events[4 * part : 4 * part + 4]]
        path = tmp_path / "events" / f"{part}.jsonl"
        path.write_bytes(b"\n".join([*BAD_LINES.values(), *good]) + b"\n")
        os.utime(path, (part, part))
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    found = run(run_spark, load_config(tmp_path / "pipeline.toml"))
    assert found.delivered == {"ann": 8}
    assert {tuple(line["matched"]) for line in lines(tmp_path / "out", "deliveries")} == {("fine",)}
    reasons = [line["reason"] for line in lines(tmp_path / "out", "dead_letters")]
    for why in BAD_LINES:
        assert len([reason for reason in reasons if why in reason]) == 2
    left_out = sorted(reason for reason in reasons if "of the store is left out" in reason)
    assert len(left_out) == 2
    assert left_out[0].startswith("subscription 'large' of the store")
    assert left_out[1].startswith("subscription 'poison' of the store")
    assert len(reasons) == 2 * len(BAD_LINES) + len(left_out)
    refused = (tmp_path / "out" / "refused.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in refused) == ["large", "poison"]
