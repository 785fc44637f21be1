"""A dataclass defines the arguments and options of a command."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tidings.app.cli.dataclass_options import takes


@dataclass(frozen=True, kw_only=True)
class GreetOptions:
    name: Annotated[str, typer.Argument(metavar="NAME")]
    times: Annotated[int, typer.Option("-n", min=1, help="How often.")]
    loud: bool = False


def greet(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @takes(GreetOptions)
    def greet(options: GreetOptions) -> None:
        """Greet a person."""
        typer.echo(repr(options))

    result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, list(arguments))
    return result.exit_code, result.stdout + result.stderr


def test_options_are_fields_with_their_defaults() -> None:
    quiet, loud = (GreetOptions(name="ann", times=2, loud=loud) for loud in (False, True))
    assert greet("ann", "-n", "2") == (0, f"{quiet!r}\n")
    assert greet("ann", "-n", "2", "--loud") == (0, f"{loud!r}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ann"], "Missing option '-n'"),
        (["-n", "1"], "Missing argument 'NAME'"),
        (["ann", "-n", "0"], "Invalid value for '-n'"),
    ],
)
def test_wrong_usage_is_reported_as_for_any_command(arguments: list[str], message: str) -> None:
    code, text = greet(*arguments)
    assert code == 2
    assert message in text


def test_help_comes_from_the_function_and_the_fields() -> None:
    _, text = greet("--help")
    assert "Greet a person." in text
    assert "How often." in text
