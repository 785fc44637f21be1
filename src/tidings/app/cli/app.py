"""The application object that all commands belong to, and the options that they share."""

import logging
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer
from rich.text import Text
from typer.core import TyperGroup

from tidings import __version__
from tidings.app.terminal import SafeConsole, SafeFormatter, json_line, printable
from tidings.compiled.jit import write_progress
from tidings.errors import TidingsError, clipped, message
from tidings.formats.redaction import may_hide_password

_DEBUG: Final = "TIDINGS_DEBUG"
_ARGUMENTS: Final = "tidings.arguments"
_WORD: Final = re.compile(r"\w{4,}")
_ADDRESS: Final = "an argument looks like an address, so it is not shown, and does not belong here"
_BUG: Final = "this is a bug in Tidings; please report it with the output of `tidings --debug`"


class ErrorReportingGroup(TyperGroup):
    """Commands that print an error as one sentence on standard error and exit with status 1.

    The text of an unexpected error is not printed, because it may contain a password; `--debug`
    shows it with its traceback. Nor is a misplaced argument that looks like the address of a store.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, typer.Abort):
            raise
        except Exception as error:
            # Errors with an exit code are typer's own: wrong usage, or a regular exit.
            if hasattr(error, "exit_code") and hasattr(error, "message"):
                error.message = clipped(_without_addresses(error.message, ctx.meta[_ARGUMENTS]))
            if ctx.params.get("debug") or hasattr(error, "exit_code"):
                raise
            _print_error(_describe(error))
        raise typer.Exit(1)


def _without_addresses(text: str, arguments: Sequence[str]) -> str:
    """Return a text, or a replacement if it shows an argument that may contain a password."""
    values = [text.partition("=")[2] if text.startswith("--") else text for text in arguments]
    words = {word for value in filter(may_hide_password, values) for word in _WORD.findall(value)}
    return _ADDRESS if any(word in text for word in words) else text


def _describe(error: Exception) -> str:
    if isinstance(error, TidingsError):
        return str(error)
    if isinstance(error, OSError):
        return message(error)
    if isinstance(error, MemoryError):
        return "out of memory; use a smaller input or a larger machine"
    return f"unexpected {type(error).__name__}; {_BUG}"


def _print_error(reason: str) -> None:
    text = Text("error: ", "bold red").append(printable(reason), "none")
    SafeConsole(stderr=True).print(text, soft_wrap=True)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit


app: Final = typer.Typer(
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit status: 0 success, 1 an error or a problem in a file, 2 wrong usage.",
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text and tables.")]


@app.callback()
def tidings(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar=_DEBUG, help="Show the traceback of an error."),
    ] = False,
) -> None:
    """Ranked publish/subscribe.

    The k best events for each subscriber, and the k best subscriptions for each event.
    """
    write_progress()
    if logging.lastResort is not None:  # which prints what no handler of ours does
        logging.lastResort.setFormatter(SafeFormatter())


def print_json(form: dict[str, Any]) -> None:
    """Print a form as one line of JSON."""
    typer.echo(json_line(form))


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="tidings")
    except OSError as error:  # while printing help, before any command runs
        _print_error(_describe(error))
        sys.exit(1)
