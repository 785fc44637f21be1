"""The commands `demo` and `bench`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from tidings.app.cli.app import AsJson, app

DEMO_FOLDER: Final = Path("tidings-demo")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(file_okay=False, help="The output folder.")] = DEMO_FOLDER,
    movies: Annotated[
        int | None, typer.Option(min=1, help="How many of the 58,788 films. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch ranked publish/subscribe on a real movie catalogue, in about two minutes.

    The films are published one after another through Spark, to subscribers with different tastes
    and policies. The first day is shown at once, while Spark starts. At the end, report.html in
    the output folder tells it in pictures.

    For example:

        tidings demo --movies 5000
    """
    from tidings.app.demo import run_demo

    raise typer.Exit(run_demo(out, movies, json_lines=as_json))


@app.command()
def bench(
    name: Annotated[
        str | None, typer.Argument(help="One benchmark only; see bench/README.md.", metavar="NAME")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, in a minute or two; writes nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the indexes against their peers, side by side in one run.

    Prints tables, and writes them to bench/results with the machine, its load and the commit. The
    benchmarks and their results are part of the source tree; they are not installed.

    For example:

        tidings bench interval --quick
    """
    from tidings.app.bench import run_bench

    flags = [flag for flag, is_set in {"--quick": quick, "--json": as_json}.items() if is_set]
    raise typer.Exit(run_bench(name, flags))
