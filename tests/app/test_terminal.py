"""Escape sequences in data never reach a terminal, in tables, errors or JSON."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from typer.testing import CliRunner

from tidings.app.cli import app
from tidings.app.terminal import SafeConsole, json_line, printable

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
