"""All commands: help, the version, errors in one sentence, and wrong usage."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.cli.commands import command, tidings, wrong_usage
from typer.testing import CliRunner

from tidings import __version__
from tidings.app.cli.app import app, print_json
from tidings.errors import TidingsError


def test_the_version_is_printed_by_the_real_command():
    result = command("--version")
    assert (result.returncode, result.stdout) == (0, f"tidings {__version__}\n")


def test_the_real_command_prints_an_error_without_a_traceback(tmp_path):
    (tmp_path / "run.toml").write_text("engine = 'flink'\n")
    result = command("run", "run.toml", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: run.toml: config: field 'source' is missing\n"


@pytest.mark.parametrize("name", ["check", "match", "explain", "run", "demo", "bench"])
def test_help_teaches_with_an_example(name):
    result = tidings(name, "--help")
    assert result.exit_code == 0
    assert "For example:" in result.stdout
    assert f"  tidings {name} " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_an_unknown_command_is_wrong_usage():
    assert "No such command 'fly'" in wrong_usage("fly")


def test_no_command_shows_the_commands():
    assert "match" in tidings().stdout + tidings().stderr


def test_help_on_a_full_disk_is_an_error_message():
    with Path("/dev/full").open("w") as full:
        line = [sys.executable, "-m", "tidings.app.cli", "--help"]
        result = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "error: [Errno 28] No space left on device\n"


def failing(monkeypatch, error):
    """Run a command that raises an error; `--debug` goes before it."""

    def run_bench(*_):
        raise error

    monkeypatch.setattr("tidings.app.cli.start_commands.run_bench", run_bench)
    return lambda *options: tidings(*options, "bench")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TidingsError("k is 0"), "k is 0"),
        (TidingsError("file \udcff.csv"), "file \\udcff.csv"),
        (FileNotFoundError(2, "No such file", "a.csv"), "[Errno 2] No such file: 'a.csv'"),
        (MemoryError(), "out of memory; use a smaller input or a larger machine"),
    ],
)
def test_an_error_is_one_sentence_on_standard_error(monkeypatch, error, says):
    result = failing(monkeypatch, error)()
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"error: {says}\n")


def test_the_text_of_an_unexpected_error_is_not_printed(monkeypatch):
    result = failing(monkeypatch, KeyError("swordfish"))()
    assert result.exit_code == 1
    assert result.stderr.startswith("error: unexpected KeyError; this is a bug in Tidings; ")
    assert "swordfish" not in result.output


def test_debug_raises_the_error_itself(monkeypatch):
    error = KeyError("swordfish")
    assert failing(monkeypatch, error)("--debug").exception is error
    monkeypatch.setenv("TIDINGS_DEBUG", "1")
    assert failing(monkeypatch, error)().exception is error


def test_json_is_one_line_of_readable_text(capsys):
    print_json({"title": "Amélie", "path": "a\nb", "half": "\ud83d"})
    assert capsys.readouterr().out == '{"title": "Amélie", "path": "a\\nb", "half": "\\ud83d"}\n'


@pytest.mark.parametrize(
    ("words", "offered"),
    [("tidings st", {"store"}), ("tidings store in", {"inbox"}), ("tidings run --fr", {"--fresh"})],
)
def test_shells_complete_commands_and_options(words, offered):
    number = len(words.split()) - 1
    asked = {"_TIDINGS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    runner = CliRunner(env=asked)
    result = runner.invoke(app, [], prog_name="tidings")
    assert set(result.stdout.split()) == offered
