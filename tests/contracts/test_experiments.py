"""What every experiment of the papers promises, at a tiny size."""

import json
from functools import cache

import pytest

from tidings.lab.papers.experiment import TITLES
from tidings.lab.papers.finished_run import FinishedRun
from tidings.lab.papers.registry import EXPERIMENTS
from tidings.lab.papers.run import perform

LARGEST_PICTURE = 60_000


@cache
def quick_run(name: str) -> FinishedRun:
    return perform(EXPERIMENTS[name], "quick", 3, lambda done, steps, label: None)


@pytest.fixture(params=EXPERIMENTS)
def name(request):
    return request.param


def test_it_returns_its_tables_and_figures(name):
    run, experiment = quick_run(name), EXPERIMENTS[name]
    assert tuple(exhibit.slug for exhibit in run.exhibits) == experiment.slugs
    assert experiment.paper in TITLES
    for exhibit in run.exhibits:
        assert exhibit.table.rows
        assert exhibit.claims
        assert exhibit.picture.startswith("<svg")
        assert len(exhibit.picture) < LARGEST_PICTURE
        for claim in exhibit.claims:
            assert claim.text.endswith(".")
            assert claim.paper
            assert claim.ours


def test_the_same_seed_yields_the_same_numbers_and_progress_is_shown(name):
    steps = []
    again = perform(
        EXPERIMENTS[name], "quick", 3, lambda done, total, label: steps.append((done, total))
    )
    assert steps == sorted(steps)
    assert steps[0][0] == 0
    assert all(done < total for done, total in steps)
    for first, second in zip(quick_run(name).exhibits, again.exhibits, strict=True):
        assert first.table.reproducible() == second.table.reproducible()
        assert [claim for claim in first.claims if not claim.timed] == [
            claim for claim in second.claims if not claim.timed
        ]
        if not first.table.timed:
            assert first.picture == second.picture


def test_a_run_in_a_file_is_the_same_run(name):
    run = quick_run(name)
    assert FinishedRun.from_dict(json.loads(json.dumps(run.to_dict()))) == run


def test_sizes_have_the_parameters_of_the_paper(name):
    experiment = EXPERIMENTS[name]
    kinds = {type(experiment.parameters(size)) for size in ("laptop", "full", "quick")}
    assert kinds == {type(experiment.paper_parameters)}


def test_names_are_unique():
    slugs = [slug for experiment in EXPERIMENTS.values() for slug in experiment.slugs]
    assert len(slugs) == len(set(slugs))
