"""Runs of experiments: chosen by name, kept, resumed, and run again when something changed."""

import json
from dataclasses import replace

import pytest
from tests.lab.papers.small import SmallParameters, small_experiment

from tidings.errors import TidingsError
from tidings.lab.papers import run as runner
from tidings.lab.papers.finished_run import read_run
from tidings.lab.papers.registry import EXPERIMENTS
from tidings.lab.papers.run import perform, run_papers, select


def quiet(name):
    return lambda done, steps, label: None


@pytest.fixture
def experiments(monkeypatch):
    both = [small_experiment("one"), small_experiment("two", number="Figure 2")]
    monkeypatch.setattr(runner, "EXPERIMENTS", {each.name: each for each in both})
    return both


def run_all(experiments, folder, size="laptop", seed=7):
    return list(run_papers(experiments, folder, size, seed, quiet))


def test_names_are_those_of_papers_experiments_tables_and_figures():
    assert select([]) == list(EXPERIMENTS.values())
    assert {each.paper for each in select(["rps"])} == {"RPS"}
    assert [each.name for each in select(["RPS-Figure-8"])] == ["rps-figures-7-8"]
    assert [each.name for each in select(["pref-table-2", "rps-table-2"])] == [
        "rps-table-2",
        "pref-table-2",
    ]
    with pytest.raises(TidingsError, match=r"unknown experiment 'figure'; expected one of: .*rps-"):
        select(["figure"])


def test_all_tables_and_figures_of_rps_and_pref_are_there():
    slugs = {slug for experiment in EXPERIMENTS.values() for slug in experiment.slugs}
    rps = {"rps-table-2", *(f"rps-figure-{number}" for number in range(6, 10))}
    pref = {"pref-table-1", "pref-table-2", *(f"pref-figure-{n}" for n in range(10, 16))}
    assert rps | pref <= slugs


def test_finished_runs_are_kept(experiments, tmp_path):
    first = run_all(experiments, tmp_path)
    assert run_all(experiments, tmp_path) == first
    assert [each.run.seeds for each in experiments] == [[7], [7]]
    report = (tmp_path / "report.md").read_text()
    assert "RPS Figure 1" in report
    assert "RPS Figure 2" in report
    assert (tmp_path / "csv/rps-figure-1.csv").read_text() == "size,us\n10,0.5\n"
    assert (tmp_path / "images/rps-figure-2.svg").read_text() == "<svg></svg>\n"


def test_an_interrupted_command_continues_with_the_rest(experiments, tmp_path):
    experiments[1].run.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run_all(experiments, tmp_path)
    report = (tmp_path / "report.md").read_text()
    assert "RPS Figure 1" in report
    assert "RPS Figure 2" not in report
    experiments[1].run.error = None
    run_all(experiments, tmp_path)
    assert [each.run.seeds for each in experiments] == [[7], [7, 7]]


def test_another_seed_size_or_parameter_is_run_anew(experiments, tmp_path, monkeypatch):
    one = experiments[:1]
    run_all(one, tmp_path)
    run_all(one, tmp_path, seed=8)
    run_all(one, tmp_path, size="quick", seed=8)
    assert one[0].run.seeds == [7, 8, 8]
    larger = replace(one[0], quick=SmallParameters(3))
    assert [run.parameters for run in run_all([larger], tmp_path, size="quick", seed=8)] == [
        {"size": 3}
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"exhibits": []}', '{"exhibits": [{}]}', "null"]
)
def test_a_damaged_file_is_run_anew(experiments, tmp_path, text):
    one = experiments[0]
    run_all([one], tmp_path)
    (tmp_path / "runs/one.json").write_text(text)
    assert read_run(one, tmp_path, "laptop", 7) is None
    run_all([one], tmp_path)
    assert json.loads((tmp_path / "runs/one.json").read_text())["seed"] == 7


def test_a_change_of_the_source_is_run_anew(experiments, tmp_path):
    one = experiments[0]
    run_all([one], tmp_path)
    form = json.loads((tmp_path / "runs/one.json").read_text())
    (tmp_path / "runs/one.json").write_text(json.dumps(form | {"stamp": "older"}))
    run_all([one], tmp_path)
    assert one.run.seeds == [7, 7]


def test_full_sizes_are_those_of_the_paper_unless_said_otherwise():
    experiment = small_experiment()
    assert perform(experiment, "full", 1, quiet("")).parameters == {"size": 1000}
    other = replace(experiment, full=SmallParameters(500))
    assert perform(other, "full", 1, quiet("")).parameters == {"size": 500}
    assert perform(other, "full", 1, quiet("")).paper_parameters == {"size": 1000}


def test_an_experiment_must_return_what_it_promises():
    experiment = replace(small_experiment(), numbers=("Figure 3",))
    with pytest.raises(TidingsError, match="small promises"):
        perform(experiment, "quick", 1, quiet(""))
