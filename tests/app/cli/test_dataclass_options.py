"""A command takes one object, whose fields are its arguments and options."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tidings.app.cli.dataclass_options import gathered


@dataclass(frozen=True, kw_only=True)
class Asked:
    name: Annotated[str, typer.Argument(metavar="NAME")]
    often: Annotated[int, typer.Option("-n", min=1, help="How often.")]
    loud: bool = False


def answer(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @gathered(Asked)
    def greet(asked: Asked) -> None:
        """Greet somebody."""
        typer.echo(repr(asked))

    result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, list(arguments))
    return result.exit_code, result.stdout + result.stderr


def test_fields_are_given_by_name_and_have_their_defaults() -> None:
    assert answer("ann", "-n", "2") == (0, f"{Asked(name='ann', often=2)!r}\n")
    assert answer("ann", "-n", "2", "--loud") == (0, f"{Asked(name='ann', often=2, loud=True)!r}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ann"], "Missing option '-n'"),
        (["-n", "1"], "Missing argument 'NAME'"),
        (["ann", "-n", "0"], "Invalid value for '-n'"),
    ],
)
def test_what_is_wrong_is_said_as_of_any_command(arguments: list[str], said: str) -> None:
    code, text = answer(*arguments)
    assert code == 2
    assert said in text


def test_help_has_the_words_of_the_function_and_of_the_fields() -> None:
    _, text = answer("--help")
    assert "Greet somebody." in text
    assert "How often." in text
