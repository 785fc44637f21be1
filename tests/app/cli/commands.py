"""The files of the example, and commands that run in this process or in a child."""

import json
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from tidings.app.cli import app

EXAMPLE = Path(__file__).parents[3] / "examples" / "movies"
CONFIG, SUBSCRIPTIONS, EVENTS, SUBSCRIBERS = (
    str(EXAMPLE / name)
    for name in ("pipeline.toml", "subscriptions.jsonl", "events.jsonl", "subscribers.jsonl")
)
HORROR = '{"genre": ["horror", "comedy"], "rating": 7, "minutes": 90}'


def tidings(*arguments, stdin=None, columns=80):
    return CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(
        app, [str(argument) for argument in arguments], input=stdin
    )


def printed(result):
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def wrong_usage(*arguments):
    """Return the error of a command that is used wrongly, once its status is 2."""
    result = tidings(*arguments, columns=200)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def command(*arguments, **options):
    """Run the real command in a child process."""
    line = [sys.executable, "-m", "tidings.app.cli", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)
