"""The experiments by name: in the order of the report, and each found by its tables and figures."""

from itertools import groupby

from tidings.lab.papers.registry import EXPERIMENTS


def test_experiments_have_the_names_of_what_they_reproduce() -> None:
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert name.startswith(f"{experiment.paper.lower()}-")
        assert len({*experiment.slugs}) == len(experiment.slugs) > 0


def test_each_paper_has_one_part_of_the_report() -> None:
    papers = [paper for paper, _ in groupby(each.paper for each in EXPERIMENTS.values())]
    assert papers == ["RPS", "PREF", "TKS"]
