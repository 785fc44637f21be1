"""The commands to get started: `demo`, `init`, `warm` and `bench`."""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.errors import TidingsError

DEMO_FOLDER: Final = Path("tidings-demo")
SOURCE: Final = Path(__file__).parents[4]


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
    and policies. The first day is shown at once, while Spark starts. At the end, report.html in the
    output folder shows the results in pictures.

    For example:

        tidings demo --movies 5000
    """
    from tidings.app.demo import run_demo

    raise typer.Exit(run_demo(out, movies, json_lines=as_json))


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True)],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files that an earlier init wrote.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a file of data, and write a config and example subscriptions for it.

    FILE is CSV, JSON Lines, JSON, Parquet or Arrow, or a folder of such files; text may be
    compressed with gzip. The id, the time and the types of the other columns are inferred from the
    first 20,000 rows. Both files are written to the current folder, for you to edit.

    For example:

        tidings init flights.csv
        tidings run flights.toml
    """
    from tidings.app.init import propose, write
    from tidings.app.output import open_console, print_proposal

    proposal = propose(file)
    written = write(proposal, Path(), force=force)
    if as_json:
        print_json({"files": [str(path) for path in written], **proposal.to_dict()})
    else:
        print_proposal(open_console(), proposal, written)


@app.command()
def warm(as_json: AsJson = False) -> None:
    """Compile the kernels for this machine now, instead of when they are first used.

    They are kept in the user's cache folder, or in the folder that the environment variable
    NUMBA_CACHE_DIR names. This is useful for container images, read-only installations and Spark
    workers.

    For example:

        NUMBA_CACHE_DIR=/opt/kernels tidings warm
    """
    from tidings.app.warm import WarmCache, warm_up

    for step in warm_up():
        if not as_json:
            typer.echo(str(step))
        elif isinstance(step, WarmCache):
            print_json(asdict(step) | {"folder": str(step.folder)})


@app.command()
def bench(
    name: Annotated[
        str | None,
        typer.Argument(help="The benchmark. Default: all of them.", metavar="NAME"),
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
    flags = [flag for flag, is_set in {"--quick": quick, "--json": as_json}.items() if is_set]
    raise typer.Exit(run_bench(name, flags))


def run_bench(name: str | None, flags: Iterable[str], *, places: Iterable[Path] = ()) -> int:
    """Run one benchmark or all of them, each in its own process; return the exit status."""
    folder = bench_folder([*places] or [SOURCE, Path.cwd()])
    names = [name] if name else []
    return subprocess.run([sys.executable, str(folder), *names, *flags], check=False).returncode


def bench_folder(places: Iterable[Path]) -> Path:
    """Return the folder bench/ of the first of these places that is a source tree of Tidings."""
    for place in places:
        folder = place / "bench"
        if (place / "src/tidings/__init__.py").is_file() and (folder / "__main__.py").is_file():
            return folder
    raise TidingsError(
        "the benchmarks are part of the source tree, not of the package: run this command in a "
        "clone of Tidings, after pip install -e '.[bench]'"
    )
