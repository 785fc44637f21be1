"""Runs of experiments: one after another, each kept in a file as soon as it has finished."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidings.errors import TidingsError
from tidings.lab.papers.experiment import Experiment, Progress, Size
from tidings.lab.papers.finished_run import RUNS, FinishedRun, described_run, read_run, write_run
from tidings.lab.papers.registry import EXPERIMENTS
from tidings.lab.papers.report import write_report
from tidings.lab.workloads.catalogue import CatalogueFile


def select(names: Iterable[str]) -> list[Experiment[Any]]:
    """Return experiments by the names of papers, experiments, tables and figures; all, if none.

    >>> [experiment.name for experiment in select(["rps-table-2"])]
    ['rps-table-2']
    """
    chosen = [name.lower() for name in names]
    known = {key for experiment in EXPERIMENTS.values() for key in _keys(experiment)}
    if unknown := [name for name in chosen if name not in known]:
        expected = ", ".join(sorted(known))
        raise TidingsError(f"unknown experiment {unknown[0]!r}; expected one of: {expected}")
    return [
        experiment
        for experiment in EXPERIMENTS.values()
        if not chosen or not _keys(experiment).isdisjoint(chosen)
    ]


def over_catalogue(
    experiments: Iterable[Experiment[Any]], file: CatalogueFile
) -> list[Experiment[Any]]:
    """Return those experiments that draw products of a catalogue, with the products of a file."""
    chosen = [
        _with_file(experiment, file) for experiment in experiments if _draws_products(experiment)
    ]
    if not chosen:
        known = ", ".join(
            experiment.name for experiment in EXPERIMENTS.values() if _draws_products(experiment)
        )
        raise TidingsError(f"these experiments draw no products; those that do are: {known}")
    return chosen


def _draws_products(experiment: Experiment[Any]) -> bool:
    return hasattr(experiment.laptop, "catalogue")


def _with_file(experiment: Experiment[Any], file: CatalogueFile) -> Experiment[Any]:
    laptop, quick, full = (
        replace(parameters, catalogue=replace(parameters.catalogue, file=file))
        for parameters in (
            experiment.laptop,
            experiment.quick,
            experiment.full or experiment.paper_parameters,
        )
    )
    return replace(experiment, laptop=laptop, quick=quick, full=full)


def _keys(experiment: Experiment[Any]) -> set[str]:
    return {experiment.paper.lower(), experiment.name, *experiment.slugs}


def run_papers(
    experiments: Iterable[Experiment[Any]],
    folder: Path,
    size: Size,
    seed: int,
    progress: Callable[[str], Progress],
) -> Iterator[FinishedRun]:
    """Yield the run of each experiment, from its file if it has finished before.

    The report is written after each, about all finished runs of this size and seed in the folder:
    an interrupted command leaves a report, and the next one continues.
    """
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    experiments = list(experiments)
    reported = EXPERIMENTS | {experiment.name: experiment for experiment in experiments}
    for experiment in experiments:
        previous = read_run(experiment, folder, size, seed)
        finished = previous or perform(experiment, size, seed, progress(experiment.name))
        if not previous:
            write_run(finished, folder)
        finished_runs = [
            read_run(experiment, folder, size, seed) for experiment in reported.values()
        ]
        write_report([run for run in finished_runs if run], folder)
        yield finished


def perform(experiment: Experiment[Any], size: Size, seed: int, progress: Progress) -> FinishedRun:
    """Run an experiment, and measure its processor time and its duration."""
    # The stamp is taken before the run, since the source may be edited in the meantime.
    described = described_run(experiment, size, seed)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    exhibits = tuple(experiment.run(experiment.parameters(size), seed, progress))
    numbers = tuple(exhibit.number for exhibit in exhibits)
    if numbers != experiment.numbers:
        raise TidingsError(
            f"{experiment.name} promises {experiment.numbers}, and returned {numbers}"
        )
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    return replace(described, cpu_s=cpu_s, wall_s=wall_s, exhibits=exhibits)
