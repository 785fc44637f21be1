"""Runs of experiments: chosen by name, kept, resumed, and run again when something changed."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lab.papers.small import SmallParameters, small_experiment

from tidings.errors import TidingsError
from tidings.lab.papers import finished_run
from tidings.lab.papers import run as runner
from tidings.lab.papers.finished_run import described_run, read_run
from tidings.lab.papers.registry import EXPERIMENTS
from tidings.lab.papers.run import over_catalogue, perform, run_papers, select
from tidings.lab.workloads.catalogue import CatalogueFile


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
    assert {experiment.paper for experiment in select(["rps"])} == {"RPS"}
    assert [experiment.name for experiment in select(["RPS-Figure-8"])] == ["rps-figures-7-8"]
    assert [experiment.name for experiment in select(["pref-table-2", "rps-table-2"])] == [
        "rps-table-2",
        "pref-table-2",
    ]
    with pytest.raises(TidingsError, match=r"unknown experiment 'figure'; expected one of: .*rps-"):
        select(["figure"])


def test_all_tables_and_figures_are_there():
    slugs = {slug for experiment in EXPERIMENTS.values() for slug in experiment.slugs}
    rps = {"rps-table-2", *(f"rps-figure-{number}" for number in range(6, 10))}
    pref = {"pref-table-1", "pref-table-2", *(f"pref-figure-{n}" for n in range(10, 16))}
    tables = {f"tks-table-{n}" for n in ("5.9", "5.10", "7.7", "7.9", "7.10", "7.11", "7.12")}
    figures = {f"tks-figure-7.{number}" for number in (3, *range(5, 21))}
    assert slugs == rps | pref | tables | figures
    assert len(slugs) == 37


def test_a_catalogue_takes_the_place_of_the_synthetic_one(tmp_path):
    rows = [
        {"sku": f"p{n}", "kind": "ab"[n % 3 == 0], "colour": f"c{n % 4}", "size": n % 5}
        for n in range(60)
    ]
    shop = tmp_path / "shop.parquet"
    pq.write_table(pa.Table.from_pylist(rows), shop)
    file = CatalogueFile.of(shop, "kind", "sku")
    chosen = over_catalogue(select(["tks"]), file)
    assert {experiment.name for experiment in select(["tks"])} - {
        experiment.name for experiment in chosen
    } == {
        "tks-table-5.10",
        "tks-figure-7.12",
    }
    runs = run_all(chosen, tmp_path / "out", size="quick")
    assert all(run.parameters["catalogue"]["file"]["digest"] == file.digest for run in runs)
    exponents = next(run for run in runs if run.experiment == "tks-table-7.7").exhibits[0]
    assert exponents.table.columns[1:3] == ("a", "b")  # the larger view first
    pq.write_table(pa.Table.from_pylist(rows[:50]), shop)
    other = over_catalogue(chosen[:1], CatalogueFile.of(shop, "kind", "sku"))[0]
    assert read_run(chosen[0], tmp_path / "out", "quick", 7) == runs[0]
    assert read_run(other, tmp_path / "out", "quick", 7) is None
    with pytest.raises(TidingsError, match="draw no products; those that do are: tks-table-7"):
        over_catalogue(select(["rps"]), file)


def test_finished_runs_are_kept(experiments, tmp_path):
    first = run_all(experiments, tmp_path)
    assert run_all(experiments, tmp_path) == first
    assert [experiment.run.seeds for experiment in experiments] == [[7], [7]]
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
    assert [experiment.run.seeds for experiment in experiments] == [[7], [7, 7]]


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
    "text", ["", "{", "[" * 100_000, "[]", "{}", '{"exhibits": []}', '{"exhibits": [{}]}', "null"]
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


def test_the_stamp_is_that_of_the_source_that_ran(monkeypatch):
    experiment, source = small_experiment(), ["before"]

    def edit_and_run(parameters, seed, progress):
        source[0] = "edited during the run"
        return experiment.run(parameters, seed, progress)

    edit_and_run.__module__ = experiment.run.__module__
    monkeypatch.setattr(finished_run, "_source", lambda module: source[0])
    before = described_run(experiment, "quick", 1).stamp
    assert perform(replace(experiment, run=edit_and_run), "quick", 1, quiet("")).stamp == before
    assert described_run(experiment, "quick", 1).stamp != before
