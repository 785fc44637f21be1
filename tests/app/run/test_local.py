"""Runs of a config in one process, and their output."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow.dataset
import pytest

from tidings import Engine, loads_event
from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.app.run.summary import RunSummary
from tidings.formats.event_source import Source
from tidings.model.diagnosis import Diagnosis

EXAMPLE = Path(__file__).parents[3] / "examples" / "movies" / "pipeline.toml"


def event(name, published_at, **attributes):
    return {"id": name, "published_at": published_at, "attributes": attributes}


def write(path, *forms):
    path.write_text("".join(json.dumps(form) + "\n" for form in forms))


def run(config, **options):
    plan = make_plan(config, **options)
    return RunSummary.of(plan, list(run_local(plan)), seconds=0.5)


def lines(folder, kind):
    files = sorted((folder / "out" / kind).glob("*.jsonl"))
    return [form for file in files for form in forms(file)]


def forms(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_order(deliveries):
    return sorted(deliveries, key=lambda form: (form["subscriber"], form["sequence"]))


def test_the_example_delivers_what_the_engine_delivers(tmp_path):
    config = replace(
        load_config(EXAMPLE), engine="local", sink=SinkConfig(tmp_path / "out", "jsonl")
    )
    engine = Engine()
    for subscriber in make_plan(config).subscribers:
        engine.subscribe(subscriber)
    for form in forms(EXAMPLE.with_name("subscriptions.jsonl")):
        engine.add(form)
    events = map(loads_event, forms(EXAMPLE.with_name("events.jsonl")))
    expected = engine.publish_many(event.showing(["title", "director"]) for event in events)
    summary = run(config)
    written = lines(tmp_path, "deliveries")
    assert in_order(written) == in_order(delivery.to_dict() for delivery in expected)
    assert all(form["content"].keys() == {"title", "director"} for form in written)
    assert (summary.events, summary.late, summary.dead) == (30, 0, 0)
    assert set(summary.delivered) == {"ada", "bruno", "chiara", "dev", "festival-desk", "guest"}
    assert sum(summary.delivered.values()) == len(expected)


def test_late_events_are_counted_without_a_warning(folder, caplog):
    batches = list(run_local(make_plan(load_config(folder / "run.toml"))))
    assert sum(batch.late for batch in batches) == 1
    assert not [record for record in caplog.records if "late" in record.getMessage()]


def test_late_events_and_dead_letters_are_written_with_a_reason(folder):
    summary = run(load_config(folder / "run.toml"))
    quality = summary.quality
    assert (quality["matches"], quality["delivered"], quality["share"]) == (5, 5, 1.0)
    assert summary.to_dict() == {
        "quality": quality,
        "engine": "local",
        "batches": 2,
        "events": 7,
        "deliveries": 5,
        "subscribers": {"ann": 3, "bob": 2},
        "late": 1,
        "dead_letters": 2,
        "diagnosis": None,
        "refused": 2,
        "notes": [],
        "channels": [],
        "seconds": 0.5,
        "sink": str(folder / "out"),
    }
    assert [(line["subscriber"], line["event"]) for line in lines(folder, "deliveries")] == [
        ("ann", "e2"),
        ("ann", "e3"),
        ("bob", "e3"),
        ("ann", "e5"),
        ("bob", "e5"),
    ]
    (late,) = lines(folder, "late")
    assert (late["event"], late["record"]["attributes"]) == ("e0", {"year": 9})
    missing, duplicate = lines(folder, "dead_letters")
    assert missing == {
        "record": {"id": "e4"},
        "reason": "event e4: field 'published_at' is missing",
    }
    assert (duplicate["record"]["id"], duplicate["reason"]) == (
        "e3",
        "event 'e3' was published before",
    )


def test_parquet_holds_the_same_records_as_json_lines(folder):
    config = load_config(folder / "run.toml")
    expected = run(config)
    deliveries_before, late_before, dead_before = (
        lines(folder, kind) for kind in ("deliveries", "late", "dead_letters")
    )
    parquet = replace(config, sink=SinkConfig(folder / "columns"))
    assert run(parquet).delivered == expected.delivered
    deliveries, late, dead = (
        pyarrow.dataset.dataset(folder / "columns" / kind, partitioning=None).to_table().to_pylist()
        for kind in ("deliveries", "late", "dead_letters")
    )
    assert [row["event"] for row in deliveries] == [form["event"] for form in deliveries_before]
    assert [json.loads(row["window"]) for row in deliveries] == [
        form["window"] for form in deliveries_before
    ]
    assert [row | {"record": json.loads(row["record"])} for row in late] == late_before
    assert [row | {"record": json.loads(row["record"])} for row in dead] == dead_before
    assert (folder / "columns/deliveries/batch=00000001").is_dir()


def test_lateness_admits_events_out_of_order(folder):
    config = replace(load_config(folder / "run.toml"), lateness="2m")
    assert run(config).late == 0
    assert [line["event"] for line in lines(folder, "late")] == []
    assert ("ann", "e0") in {
        (line["subscriber"], line["event"]) for line in lines(folder, "deliveries")
    }


def test_a_file_that_cannot_be_read_is_a_dead_letter(folder):
    (folder / "3.jsonl").write_text("[")
    write(folder / "4.jsonl", event("e6", 300, year=9))
    csv = load_config(folder / "run.toml")
    csv = replace(csv, source=Source(folder, "3.jsonl", ".json"))
    summary = run(csv)
    assert (summary.events, summary.dead) == (1, 1)
    (letter,) = lines(folder, "dead_letters")
    assert letter["record"] == {"file": str(folder / "3.jsonl")}


@pytest.mark.slow
def test_a_run_writes_every_letter_although_an_engine_keeps_only_the_last(folder):
    many = 10_050
    first = event("first", 100, year=2)
    duplicates = [event("first", 200 + n, year=2) for n in range(many)]
    late = [event(f"late{n}", 0, year=2) for n in range(many)]
    write(folder / "1.jsonl", first, *duplicates)
    write(folder / "2.jsonl", *late, *({"id": n} for n in range(many)))
    summary = run(load_config(folder / "run.toml"))
    assert (summary.late, summary.dead) == (many, 2 * many)
    assert len(lines(folder, "late")) == many
    assert len(lines(folder, "dead_letters")) == 2 * many


def test_neither_the_order_in_files_nor_their_number_changes_the_deliveries(folder):
    chance, outputs = Random(3), []
    events = [event(f"e{n:02}", 60 * (n // 7), year=n % 5) for n in range(60)]
    window = '[policies.default]\nk = 2\nwindow = { name = "sliding", length = 4 }\n'
    config = (folder / "run.toml").read_text().replace("[0-9]", "[0-9]*")
    (folder / "run.toml").write_text(config + window)
    for size in (60, 11, 4, 1):
        for path in folder.glob("[0-9]*.jsonl"):
            path.unlink()
        minutes = sorted(events, key=lambda form: (form["published_at"], chance.random()))
        for number, start in enumerate(range(0, 60, size)):
            piece = minutes[start : start + size]
            chance.shuffle(piece)
            write(folder / f"{number:03}.jsonl", *piece)
        summary = run(load_config(folder / "run.toml"))
        assert (summary.late, summary.dead) == (0, 0)
        outputs.append(in_order(lines(folder, "deliveries")))
    assert outputs == [outputs[0]] * 4
    assert len(outputs[0]) > 20


def test_events_are_checked_against_the_limits_of_the_config(folder):
    with (folder / "run.toml").open("a") as file:
        file.write("[limits]\nattributes = 1\nkept_letters = 1\n")
    write(folder / "1.jsonl", event("wide", 0, year=1, month=2), event("e1", 0, year=5))
    summary = run(load_config(folder / "run.toml"))
    assert "the limit attributes = 1" in lines(folder, "dead_letters")[0]["reason"]
    assert (summary.late, summary.dead) == (0, 2)
    assert {"ann", "bob"} == set(summary.delivered)


def test_wrong_conditions_are_reported_at_the_start_and_at_the_end(folder, monkeypatch):
    monkeypatch.setattr("tidings.app.run.summary.FIRST_LOOK", 3)
    write(
        folder / "subscriptions.jsonl",
        {"id": "s1", "subscriber": "ann", "where": "yaer > 3"},
        {"id": "s2", "subscriber": "ann", "where": "year > '3'"},
        {"id": "s3", "subscriber": "ann", "where": "year > 9999"},
    )
    told: list[Diagnosis] = []
    plan = make_plan(load_config(folder / "run.toml"))
    summary = RunSummary.of(plan, list(run_local(plan, None, told.append)), seconds=1)
    assert [finding.predicate for finding in told[0].findings] == ["yaer > 3", "year > '3'"]
    assert len(told) == 1
    assert summary.diagnosis is not None
    assert [finding.predicate for finding in summary.diagnosis.findings] == [
        "yaer > 3",
        "year > '3'",
        "year > 9999",
    ]
    assert summary.diagnosis.unmatched == 3


def test_content_that_is_not_kept_is_hidden_from_conditions(folder):
    (folder / "films.csv").write_text("id,published_at,genre,url\nf1,99,drama,/f1\n")
    seen = {"id": "s1", "subscriber": "ann", "where": "genre = 'drama'"}
    write(folder / "subscriptions.jsonl", seen, seen | {"id": "s2", "where": "url = '/f1'"})
    more = 'path = "films.csv"\nkeep = ["genre"]\ncontent = ["url", "genre"]'
    config = (folder / "run.toml").read_text().replace('path = "[0-9].jsonl"', more)
    (folder / "run.toml").write_text(config)
    run(load_config(folder / "run.toml"))
    [delivery] = lines(folder, "deliveries")
    assert delivery["matched"] == ["s1"]
    assert delivery["content"] == {"url": "/f1", "genre": "drama"}
