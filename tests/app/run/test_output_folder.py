"""Output folders: which runs resume, replace or refuse their content."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.output_folder import OutputFolder
from tidings.app.run.plan import make_plan
from tidings.errors import TidingsError
from tidings.formats.event_source import Source, SparkSource


def test_a_local_run_replaces_the_output_of_a_local_run(folder):
    config = load_config(folder / "run.toml")
    list(run_local(make_plan(config)))
    (folder / "2.jsonl").unlink()
    list(run_local(make_plan(config)))
    assert [path.name for path in sorted((folder / "out/deliveries").iterdir())] == [
        "00000000.jsonl"
    ]


def test_only_a_fresh_run_replaces_the_output_of_spark(folder):
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


def test_a_folder_of_other_content_is_refused(folder):
    (folder / "out").mkdir()
    (folder / "out/thesis.tex").touch()
    for fresh in (False, True):
        with pytest.raises(TidingsError, match="out is not empty and was not written by a run"):
            make_plan(load_config(folder / "run.toml"), fresh=fresh)
    assert (folder / "out/thesis.tex").exists()


def test_a_query_keeps_its_name_until_it_starts_over(folder):
    spark = replace(load_config(folder / "run.toml"), engine="spark")
    first = make_plan(spark).folder.query
    assert first.startswith("run-")
    assert make_plan(spark).folder.query == first
    assert make_plan(spark, fresh=True).folder.query != first


def test_a_configured_checkpoint_has_a_folder_per_query(folder):
    config = replace(load_config(folder / "run.toml"), engine="spark", checkpoint="/points/")
    output = make_plan(config).folder
    assert output.checkpoint == f"/points/{output.query}"
    default = OutputFolder(replace(config, checkpoint=None))
    assert default.checkpoint == str(folder.resolve() / "out" / "checkpoint")


def test_a_lone_surrogate_is_written_to_parquet_as_an_escape(folder):
    config = replace(load_config(folder / "run.toml"), sink=SinkConfig(folder / "columns"))
    output = make_plan(config).folder
    output.write_letters("late", 0, [{"event": "\ud800", "record": {}, "reason": "why"}])
    (file,) = (folder / "columns" / "late").glob("*/*.parquet")
    (row,) = pq.read_table(file).to_pylist()
    assert row == {"event": "\\ud800", "record": "{}", "reason": "why"}


def test_another_source_on_an_old_checkpoint_is_told(folder):
    spark = replace(load_config(folder / "run.toml"), engine="spark")
    assert make_plan(spark).folder.notes == []
    assert make_plan(spark).folder.notes == []
    moved = replace(spark, source=Source(folder, "other-*.jsonl", ".jsonl"))
    (note,) = make_plan(moved).folder.notes
    assert note.startswith(f"the source was '{folder}/")
    assert f"and is now '{folder}/other-*.jsonl'" in note
    assert "--fresh" in note
    assert make_plan(moved).folder.notes == []
    assert make_plan(spark, fresh=True).folder.notes == []


def test_the_places_of_a_spark_source_have_no_secrets(folder):
    spark = replace(load_config(folder / "run.toml"), engine="spark")
    options = {"subscribe": "films", "kafka.sasl.password": "swordfish", "dbtable": "films"}
    address = {"host": "postgresql://ann:swordfish@host/db"}
    make_plan(replace(spark, source=SparkSource("kafka", options | address)))
    (note,) = make_plan(replace(spark, source=SparkSource("kafka", {"path": "in"}))).folder.notes
    assert "kafka subscribe='films' dbtable='films' host=***" in note
    assert "swordfish" not in note


def test_the_last_files_of_recent_runs_are_kept(folder):
    config = replace(load_config(folder / "run.toml"), engine="spark")
    place = make_plan(config).folder
    first, second = (str((folder / name).resolve()) for name in ("1.jsonl", "2.jsonl"))
    assert place.add_end(None) == []
    assert place.add_end(folder / "1.jsonl") == [first]
    assert make_plan(config).folder.add_end(folder / "2.jsonl") == [first, second]
    assert place.add_end(folder / "1.jsonl") == [first, second]
    for number in range(30):
        ends = place.add_end(folder / f"{number}.jsonl")
    assert len(ends) == 20
    assert make_plan(config, fresh=True).folder.add_end(None) == []


def test_a_manifest_with_damaged_ends_is_refused(folder):
    config = replace(load_config(folder / "run.toml"), engine="spark")
    make_plan(config)
    (folder / "out/tidings.json").write_text('{"engine": "spark", "ends": [1]}')
    with pytest.raises(TidingsError, match="its ends are not a list of names; start over with"):
        make_plan(config)
