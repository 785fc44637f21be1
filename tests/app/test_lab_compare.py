"""`tidings lab compare` and `tidings lab timeline` on the files of the example."""

import csv
import json
from pathlib import Path

import pytest
from tests.app.cli.commands import CONFIG, EVENTS, SUBSCRIBERS, SUBSCRIPTIONS, printed, tidings

import tidings.lab.run_comparison as module

FILES = ("--publications", EVENTS, "--subscriptions", SUBSCRIPTIONS)


@pytest.fixture
def policies(tmp_path: Path) -> list[str]:
    (tmp_path / "few.toml").write_text('k = 1\nwindow = {name = "periodic", length = "1d"}\n')
    (tmp_path / "all.toml").write_text("k = 100\n")
    return [f"--policy={tmp_path / name}.toml" for name in ("few", "all")]


def compare(*arguments, out):
    return tidings("lab", "compare", "--engine", "local", "--out", out, *arguments, columns=200)


def test_a_comparison_writes_a_report_and_prints_the_figures(tmp_path, policies):
    result = compare(*FILES, *policies, out=tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "average score" in result.stdout
    assert f"The report: {tmp_path / 'out' / 'report.html'}" in result.stdout
    with (tmp_path / "out" / "summary.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["policy"] for row in rows] == ["few", "all"]
    assert {"deliveries.parquet", "overlap.csv", "subscribers.csv", "plots"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_own_policies_come_from_a_config_or_a_file(tmp_path, policies):
    by_config = compare("--config", CONFIG, "--policy=own", "--json", out=tmp_path / "a")
    by_files = compare(
        *FILES, "--subscribers", SUBSCRIBERS, "--policy=own", "--json", out=tmp_path / "b"
    )
    (one,), (other,) = printed(by_config), printed(by_files)
    assert one["summary"] == other["summary"]
    assert one["policies"][0]["policy"] == "own"


def test_ctrl_c_says_how_to_continue(tmp_path, policies, monkeypatch):
    def stops(task, events):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.PartTask, "run", stops)
    result = compare(*FILES, *policies, out=tmp_path / "out")
    assert result.exit_code == 130
    assert "Stopped after 0 of" in result.stderr
    assert "the same command resumes" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--policy=own"], "pass --publications and --subscriptions, or --config"),
        ([*FILES, "--policy=nowhere.toml"], "nowhere.toml: the file cannot be read"),
        ([*FILES, "--policy=own", "--column", "id"], "--column must be NAME=TEXT, not 'id'"),
        ([*FILES, "--policy=own", "--until", "soon"], "'soon'"),
    ],
)
def test_wrong_options_are_named(tmp_path, arguments, reason):
    result = compare(*arguments, out=tmp_path / "out")
    assert result.exit_code in (1, 2)
    assert reason in " ".join(result.stderr.replace("│", " ").split())


def test_a_timeline_is_text_json_or_a_page(tmp_path):
    text = tidings("lab", "timeline", "ada", "--config", CONFIG, columns=200)
    assert text.stdout.startswith("ada, 2026-11-02T09:00:00Z to ")
    (form,) = printed(tidings("lab", "timeline", "ada", "--config", CONFIG, "--json"))
    assert form["delivered"] == json.loads(json.dumps(form))["delivered"] > 0
    page = tmp_path / "ada.html"
    assert tidings("lab", "timeline", "ada", "--config", CONFIG, "--html", page).exit_code == 0
    assert "The windows of ada" in page.read_text()
    unknown = tidings("lab", "timeline", "nobody", "--config", CONFIG)
    assert unknown.exit_code == 1
    assert "there is no subscriber 'nobody' in the recording" in unknown.stderr
