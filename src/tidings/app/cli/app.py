"""The application that commands belong to, and what they share."""

import json
import sys
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from tidings import __version__
from tidings.errors import TidingsError, clipped

_DEBUG: Final = "TIDINGS_DEBUG"
_REPORT: Final = (
    "this is a defect of Tidings; please report it with what `tidings --debug` prints of it"
)


class Commands(TyperGroup):
    """Commands whose refusals are a sentence on standard error, and exit status 1.

    What nobody foresaw is one too, without its text, in which there may be a password; `--debug`
    shows all of it.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, typer.Abort):
            raise
        except Exception as error:
            # What says its own status is wrong use, or an end in order.
            if ctx.params.get("debug") or hasattr(error, "exit_code"):
                raise
            _show_error(_words(error))
        raise typer.Exit(1)


def _words(error: Exception) -> str:
    if isinstance(error, TidingsError):
        return str(error)
    if isinstance(error, OSError):
        return clipped(str(error))
    if isinstance(error, MemoryError):
        return "the memory is full; run it with less, or on a larger machine"
    return f"{type(error).__name__} was not foreseen; {_REPORT}"


def _show_error(words: str) -> None:
    errors = Console(stderr=True)
    errors.print(Text("error: ", "bold red").append(_printable(words), "none"), soft_wrap=True)


def _printable(text: str) -> str:
    """Return a text that any stream can print: names of files need not be UTF-8."""
    return text.encode(errors="backslashreplace").decode()


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
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", envvar=_DEBUG, help="Show where an error was raised, and all of it."
        ),
    ] = False,
) -> None:
    """Ranked publish/subscribe.

    The k best events for each subscriber, and the k best subscriptions for each event.
    """


def print_json(form: dict[str, Any]) -> None:
    """Print a form as one line of JSON."""
    typer.echo(_printable(json.dumps(form, ensure_ascii=False)))


def main() -> None:
    """Run the command that is asked for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="tidings")
    except OSError as error:  # of the help, which is printed before any command is run
        _show_error(_words(error))
        sys.exit(1)
