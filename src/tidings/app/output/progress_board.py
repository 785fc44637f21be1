"""How a run does while it runs: a board on a terminal, or a line for each batch."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from tidings.app.output.console import plural
from tidings.app.run.summary import Batch

_UNITS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class Teller(Protocol):
    """Tells how a run does."""

    def batch(self, batch: Batch) -> None:
        """Tell of a batch that is done."""

    def say(self, words: str) -> None:
        """Tell what else is to be known."""


@contextmanager
def teller(console: Console, log: str | None, waiting: str) -> Iterator[Teller]:
    """Give what fits: the log that is asked for, else a board on a terminal, else lines.

    `console` is where progress goes; `waiting` is said until the first batch is done.
    """
    if log is not None or not console.is_terminal:
        yield JsonLines(console) if log == "json" else TextLines(console)
        return
    board = Board(console, waiting)
    with board.live:
        yield board


@dataclass(frozen=True)
class TextLines:
    """A line of words for each batch."""

    console: Console

    def batch(self, batch: Batch) -> None:
        """Tell of a batch that is done."""
        self.console.print(Text(batch_line(batch), "dim"), soft_wrap=True)

    def say(self, words: str) -> None:
        """Tell what else is to be known."""
        self.console.print(Text(words), soft_wrap=True)


@dataclass(frozen=True)
class JsonLines:
    """A line of JSON for each batch."""

    console: Console

    def batch(self, batch: Batch) -> None:
        """Tell of a batch that is done."""
        self._print({"level": "info", "message": "batch", **batch.to_dict()})

    def say(self, words: str) -> None:
        """Tell what else is to be known."""
        self._print({"level": "info", "message": words})

    def _print(self, form: Mapping[str, Any]) -> None:
        self.console.file.write(json.dumps(form, ensure_ascii=False) + "\n")
        self.console.file.flush()


@dataclass
class Board:
    """The last batch and all batches, on lines that change; they go when the run ends."""

    console: Console
    words: str
    total: Batch = field(default_factory=lambda: Batch(0, 0, 0))
    last: Batch | None = None

    def __post_init__(self) -> None:
        self._spinner = Spinner("dots", self._text())
        self.live = Live(self._spinner, console=self.console, transient=True)

    def batch(self, batch: Batch) -> None:
        """Tell of a batch that is done."""
        self.last, self.words = batch, ""
        self.total = Batch(
            self.total.number + 1,
            self.total.events + batch.events,
            self.total.deliveries + batch.deliveries,
            self.total.late + batch.late,
            self.total.dead + batch.dead,
        )
        self._spinner.update(text=self._text())

    def say(self, words: str) -> None:
        """Tell what else is to be known."""
        self.words = words
        self._spinner.update(text=self._text())

    def _text(self) -> Text:
        lines = []
        if self.last is not None:
            counts = f"{plural(self.total.number, 'batch')}: {', '.join(_counts(self.total))}"
            lines = [batch_line(self.last).strip(), counts]
        return Text("\n".join([*lines, self.words] if self.words else lines))


def batch_line(batch: Batch) -> str:
    """Give a line on a batch: what came of it, and how fast, how late and how large."""
    counts = f"{plural(batch.events, 'event'):>14}   {plural(batch.deliveries, 'delivery'):>16}"
    rest = [each for each in _counts(batch)[2:] if not each.startswith("0 ")]
    return "   ".join([f"  batch {batch.number:<4} {counts}", *rest, *_measured(batch.measures)])


def _counts(batch: Batch) -> list[str]:
    return [
        plural(batch.events, "event"),
        plural(batch.deliveries, "delivery"),
        f"{batch.late:,} late",
        plural(batch.dead, "dead letter"),
    ]


def _measured(measures: Mapping[str, Any]) -> list[str]:
    """Give speed, lag, unread input and state, as far as they are known."""
    if not measures:
        return []
    found = [f"{measures['events_per_second']:,.0f} events/s"]
    if measures["lag_seconds"] is not None:
        found.append(f"lag {duration(measures['lag_seconds'])}")
    found += [f"{name} {each:,.0f}" for name, each in measures["behind"].items()]
    return [*found, f"state {size(measures['state_bytes'])}"]


def duration(seconds: float) -> str:
    """Give a time in the largest unit of which there are two.

    >>> duration(3.24), duration(300), duration(86_400), duration(864_000)
    ('3.2 s', '5 min', '24 h', '10 d')
    """
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:.1f} s"


def size(count: float) -> str:
    """Give a number of bytes.

    >>> size(512), size(8_360), size(2_500_000)
    ('512 B', '8.4 kB', '2.5 MB')
    """
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} B"
