"""The command `run`: its output, its stream, and the exit status."""

import json

import pytest
from tests.app.cli.commands import CONFIG, printed, tidings, wrong_usage


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["run", "nowhere.toml"], "does not exist"),
        (["run", CONFIG, "--engine", "flink"], "'flink'"),
    ],
)
def test_wrong_usage_is_exit_status_2(arguments, reason):
    assert reason in wrong_usage(*arguments)


def test_run_prints_a_summary(example):
    result = tidings("run", example, "--engine", "local", columns=200)
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0].endswith("in one process: 6 subscribers, 13 subscriptions, 1 file of events")
    assert " ".join(result.stderr.split()).startswith("batch 0 30 events ")
    assert lines[-3].startswith("30 events, ")
    assert lines[-2].startswith("69.9% of 93 matches delivered, mean rank 0.729 ")
    assert ", 0 late, 0 dead letters, " in lines[-3]
    assert lines[-1].startswith(f"Written to {example.parent}/out. ")
    assert {line.split()[0] for line in lines[4:10]} == {
        "ada",
        "bruno",
        "chiara",
        "dev",
        "festival-desk",
        "guest",
    }


def test_run_as_json_prints_only_the_summary(example):
    text = example.read_text().replace('format = "parquet"', 'format = "jsonl"')
    example.write_text(text + "\n")
    result = tidings("run", example, "--engine", "local", "--json")
    (summary,) = printed(result)
    assert (summary["engine"], summary["events"], summary["batches"]) == ("local", 30, 1)
    (written,) = (example.parent / "out" / "deliveries").iterdir()
    assert len(written.read_text().splitlines()) == summary["deliveries"]
    assert summary["deliveries"] == sum(summary["subscribers"].values())


def test_run_reports_refused_records(example):
    with (example.parent / "subscriptions.jsonl").open("a") as subscriptions:
        subscriptions.write('{"id": "x", "subscriber": "y", "where": "z >"}\n')
    result = tidings("run", example, "--engine", "local")
    assert result.exit_code == 0
    assert "1 record refused: " in result.stdout
    assert "subscription x: this cannot be read as a condition" in result.stdout


def test_a_file_in_place_of_the_output_folder_is_an_error(example):
    (example.parent / "out").touch()
    result = tidings("run", example, "--engine", "local")
    assert result.exit_code == 1
    assert "[sink] path must be a folder, but 'out' is a file" in result.stderr


def test_without_spark_the_error_says_what_to_install(example, monkeypatch):
    monkeypatch.setattr("tidings.app.cli.run_command.find_spec", lambda _: None)
    result = tidings("run", example)
    assert result.exit_code == 1
    assert "pip install 'tidings[spark]', or use --engine local" in result.stderr


def test_a_dry_run_prints_the_plan_and_writes_nothing(example):
    result = tidings("run", example, "--engine", "local", "--dry-run", columns=200)
    assert result.exit_code == 0
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert rows == {
        "engine": "local",
        "source": "1 file of events",
        "subscribers": "6 with 6 policies",
        "subscriptions": f"13 from {example.parent}/subscriptions.jsonl",
        "refused": "0",
        "index": "scan",
        "lateness": "0s",
        "sink": f"parquet: {example.parent}/out",
    }
    (form,) = printed(tidings("run", example, "--engine", "local", "--dry-run", "--json"))
    assert (form["subscribers"], form["columns"]) == ("6 with 6 policies", {})
    assert not (example.parent / "out").exists()


def test_a_dry_run_refuses_what_a_run_would_refuse(example):
    (example.parent / "out").mkdir()
    (example.parent / "out/thesis.tex").touch()
    result = tidings("run", example, "--engine", "local", "--dry-run", columns=200)
    assert result.exit_code == 1
    assert "out is not empty and was not written by a run" in result.stderr


def test_a_json_log_goes_to_stderr_and_the_summary_to_stdout(example):
    result = tidings("run", example, "--engine", "local", "--log", "json", "--json")
    (summary,) = printed(result)
    (line,) = map(json.loads, result.stderr.splitlines())
    assert (line["message"], line["batch"], line["events"]) == ("batch", 0, 30)
    assert line["deliveries"] == summary["deliveries"]


def test_packages_and_engine_override_the_config(example, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "tidings.app.cli.run_command._run", lambda options, config: seen.append(config)
    )
    tidings("run", example, "--engine", "spark", "--packages", "a:b:1")
    assert seen[0].engine == "spark"
    assert seen[0].settings == {"spark.jars.packages": "a:b:1"}
