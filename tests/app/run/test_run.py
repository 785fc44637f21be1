"""A run of a config in one process: what it writes, does without, and never destroys."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from tidings import Engine, Policy
from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.app.run.spark import match_inputs
from tidings.app.run.summary import RunSummary
from tidings.errors import TidingsError
from tidings.formats.event_source import Source
from tidings.index_files.version_cache import FolderPolicies
from tidings.index_files.versions import IndexFolder as Index
from tidings.store import open_store

EXAMPLE = Path(__file__).parents[3] / "examples" / "movies" / "pipeline.toml"


def event(name, at, **attributes):
    return {"id": name, "published_at": at, "attributes": attributes}


def write(path, *forms):
    path.write_text("".join(json.dumps(form) + "\n" for form in forms))


@pytest.fixture
def folder(tmp_path):
    """A folder with two files of events, of which some are late, doubled or broken."""
    good = [event("e1", 0, year=1), event("e2", 60, year=2), event("e3", 120, year=3)]
    write(tmp_path / "1.jsonl", *good)
    late, twin = event("e0", 30, year=9), event("e3", 180, year=9)
    write(tmp_path / "2.jsonl", late, twin, {"id": "e4"}, event("e5", 240, year=9))
    write(
        tmp_path / "subscriptions.jsonl",
        {"id": "s1", "subscriber": "ann", "where": "year >= 2"},
        {"id": "s2", "subscriber": "bob", "where": "year >="},
        {"id": "s3", "subscriber": "bob", "where": "year >= 3"},
        {"id": "s1", "subscriber": "bob", "where": "year >= 4"},
    )
    (tmp_path / "run.toml").write_text(
        'engine = "local"\n[source]\npath = "[0-9].jsonl"\n[subscriptions]\n'
        'path = "subscriptions.jsonl"\n[sink]\npath = "out"\nformat = "jsonl"\n'
    )
    return tmp_path


def run(config, **options):
    plan = make_plan(config, **options)
    return RunSummary.of(plan, list(run_local(plan)), seconds=0.5)


def lines(folder, kind):
    files = sorted((folder / "out" / kind).glob("*.jsonl"))
    return [form for file in files for form in forms(file)]


def forms(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_order(found):
    return sorted(found, key=lambda form: (form["subscriber"], form["sequence"]))


def test_the_example_delivers_what_the_engine_delivers(tmp_path):
    config = replace(
        load_config(EXAMPLE), engine="local", sink=SinkConfig(tmp_path / "out", "jsonl")
    )
    engine = Engine()
    for subscriber in make_plan(config).subscribers:
        engine.subscribe(subscriber)
    for form in forms(EXAMPLE.with_name("subscriptions.jsonl")):
        engine.add(form)
    expected = engine.publish_many(forms(EXAMPLE.with_name("events.jsonl")))
    account = run(config)
    found = lines(tmp_path, "deliveries")
    assert in_order(found) == in_order(delivery.to_dict() for delivery in expected)
    assert (account.events, account.late, account.dead) == (30, 0, 0)
    assert set(account.delivered) == {"ada", "bruno", "chiara", "dev", "festival-desk", "guest"}
    assert sum(account.delivered.values()) == len(expected)


def test_late_events_are_counted_and_not_warned_of(folder, caplog):
    config = load_config(folder / "run.toml")
    batches = list(run_local(make_plan(config)))
    assert sum(batch.late for batch in batches) == 1
    assert not [record for record in caplog.records if "late" in record.getMessage()]


def test_late_events_and_dead_letters_are_written_with_a_reason(folder):
    account = run(load_config(folder / "run.toml"))
    quality = account.quality
    assert (quality["matches"], quality["delivered"], quality["share"]) == (5, 5, 1.0)
    assert account.to_dict() == {
        "quality": quality,
        "engine": "local",
        "batches": 2,
        "events": 7,
        "deliveries": 5,
        "subscribers": {"ann": 3, "bob": 2},
        "late": 1,
        "dead_letters": 2,
        "refused": 2,
        "seconds": 0.5,
        "sink": str(folder / "out"),
    }
    assert [(each["subscriber"], each["event"]) for each in lines(folder, "deliveries")] == [
        ("ann", "e2"),
        ("ann", "e3"),
        ("bob", "e3"),
        ("ann", "e5"),
        ("bob", "e5"),
    ]
    (late,) = lines(folder, "late")
    assert (late["event"], late["record"]["attributes"]) == ("e0", {"year": 9})
    missing, twin = lines(folder, "dead_letters")
    assert missing == {
        "record": {"id": "e4"},
        "reason": "event e4: field 'published_at' is missing",
    }
    assert (twin["record"]["id"], twin["reason"]) == ("e3", "event 'e3' was published before")


def test_bad_subscriptions_stop_nothing_and_are_kept(folder):
    run(load_config(folder / "run.toml"))
    refused = forms(folder / "out/refused.jsonl")
    assert [(each["line"], each["id"]) for each in refused] == [(2, "s2"), (4, "s1")]
    write(folder / "subscriptions.jsonl", {"id": "s1", "subscriber": "ann", "where": "year > 0"})
    run(load_config(folder / "run.toml"))
    assert not (folder / "out/refused.jsonl").exists()


def test_without_any_good_subscription_nothing_is_run(folder):
    write(folder / "subscriptions.jsonl", {"id": "s1", "subscriber": "ann", "where": "year >"})
    with pytest.raises(TidingsError, match=r"`tidings check .*run.toml` lists the problems"):
        make_plan(load_config(folder / "run.toml"))
    assert not (folder / "out").exists()


def test_parquet_holds_the_same_at_the_same_place(folder):
    config = load_config(folder / "run.toml")
    expected = run(config)
    good, late_before, dead_before = (
        lines(folder, kind) for kind in ("deliveries", "late", "dead_letters")
    )
    parquet = replace(config, sink=SinkConfig(folder / "columns"))
    assert run(parquet).delivered == expected.delivered
    deliveries, late, dead = (
        pyarrow.dataset.dataset(folder / "columns" / kind, partitioning=None).to_table().to_pylist()
        for kind in ("deliveries", "late", "dead_letters")
    )
    assert [row["event"] for row in deliveries] == [form["event"] for form in good]
    assert [json.loads(row["window"]) for row in deliveries] == [form["window"] for form in good]
    assert [row | {"record": json.loads(row["record"])} for row in late] == late_before
    assert [row | {"record": json.loads(row["record"])} for row in dead] == dead_before
    assert (folder / "columns/deliveries/batch=00000001").is_dir()


def test_lateness_lets_events_come_out_of_order(folder):
    config = replace(load_config(folder / "run.toml"), lateness="2m")
    assert run(config).late == 0
    assert [each["event"] for each in lines(folder, "late")] == []
    assert ("ann", "e0") in {
        (each["subscriber"], each["event"]) for each in lines(folder, "deliveries")
    }


def test_a_file_that_cannot_be_read_is_a_dead_letter(folder):
    (folder / "3.jsonl").write_text("[")
    write(folder / "4.jsonl", event("e6", 300, year=9))
    csv = load_config(folder / "run.toml")
    csv = replace(csv, source=Source(folder, "3.jsonl", ".json"))
    account = run(csv)
    assert (account.events, account.dead) == (1, 1)
    (letter,) = lines(folder, "dead_letters")
    assert letter["record"] == {"file": str(folder / "3.jsonl")}


def test_a_local_run_replaces_what_a_local_run_left(folder):
    config = load_config(folder / "run.toml")
    run(config)
    (folder / "2.jsonl").unlink()
    run(config)
    assert [path.name for path in sorted((folder / "out/deliveries").iterdir())] == [
        "00000000.jsonl"
    ]


def test_what_spark_began_is_not_touched_by_another_engine_unless_asked(folder):
    local = load_config(folder / "run.toml")
    spark = replace(local, engine="spark")
    kept = make_plan(spark).folder.path / "checkpoint" / "kept"
    kept.parent.mkdir()
    kept.touch()
    make_plan(spark)
    with pytest.raises(
        TidingsError, match="out was written with engine = 'spark', but the config now"
    ):
        make_plan(local)
    with pytest.raises(TidingsError, match="with buckets = 8, but the config now has 4"):
        make_plan(replace(spark, buckets=4))
    with pytest.raises(TidingsError, match=r"with format = 'jsonl', .* --fresh"):
        make_plan(replace(spark, sink=SinkConfig(spark.sink.path)))
    assert kept.exists()
    make_plan(local, fresh=True)
    assert not kept.exists()


def test_a_folder_that_no_run_made_is_left_alone(folder):
    (folder / "out").mkdir()
    (folder / "out/thesis.tex").touch()
    for fresh in (False, True):
        with pytest.raises(TidingsError, match="out is not empty and was not written by a run"):
            make_plan(load_config(folder / "run.toml"), fresh=fresh)
    assert (folder / "out/thesis.tex").exists()


def test_other_policies_of_a_config_reach_its_index_though_no_subscription_changed(folder):
    with open_store(folder / "people.db") as store:
        for name in ("ann", "bob"):
            store.catalogue.put({"id": f"s-{name}", "subscriber": name, "where": "year > 0"})
    (folder / "store.toml").write_text(
        '[source]\npath = "[0-9].jsonl"\n[subscriptions]\nstore = "sqlite:///people.db"\n'
        '[sink]\npath = "out"\n[policies.default]\nk = 1\n'
    )
    config, seen = load_config(folder / "store.toml"), list[Any]()
    for policies in (config.policies, {**config.policies, "bob": Policy(k=9)}):
        with match_inputs(make_plan(replace(config, policies=policies))) as (index, _):
            assert isinstance(index, Index)
            roster = FolderPolicies(index, index.newest())
            seen.append([roster.policy(name) for name in ("ann", "bob")])
    assert seen == [[Policy(k=1), Policy(k=1)], [Policy(k=1), Policy(k=9)]]


def test_a_run_writes_every_letter_though_an_engine_keeps_only_the_last(folder):
    many = 10_050
    first = event("first", 100, year=2)
    twins = [event("first", 200 + n, year=2) for n in range(many)]
    late = [event(f"late{n}", 0, year=2) for n in range(many)]
    write(folder / "1.jsonl", first, *twins, *late)
    write(folder / "2.jsonl", *({"id": n} for n in range(many)))
    account = run(load_config(folder / "run.toml"))
    assert (account.late, account.dead) == (many, 2 * many)
    assert len(lines(folder, "late")) == many
    assert len(lines(folder, "dead_letters")) == 2 * many


def test_a_local_run_holds_events_against_the_limits_of_its_config(folder):
    with (folder / "run.toml").open("a") as file:
        file.write("[limits]\nattributes = 1\nkept_letters = 1\n")
    write(folder / "1.jsonl", event("wide", 0, year=1, month=2), event("e1", 0, year=5))
    account = run(load_config(folder / "run.toml"))
    assert "the limit attributes = 1" in lines(folder, "dead_letters")[0]["reason"]
    assert (account.late, account.dead) == (0, 2)
    assert {"ann", "bob"} == set(account.delivered)
