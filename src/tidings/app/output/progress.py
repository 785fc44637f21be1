"""Progress of a run: a live view on a terminal, otherwise a line of text or JSON per batch."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from tidings.app.output.console import plural
from tidings.app.run.summary import BatchSummary, RunSummary
from tidings.app.terminal import json_line
from tidings.model.values import format_time

View = Callable[[str], RenderableType]
"""Draws the current state of a run, given the latest message."""

_UNITS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class RunReporter(Protocol):
    """A reporter of the progress of a run."""

    def batch(self, line: str, form: Mapping[str, Any]) -> None:
        """Report a finished batch, given as a line of text and as a JSON form."""

    def message(self, text: str, level: str = "info") -> None:
        """Report anything else."""


@contextmanager
def open_reporter(
    console: Console,
    view: View,
    log: Literal["text", "json"] | None = None,
    prefix: Callable[[], str] = str,
) -> Iterator[RunReporter]:
    """Yield the reporter of `log`; without it, a live view on a terminal and text elsewhere."""
    if log == "json":
        yield JsonReporter(console)
    elif log == "text" or not console.is_terminal or console.is_dumb_terminal:
        yield TextReporter(console, prefix)
    else:
        live = LiveReporter(console, view)
        with live.display:
            yield live


@dataclass(frozen=True)
class TextReporter:
    """A reporter of lines of text, each after the prefix that `prefix` returns."""

    console: Console
    prefix: Callable[[], str] = str

    def batch(self, line: str, form: Mapping[str, Any]) -> None:
        """Print the line of a finished batch."""
        self.console.print(Text(f"{self.prefix()}{line}", "dim"), soft_wrap=True)

    def message(self, text: str, level: str = "info") -> None:
        """Print a message."""
        self.console.print(Text(f"{self.prefix()}{text}"), soft_wrap=True)


@dataclass(frozen=True)
class JsonReporter:
    """A reporter of log records in JSON Lines; without `messages`, only of batches.

    `clock` returns the time of a record in seconds since 1970.
    """

    console: Console
    messages: bool = True
    clock: Callable[[], float] = time.time

    def batch(self, line: str, form: Mapping[str, Any]) -> None:
        """Print the form of a finished batch."""
        record = self._record("batch", "info") if self.messages else {}
        print_json_line(self.console, {**record, **form})

    def message(self, text: str, level: str = "info") -> None:
        """Print a log record with a message."""
        if self.messages:
            print_json_line(self.console, self._record(text, level))

    def _record(self, text: str, level: str) -> dict[str, str]:
        at = format_time(int(self.clock() * 1_000) * 1_000)
        return {"time": at, "level": level, "message": text}


def print_json_line(console: Console, form: Mapping[str, Any]) -> None:
    """Print a form as one line, without the wrapping and styles of the console."""
    console.file.write(json_line(form) + "\n")
    console.file.flush()


class LiveReporter:
    """A reporter that redraws a view in place, and removes it when the run ends."""

    def __init__(self, console: Console, view: View) -> None:
        self._view = view
        self._message = ""
        self.display = Live(
            console=console, get_renderable=self._draw, refresh_per_second=5, transient=True
        )

    def batch(self, line: str, form: Mapping[str, Any]) -> None:
        """Clear the message; the view draws the new state by itself."""
        self._message = ""

    def message(self, text: str, level: str = "info") -> None:
        """Show a message until the next batch; a warning stays above the view."""
        if level == "warning":
            self.display.console.print(Text(text, "yellow"), soft_wrap=True)
        else:
            self._message = text

    def _draw(self) -> RenderableType:
        return self._view(self._message)


class RunView:
    """The live view of `tidings run`: the last batch, the totals, and the latest message."""

    def __init__(self, summary: RunSummary) -> None:
        self._summary = summary
        self._spinner = Spinner("dots")

    def __call__(self, message: str) -> RenderableType:
        """Return the spinner with the current text."""
        self._spinner.update(text=Text(self.text(message)))
        return self._spinner

    def text(self, message: str) -> str:
        """Return the text beside the spinner."""
        lines = [message] if message else []
        if self._summary.last is not None:
            batches = plural(self._summary.batches, "batch")
            totals = f"{batches}: {', '.join(_counts(self._summary))}"
            lines = [batch_line(self._summary.last).strip(), totals, *lines]
        return "\n".join(lines)


def batch_line(batch: BatchSummary) -> str:
    """Return a line with the counts of a batch, and its throughput, lag and state size."""
    counts = f"{plural(batch.events, 'event'):>14}   {plural(batch.deliveries, 'delivery'):>16}"
    nonzero = [count for count in _counts(batch)[2:] if not count.startswith("0 ")]
    measures = _format_measures(batch.measures)
    return "   ".join([f"  batch {batch.number:<4} {counts}", *nonzero, *measures])


def _counts(summary: BatchSummary | RunSummary) -> list[str]:
    return [
        plural(summary.events, "event"),
        plural(summary.deliveries, "delivery"),
        f"{summary.late:,} late",
        plural(summary.dead, "dead letter"),
    ]


def _format_measures(measures: Mapping[str, Any]) -> list[str]:
    """Return throughput, lag, unread input and state size, as far as they are known."""
    if not measures:
        return []
    texts = [f"{measures['events_per_second']:,.0f} events/s"]
    if measures["lag_seconds"] is not None:
        texts.append(f"lag {format_duration(measures['lag_seconds'])}")
    texts += [f"{name} {number:,.0f}" for name, number in measures["behind"].items()]
    return [*texts, f"state {format_size(measures['state_bytes'])}"]


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit that it holds at least twice.

    >>> format_duration(3.24), format_duration(300), format_duration(86_400)
    ('3.2 s', '5 min', '24 h')
    """
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:.1f} s"


def format_size(count: float) -> str:
    """Return a number of bytes with its unit.

    >>> format_size(512), format_size(8_360), format_size(2_500_000)
    ('512 B', '8.4 kB', '2.5 MB')
    """
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} B"
