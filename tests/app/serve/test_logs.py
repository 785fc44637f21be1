"""Logs of the service: lines for people, without control characters, or JSON for programs."""

import json
import logging
from collections.abc import Iterator

import pytest

from tidings.app.serve.logs import JsonLines, start_logging


@pytest.fixture(autouse=True)
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


def test_lines_for_people_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("text")
    logging.getLogger("tidings.test").warning("a server says %s", "\x1b[2J")
    line = capsys.readouterr().err
    assert line.endswith(" WARNING tidings.test: a server says \ufffd[2J\n")


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
def test_only_what_matters_is_logged(
    capsys: pytest.CaptureFixture[str], logger: str, level: int, shown: bool
) -> None:
    start_logging("text")
    logging.getLogger(logger).log(level, "hello")
    assert ("hello" in capsys.readouterr().err) == shown


def test_the_log_is_written_once_however_often_it_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    start_logging("text")
    start_logging("json")
    logging.getLogger("tidings.test").info("hello")
    assert capsys.readouterr().err.count("hello") == 1
