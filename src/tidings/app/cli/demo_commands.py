"""What it can do: `demo` and `bench`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from tidings.app.cli.app import AsJson, app

DEMO: Final = Path("tidings-demo")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to write to.")] = DEMO,
    movies: Annotated[
        int | None, typer.Option(min=1, help="How many of the 58,788 films. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch ranked publish/subscribe on a real movie catalogue, in about two minutes.

    The films are published one after the other through Spark, to subscribers with different tastes
    and policies.

    For example:

        tidings demo --movies 5000
    """
    from tidings.app.demo import run_demo

    raise typer.Exit(run_demo(out, movies, json_lines=as_json))


@app.command()
def bench(
    name: Annotated[
        str | None, typer.Argument(help="One bench only; see bench/README.md.", metavar="NAME")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, in a minute or two; writes nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the indexes beside their peers, side by side in one run.

    Prints tables, and writes them with the machine, its load and the commit to bench/results. The
    benches and their results are part of the source tree; they are not installed.

    For example:

        tidings bench interval --quick
    """
    from tidings.app.bench import run_bench

    flags = [flag for flag, given in {"--quick": quick, "--json": as_json}.items() if given]
    raise typer.Exit(run_bench(name, flags))
