"""Arguments and options with anything in them: done, or refused without a secret."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer
from tests.app.cli.commands import EVENTS, HORROR, SUBSCRIBERS, SUBSCRIPTIONS, tidings
from tests.damage import SECRET, hostile_json, hostile_text, run_cases, shows_secret
from tests.fuzz import cases
from tests.test_secrets import ADDRESSES

from tidings.app.cli import app
from tidings.store import open_store

pytestmark = pytest.mark.fuzz

STORE = "films.db"
COMMANDS = [
    ["store", "list", STORE, "subscription", "--subscriber", "ada", "--after", "x", "--limit", "5"],
    ["store", "list", STORE, "subscriber"],
    ["store", "add", "new.db", SUBSCRIBERS],
    ["store", "remove", STORE, "subscription", "bruno-horror"],
    ["store", "pause", STORE, "ada"],
    ["store", "resume", STORE, "ada"],
    ["store", "inbox", STORE, "ada", "--limit", "3", "--read"],
    ["store", "letters", STORE, "dead", "--after", "0", "--limit", "2"],
    ["store", "prune", STORE, "--older-than", "30d", "--keep-keys", "1d"],
    ["store", "backup", STORE, "copy.db"],
    ["token", "create", STORE, "--role", "subscriber", "--subscriber", "ada", "--expires", "90d"],
    ["token", "create", STORE, "--role", "admin", "--tenant", "acme", "--label", "phone"],
    ["token", "list", STORE],
    ["token", "revoke", STORE, "tidings_4f0c2d5e8a1b3c6d_x"],
    ["channel", "list", STORE],
    ["channel", "failures", STORE, "orders", "--subscriber", "ada", "--limit", "3"],
    ["channel", "pause", STORE, "orders"],
    ["address", "list", STORE],
    ["address", "pause", STORE, "ada", "p"],
    ["match", SUBSCRIPTIONS, "--event", HORROR, "--scorer", "relaxed", "-k", "3"],
    ["match", SUBSCRIPTIONS, "--event", HORROR, "--scorer", '{"name": "graph", "lambda": 0.5}'],
    ["match", SUBSCRIPTIONS, "--event", HORROR, "--direction", "target"],
    ["explain", SUBSCRIPTIONS, "--event", HORROR, "--subscriber", "ada"],
    ["explain", SUBSCRIPTIONS, EVENTS, "--event", "film-02", "--subscription", "bruno-horror"],
    ["check", SUBSCRIPTIONS, EVENTS],
]
LONGEST = 4_000
"""Bytes of an error with the frame and the usage that are around it."""


def changed(rng: Random, value: str) -> str:
    """Change an argument: a JSON form within, some characters, or all of it."""
    if value.startswith("{") and rng.random() < 0.7:
        form: Any = json.loads(value)
        if rng.random() < 0.3:
            form = {"id": "e", "published_at": 0, "attributes": form, "content": {"a": [{}]}}
        for _ in range(rng.choice([1, 2])):
            form = hostile_json(rng, form)
        try:
            return json.dumps(form)
        except RecursionError:
            return "[" * 100_000
    if value.startswith("/"):  # a file of the example, near which nothing is written
        return rng.choice(["none.jsonl", "..", "x" * 300, f"ann:{SECRET}@host/db"])
    return rng.choice([hostile_text(rng, value), hostile_text(rng, value), "\udcff", "--json"])


def test_values_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Building all commands takes ten times as long as running one.
    commands = typer.main.get_command(app)
    monkeypatch.setattr("typer.testing._get_command", lambda _: commands)
    # A database that cannot be reached would be waited for.
    defaults = {**(open_store.__kwdefaults__ or {}), "patience_s": 0.0}
    monkeypatch.setattr(open_store, "__kwdefaults__", defaults)
    assert tidings("store", "add", STORE, SUBSCRIPTIONS, SUBSCRIBERS).exit_code == 0
    # What these import and compile, no child process has to.
    for command in (["token", "list", STORE], *COMMANDS[-3:]):
        assert tidings(*command).exit_code == 0

    def case(rng: Random) -> None:
        line = list(rng.choice(COMMANDS))
        for at in rng.sample(range(2, len(line)), min(len(line) - 2, rng.choice([1, 1, 2]))):
            if line[at] in (STORE, "new.db") and rng.random() < 0.5:
                line[at] = rng.choice(ADDRESSES)
            elif not line[at].startswith("-"):
                line[at] = changed(rng, line[at])
        result = tidings(*line, columns=200)
        text = f"{result.stdout}{result.stderr}"
        assert isinstance(result.exception, SystemExit | None), repr(result.exception)
        assert result.exit_code in (0, 1, 2)
        assert "unexpected" not in result.stderr, result.stderr
        assert "Traceback" not in text
        assert len(result.stderr.encode(errors="replace")) <= LONGEST, result.stderr[:200]
        assert not shows_secret(text), text

    run_cases("values", case, cases(60))
