"""Runs of experiments: one after another, each kept in a file as soon as it has finished."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tidings.errors import TidingsError
from tidings.lab.papers.experiment import Experiment, Progress, Size
from tidings.lab.papers.finished_run import RUNS, FinishedRun, described_run, read_run, write_run
from tidings.lab.papers.registry import EXPERIMENTS
from tidings.lab.papers.report import write_report


def select(names: Iterable[str]) -> list[Experiment[Any]]:
    """Return experiments by the names of papers, experiments, tables and figures; all, if none.

    >>> [experiment.name for experiment in select(["rps-table-2"])]
    ['rps-table-2']
    """
    wanted = [name.lower() for name in names]
    known = {key for experiment in EXPERIMENTS.values() for key in _keys(experiment)}
    if unknown := [name for name in wanted if name not in known]:
        expected = ", ".join(sorted(known))
        raise TidingsError(f"unknown experiment {unknown[0]!r}; expected one of: {expected}")
    return [
        experiment
        for experiment in EXPERIMENTS.values()
        if not wanted or not _keys(experiment).isdisjoint(wanted)
    ]


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
    for experiment in experiments:
        kept = read_run(experiment, folder, size, seed)
        finished = kept or perform(experiment, size, seed, progress(experiment.name))
        if not kept:
            write_run(finished, folder)
        finished_runs = [read_run(each, folder, size, seed) for each in EXPERIMENTS.values()]
        write_report([run for run in finished_runs if run], folder)
        yield finished


def perform(experiment: Experiment[Any], size: Size, seed: int, progress: Progress) -> FinishedRun:
    """Run an experiment; its duration is processor time, which other load does not change."""
    started = time.process_time()
    exhibits = tuple(experiment.run(experiment.parameters(size), seed, progress))
    found = tuple(exhibit.number for exhibit in exhibits)
    if found != experiment.numbers:
        raise TidingsError(f"{experiment.name} promises {experiment.numbers}, and returned {found}")
    return described_run(experiment, size, seed, time.process_time() - started, exhibits)
