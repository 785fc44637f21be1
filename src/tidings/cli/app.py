"""The application that commands belong to, and what they share."""

import json
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from tidings import __version__
from tidings.errors import TidingsError


class Commands(TyperGroup):
    """Commands whose refusals are a sentence on standard error, and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (TidingsError, OSError) as error:
            errors = Console(stderr=True)
            errors.print(Text("error: ", "bold red").append(str(error), "none"), soft_wrap=True)
            raise typer.Exit(1) from None


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit


app: Final = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit status: 0 done, 1 failed or something is wrong, 2 wrong use.",
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words and tables.")]


@app.callback()
def tidings(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ranked publish/subscribe.

    The k best events for each subscriber, and the k best subscriptions for each event.
    """


def print_json(form: dict[str, Any]) -> None:
    """Print a form as one line of JSON."""
    typer.echo(json.dumps(form, ensure_ascii=False))


def main() -> None:
    """Run the command that is asked for."""
    app(prog_name="tidings")
