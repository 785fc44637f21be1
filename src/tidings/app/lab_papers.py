"""`tidings lab papers`: runs the experiments with progress, and prints which claims hold."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich import progress
from rich.console import Console
from rich.text import Text

from tidings.app.output.console import make_table, open_console
from tidings.app.terminal import json_line
from tidings.lab.papers.experiment import Experiment, Progress, Size
from tidings.lab.papers.finished_run import FinishedRun
from tidings.lab.papers.report_words import Tally, duration, exhibits_of
from tidings.lab.papers.run import over_catalogue, run_papers, select
from tidings.lab.workloads.catalogue import CatalogueFile

_INTERRUPTED: Final = 130


def select_papers(
    names: Sequence[str], catalogue: Path | None, category: str, id_column: str | None
) -> list[Experiment[Any]]:
    """Return the experiments with these names; for a catalogue, only those that draw products."""
    experiments = select(names)
    if catalogue is None:
        return experiments
    return over_catalogue(experiments, CatalogueFile.of(catalogue, category, id_column))


def list_papers(experiments: Sequence[Experiment[Any]], *, as_json: bool = False) -> None:
    """Print the names of experiments, tables and figures."""
    console, table = open_console(), make_table("experiment", "tables and figures")
    for experiment in experiments:
        form = {"experiment": experiment.name, "exhibits": list(experiment.slugs)}
        if as_json:
            console.out(json_line(form), highlight=False)
        table.add_row(experiment.name, ", ".join(experiment.slugs))
    if not as_json:
        console.print(table)


def reproduce_papers(
    experiments: Sequence[Experiment[Any]],
    folder: Path,
    size: Size,
    seed: int,
    *,
    as_json: bool = False,
) -> int:
    """Run experiments, print a line for each and the place of the report; return the exit status.

    A claim that does not hold is a result, not an error: the status is 0, or 130 after Ctrl-C.
    """
    console = open_console()
    finished: list[FinishedRun] = []
    try:
        with progress_of(open_console(stderr=True), len(experiments)) as report:
            for run in run_papers(experiments, folder, size, seed, report):
                finished.append(run)
                print_run(console, run, as_json=as_json)
    except KeyboardInterrupt:
        stopped = f"Stopped after {len(finished)} of {len(experiments)} experiments"
        open_console(stderr=True).print(f"{stopped}; the same command resumes.")
        return _INTERRUPTED
    if not as_json:
        words = f"{Tally.of(exhibits_of(finished))}, in {duration(finished)}."
        console.print(words, highlight=False, soft_wrap=True)
        report_path = f"The report: {folder / 'report.html'}"
        console.print(report_path, markup=False, highlight=False, soft_wrap=True)
    return 0


def print_run(console: Console, run: FinishedRun, *, as_json: bool) -> None:
    """Print a line per exhibit, and the claims that do not hold."""
    for exhibit in run.exhibits:
        tally = Tally.of([exhibit])
        failed = [claim.text for claim in exhibit.claims if not claim.holds]
        if as_json:
            form = {"exhibit": exhibit.slug, "claims": tally.claims, "hold": tally.held}
            console.out(json_line(form | {"fail": failed}), highlight=False)
            continue
        colour = "green" if exhibit.holds else "red"
        line = Text(f"{exhibit.paper} {exhibit.number:<12} ")
        line.append(f"{tally.held} of {tally.claims} claims hold", colour)
        console.print(line.append(f"  {exhibit.title}", "dim"), soft_wrap=True)
        for text in failed:
            console.print(Text(f"  does not hold: {text}"), soft_wrap=True)


@contextmanager
def progress_of(console: Console, total: int) -> Iterator[Callable[[str], Progress]]:
    """Yield a function that returns the progress of an experiment, by its name.

    A terminal shows two bars; elsewhere there is a line per experiment.
    """
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda name: _one_line(console, name)
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=console, transient=True) as bars:
        every = bars.add_task("experiments", total=total)
        current = bars.add_task("")
        begun: list[str] = []

        def start(name: str) -> Progress:
            bars.update(every, completed=len(begun))
            begun.append(name)
            bars.reset(current)

            def step(done: int, steps: int, label: str) -> None:
                bars.update(current, completed=done, total=steps, description=f"{name}: {label}")

            return step

        yield start


def _one_line(console: Console, name: str) -> Progress:
    console.print(f"Running {name}", soft_wrap=True)
    return lambda done, steps, label: None
