"""Finished runs in files: read only if everything that they depend on is still the same."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.lab.papers.small import SmallParameters, small_experiment

from tidings.lab.papers import finished_run
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit
from tidings.lab.papers.finished_run import (
    RUNS,
    FinishedRun,
    described_run,
    read_run,
    write_run,
)
from tidings.lab.papers.registry import EXPERIMENTS

EXHIBIT = Exhibit(
    "RPS",
    "Figure 1",
    "Größe",
    DataTable(("n", "us"), ((1, 0.5), (None, "x")), ("us",)),
    (Claim("It is so.", "so", "not", holds=False, reason="?", timed=True),),
    "<svg/>",
    "a note",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / RUNS).mkdir()
    return tmp_path


def finished(seed: int = 7) -> tuple[Any, FinishedRun]:
    experiment = small_experiment()
    run = described_run(experiment, "quick", seed)
    return experiment, replace(run, cpu_s=1.5, wall_s=2.5, exhibits=(EXHIBIT,))


def test_a_run_is_read_as_it_was_written(folder: Path) -> None:
    experiment, run = finished()
    write_run(run, folder)
    assert read_run(experiment, folder, "quick", 7) == run
    assert [path.name for path in (folder / RUNS).iterdir()] == ["small.json"]


def test_a_described_run_has_no_results() -> None:
    experiment, run = finished()
    described = described_run(experiment, "quick", 7)
    assert (described.exhibits, described.cpu_s, described.wall_s) == ((), 0.0, 0.0)
    assert described.experiment == "small"
    assert described.parameters.keys() == {"size"} == asdict(SmallParameters()).keys()
    assert run.is_of(described)
    assert json.loads(json.dumps(described.parameters)) == described.parameters


@pytest.mark.parametrize(("size", "seed"), [("laptop", 7), ("full", 7), ("quick", 8)])
def test_a_run_of_another_size_or_seed_is_not_this_one(folder: Path, size: Any, seed: int) -> None:
    experiment, run = finished()
    write_run(run, folder)
    assert read_run(experiment, folder, size, seed) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("experiment", "other"),
        ("size", "laptop"),
        ("seed", 8),
        ("parameters", {"size": 11}),
        ("stamp", "0"),
    ],
)
def test_a_run_is_that_of_the_same_question(name: str, value: Any) -> None:
    _, run = finished()
    assert not run.is_of(replace(run, **{name: value}))
    for other in (replace(run, cpu_s=9.0), replace(run, exhibits=()), replace(run, wall_s=0.0)):
        assert run.is_of(other)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "{}", '{"exhibits": []}', '{"exhibits": 7}', "[" * 100_000, "\ud800"],
)
def test_a_damaged_file_is_no_run(folder: Path, text: str) -> None:
    experiment, _ = finished()
    path = folder / RUNS / "small.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    assert read_run(experiment, folder, "quick", 7) is None


def test_a_missing_file_is_no_run(folder: Path) -> None:
    experiment, _ = finished()
    assert read_run(experiment, folder, "quick", 7) is None
    assert read_run(experiment, folder / "none", "quick", 7) is None


def test_a_file_of_an_older_version_is_no_run(folder: Path) -> None:
    experiment, run = finished()
    form = run.to_dict()
    del form["wall_s"]
    (folder / RUNS / "small.json").write_text(json.dumps(form), encoding="utf-8")
    assert read_run(experiment, folder, "quick", 7) is None


def test_a_changed_source_has_another_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = EXPERIMENTS["rps-table-2"]
    stamp = described_run(experiment, "quick", 7).stamp
    assert described_run(experiment, "full", 9).stamp == stamp
    read = finished_run._source
    used = set[str]()

    def changed(module: str) -> str:
        used.add(module)
        return read(module) + ("#" if module.endswith("lab.papers.experiment") else "")

    monkeypatch.setattr(finished_run, "_source", changed)
    assert described_run(experiment, "quick", 7).stamp != stamp
    assert experiment.run.__module__ in used
    assert all(name.startswith("tidings.lab") for name in used)


def test_a_run_of_another_version_of_the_library_has_another_stamp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = EXPERIMENTS["rps-table-2"]
    stamp = described_run(experiment, "quick", 7).stamp
    monkeypatch.setattr(finished_run, "__version__", "0")
    assert described_run(experiment, "quick", 7).stamp != stamp
