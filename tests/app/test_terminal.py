"""Escape sequences in data never reach a terminal, in tables, errors or JSON."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from typer.testing import CliRunner

from tidings.app.cli import app
from tidings.app.terminal import (
    JsonLines,
    SafeConsole,
    json_line,
    printable,
    start_logging,
)

HOSTILE = "\x1b]0;mine\x07\x1b[2J\x9b2J\x7f\r\x08"


def is_harmless(output: str) -> bool:
    return not any(ord(sign) < 32 or 0x7F <= ord(sign) < 0xA0 for sign in output if sign != "\n")


def test_control_characters_are_replaced() -> None:
    assert printable(HOSTILE) == "�]0;mine��[2J�2J���"
    assert printable("a\n\tb é") == "a\n\tb é"


def test_json_is_escaped_and_read_back() -> None:
    text = json_line({HOSTILE: ["é\udcff"]})
    assert is_harmless(text)
    assert json.loads(text) == {HOSTILE: ["é\udcff"]}


def test_a_console_prints_its_own_control_characters_only() -> None:
    file = io.StringIO()
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    console = SafeConsole(file=file, force_terminal=True, width=80)
    console.print(table, HOSTILE, style="bold")
    assert "\x1b[1m" in file.getvalue()
    assert "\x1b[2J" not in file.getvalue()
    assert "\x1b]0" not in file.getvalue()


@pytest.mark.parametrize("text", ["[bold]ada[/bold]", "no [/x]", "[", "a :bell: b", "[link=x]y"])
def test_what_looks_like_markup_is_text(text: str) -> None:
    file, table = io.StringIO(), Table("id")
    table.add_row(text)
    SafeConsole(file=file, width=80).print(text, table)
    assert file.getvalue().count(text) == 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    subscription = {"id": f"s{HOSTILE}", "subscriber": f"ann{HOSTILE}", "where": "a = 1 or b = 2"}
    bad = {"id": f"b{HOSTILE}", "subscriber": "bob", "where": f"a = {HOSTILE}"}
    event = {"id": f"e{HOSTILE}", "published_at": 0, "attributes": {"a": 1, HOSTILE: HOSTILE}}
    forms: dict[str, list[Any]] = {
        "subscriptions.jsonl": [subscription, bad],
        "events.jsonl": [event],
    }
    for name, listed in forms.items():
        Path(name).write_text("\n".join(map(json.dumps, listed)))
    Path(f"{HOSTILE}.csv").write_text(f"id,a{HOSTILE.rstrip()}b\n1,x\n2,y\n3,x\n")
    return tmp_path


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize(
    "command",
    [
        ["check", "subscriptions.jsonl", "events.jsonl"],
        ["check", f"missing{HOSTILE}"],
        ["match", "subscriptions.jsonl", "events.jsonl"],
        ["init", "--force", f"{HOSTILE}.csv"],
        ["store", "add", "films.db", "subscriptions.jsonl"],
        ["store", "list", "films.db"],
        ["store", "inbox", "films.db", f"nobody{HOSTILE}"],
    ],
)
def test_no_command_prints_escape_sequences(
    folder: Path, command: list[str], as_json: list[str]
) -> None:
    CliRunner().invoke(app, ["store", "add", "films.db", "subscriptions.jsonl"])
    result = CliRunner().invoke(app, [*command, *as_json])
    assert is_harmless(result.output), result.output
    assert "is a bug" not in result.output


def test_no_warning_prints_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    """What a server answered may be in one."""
    CliRunner().invoke(app, ["store", "list", "missing.db"])
    assert logging.lastResort is not None
    logging.lastResort.handle(logging.makeLogRecord({"msg": f"it said {HOSTILE}"}))
    printed = capsys.readouterr().err
    assert printed.startswith("it said ")
    assert is_harmless(printed)


@pytest.fixture
def loggers() -> Iterator[None]:
    """Restore the loggers of this process."""
    root, others = logging.getLogger(), [logging.getLogger(name) for name in ("uvicorn", "py4j")]
    handlers, levels = root.handlers[:], [logger.level for logger in (root, *others)]
    yield
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    for logger, level in zip((root, *others), levels, strict=True):
        logger.setLevel(level)


def record(
    message: str, *arguments: object, error: BaseException | None = None
) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("tidings.test", logging.WARNING, "f", 1, message, arguments, info)
    made.created = 1_700_000_000.1234
    return made


def test_a_record_is_one_line_of_json() -> None:
    text = JsonLines().format(record("%s of %d\nand more", "é\x1b[2J", 3))
    assert "\n" not in text
    assert json.loads(text) == {
        "time": "2023-11-14T22:13:20.123+00:00",
        "level": "warning",
        "logger": "tidings.test",
        "message": "é\x1b[2J of 3\nand more",
    }


def test_an_error_has_its_traceback() -> None:
    try:
        raise ValueError("no good")
    except ValueError as error:
        form = json.loads(JsonLines().format(record("it failed", error=error)))
    assert form["message"] == "it failed"
    assert form["traceback"].startswith("Traceback (most recent call last):")
    assert form["traceback"].endswith("ValueError: no good")


@pytest.mark.usefixtures("loggers")
def test_lines_for_people_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("text")
    logging.getLogger("tidings.test").warning("a server says %s", "\x1b[2J")
    line = capsys.readouterr().err
    assert line.endswith(" WARNING tidings.test: a server says \ufffd[2J\n")


@pytest.mark.usefixtures("loggers")
def test_lines_for_programs_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("json")
    logging.getLogger("tidings.test").info("hello")
    form = json.loads(capsys.readouterr().err)
    assert (form["level"], form["message"]) == ("info", "hello")


@pytest.mark.parametrize(
    ("logger", "level", "shown"),
    [
        ("tidings", logging.INFO, True),
        ("tidings", logging.DEBUG, False),
        ("uvicorn.access", logging.INFO, False),
        ("uvicorn.error", logging.WARNING, True),
        ("py4j", logging.ERROR, False),
    ],
)
@pytest.mark.usefixtures("loggers")
def test_only_what_matters_is_logged(
    capsys: pytest.CaptureFixture[str], logger: str, level: int, shown: bool
) -> None:
    start_logging("text")
    logging.getLogger(logger).log(level, "hello")
    assert ("hello" in capsys.readouterr().err) == shown


@pytest.mark.usefixtures("loggers")
def test_the_log_is_written_once_however_often_it_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    start_logging("text")
    start_logging("json")
    logging.getLogger("tidings.test").info("hello")
    assert capsys.readouterr().err.count("hello") == 1
