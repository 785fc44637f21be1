"""Everything the demo draws on the screen, from its state; without Spark."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidings.app.demo.movies import EVERY_S
from tidings.app.demo.state import Comparison, DemoState, ListedFilm, SubscriberStats
from tidings.app.demo.subscribers import DemoSubscriber
from tidings.app.demo.workspace import CONFIG
from tidings.model.records import Event

_WIDE: Final = 130
_REASON_WIDTH: Final = 42
_DAY_S: Final = 24 * 60 * 60
_ROTATION_S: Final = 3
_ROWS_ABOVE_FEEDS: Final = 8
_ARTICLE: Final = re.compile(r"(.+), (The|An?|La|Le|Les|L'|Der|Die|Das|El|Los|Las|Il)")


def introduction(films: int, subscribers: Sequence[DemoSubscriber]) -> RenderableType:
    """Describe the demo in two sentences, and list its subscribers."""
    text = (
        f"{films:,} real films are published, one every {EVERY_S} seconds of simulated time, and "
        f"flow through a Spark stream to {len(subscribers)} subscribers with different tastes. "
        "Plain publish/subscribe would send each of them every film that matches; Tidings sends "
        "the few that rank highest and differ from each other."
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("subscriber", style="bold cyan", no_wrap=True)
    table.add_column("likes")
    table.add_column("gets", style="dim")
    for subscriber in subscribers:
        table.add_row(subscriber.name, subscriber.likes, subscriber.gets)
    return Group(Text("Tidings: ranked publish/subscribe", style="bold cyan"), Text(text), table)


class LiveView:
    """The live view: a progress bar, the table, and as many feeds as the terminal has room for."""

    def __init__(self, console: Console, elapsed: Callable[[], float]) -> None:
        self.state: DemoState | None = None
        self._console = console
        self._elapsed = elapsed

    def __call__(self, message: str) -> RenderableType:
        """Draw the current state."""
        if self.state is None or not self.state.batches:
            return Text(f"{message} ({self._elapsed():.0f} s)", style="dim")
        message = message or f"batch {self.state.batches} of {len(self.state.sizes)}"
        stats = list(self.state.stats.values())
        return Group(
            progress(self.state, self._elapsed(), message),
            stats_table(stats, self._console.width),
            *self._visible_feeds(stats),
        )

    def _visible_feeds(self, stats: list[SubscriberStats]) -> Iterator[RenderableType]:
        """Yield the feeds that fit below the table; the first one rotates every few seconds."""
        room = self._console.height - _ROWS_ABOVE_FEEDS - len(stats)
        first = int(self._elapsed() / _ROTATION_S) % len(stats)
        for subscriber_stats in stats[first:] + stats[:first]:
            room -= height(subscriber_stats)
            if room < 0:
                return
            yield Group(feed(subscriber_stats, self._console.width), "")


def progress(state: DemoState, elapsed_s: float, message: str) -> RenderableType:
    """Draw the progress of the stream."""
    rows = Table.grid(padding=(0, 2), expand=True)
    rows.add_column(ratio=1)
    rows.add_column(justify="right", no_wrap=True)
    bar = ProgressBar(total=state.films.num_rows, completed=state.published)
    rows.add_row(bar, Text(position(state), style="bold"))
    rows.add_row(Text(message, style="dim"), Text(f"{elapsed_s:.0f} s", style="dim"))
    return rows


def progress_line(state: DemoState) -> str:
    """Return the progress of the stream in one line."""
    return f"{position(state)}: {state.delivered:,} of {state.matches:,} matches delivered"


def position(state: DemoState) -> str:
    """Return the position in the stream: the number of films, and the simulated time."""
    past_s = state.published * EVERY_S
    day, hour, minute = past_s // _DAY_S + 1, past_s // 3600 % 24, past_s // 60 % 60
    films = f"{state.published:,} of {state.films.num_rows:,} films"
    return f"{films}, day {day} {hour:02d}:{minute:02d}"


def stats_table(stats: Iterable[SubscriberStats], width: int) -> Table:
    """Draw a row per subscriber: plain publish/subscribe next to Tidings."""
    wide = width >= _WIDE
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("\nsubscriber", style="bold cyan", no_wrap=True)
    if wide:
        table.add_column("\ngets", style="dim")
    table.add_column("plain\nsends", justify="right", no_wrap=True)
    table.add_column("Tidings\nsends", justify="right", style="bold green", no_wrap=True)
    table.add_column("\nshare", justify="right", no_wrap=True)
    table.add_column("mean rank\nplain → Tidings", justify="center", no_wrap=True)
    table.add_column("mean diversity\nplain → Tidings", justify="center", no_wrap=True)
    for row in stats:
        counts = [f"{row.matches:,}", f"{len(row.delivered):,}", f"{row.share:.1%}"]
        pairs = [_arrow(row.mean_ranks), _arrow(row.mean_diversities)]
        subscriber = row.subscriber
        table.add_row(subscriber.name, *([subscriber.gets] * wide), *counts, *pairs)
    return table


def _arrow(pair: Comparison) -> str:
    return f"{pair.plain:.2f} → {pair.tidings:.2f}" if pair.tidings else ""


def feed(stats: SubscriberStats, width: int, *, fold: bool = False) -> RenderableType:
    """Draw the last list of a subscriber: position, rank, film, and why it matched.

    Long texts are cut, so that a film takes one line; with `fold` they are wrapped instead.
    """
    head = Text.assemble((stats.subscriber.name, "bold cyan"), f"  {stats.subscriber.gets}")
    if not stats.films:
        return Group(head, Text("     nothing delivered yet", style="dim"))
    return Group(head, _films(stats.films, width, fold=fold), _diversity_line(stats))


def _films(films: Iterable[ListedFilm], width: int, *, fold: bool) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", style="dim", width=3)
    rows.add_column(justify="right", style="bold green", width=4)
    rows.add_column(width=width - _REASON_WIDTH - 14, no_wrap=not fold, overflow="ellipsis")
    rows.add_column(width=_REASON_WIDTH, style="dim", no_wrap=not fold, overflow="ellipsis")
    for listed in films:
        texts = (f"{listed.position}.", f"{listed.rank:.2f}", title(listed.film), listed.reason)
        rows.add_row(*map(Text, texts))
    return rows


def _diversity_line(stats: SubscriberStats) -> Text:
    """Return the diversity of the list, and of the last films of plain publish/subscribe."""
    films = ", ".join(title(film) for film in stats.plain)
    line = Text.assemble(
        (f"     diversity {stats.diversity.tidings:.2f}", "green"),
        (f", plain {stats.diversity.plain:.2f}: {films}", "dim"),
    )
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def height(stats: SubscriberStats) -> int:
    """Return the number of rows that a feed takes without folding, with an empty one after it."""
    return len(stats.films) + 3


def title(film: Event) -> str:
    """Return the title of a film with its article in front, and its year.

    >>> title(Event("m1", {"title": "Graduate, The", "year": 1967}, 0))
    'The Graduate (1967)'
    """
    text = str(film.attributes["title"])
    if match := _ARTICLE.fullmatch(text):
        text = f"{match[2]} {match[1]}".replace("' ", "'")
    return f"{text} ({film.attributes['year']})"


def result(state: DemoState, seconds: float, width: int) -> RenderableType:
    """Draw the last list of every subscriber, then all figures."""
    heading = "The last list of each feed: position, rank, film, and why it matched"
    stats = state.stats.values()
    return Group(
        Text(heading, style="bold"),
        "",
        *(Group(feed(subscriber_stats, width, fold=True), "") for subscriber_stats in stats),
        Text("All deliveries, compared with plain publish/subscribe", style="bold"),
        stats_table(stats, width),
        *_contrast(state),
        *_totals(state, seconds),
    )


def stopped(state: DemoState, directory: Path) -> Text:
    """Describe the output after an interrupt."""
    return Text(
        f"Stopped after {state.batches} of {len(state.sizes)} batches; their output is in "
        f"{directory}."
    )


def _contrast(state: DemoState) -> Iterator[Text]:
    """Describe the deliveries of the films that two subscribers rank differently (PREF 3.2)."""
    dramas = state.dramas_by("T. Burton")
    if not dramas:
        return
    parts = []
    for name in ("addison-burton", "carson"):
        delivered = sum(film.id in state.stats[name].delivered for film in dramas)
        parts.append(f"{name}, who ranks them {state.rank(name, dramas[0])}, got {delivered}")
    yield Text(f"{len(dramas)} dramas by T. Burton: {'; '.join(parts)}.")


def _totals(state: DemoState, seconds: float) -> Iterator[Text]:
    share = state.delivered / state.matches if state.matches else 0.0
    days = state.published * EVERY_S / _DAY_S
    yield Text(f"{state.published:,} films, {days:.1f} simulated days, {seconds:.0f} seconds.")
    yield Text.assemble(
        f"{state.matches:,} matches, ",
        (f"{state.delivered:,} delivered ({share:.1%})", "bold green"),
        f", {state.dead} refused, {state.late} late.",
    )


def next_steps(directory: Path, command: str) -> RenderableType:
    """List the files that were written, and commands to try next."""
    config = directory / CONFIG
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="cyan", no_wrap=True)
    rows.add_column(style="dim")
    rows.add_row(f"{directory}/deliveries/", "all deliveries, as Parquet")
    rows.add_row(f"{directory}/subscriptions.jsonl", "all subscriptions")
    rows.add_row(f"{command} check {config}", "check them")
    rows.add_row(f"{command} run {config}", "change them and run again")
    rows.add_row("README.md", "continue with Python and Spark")
    return Group("", Text("Output, and what to try next", style="bold"), rows)
