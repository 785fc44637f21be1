"""Everything the demo draws on the screen, from its state; without Spark."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tidings.app.demo.compare import FigurePair, Figures
from tidings.app.demo.facts import RunFacts
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.movies import DAY_S, EVERY_S, clock, title
from tidings.app.demo.state import DemoState, ListedFilm, SubscriberStats
from tidings.app.demo.subscribers import DemoSubscriber
from tidings.app.demo.workspace import CONFIG
from tidings.model.values import SECOND_US

_ROTATION_S: Final = 3
_ROWS_ABOVE_FEEDS: Final = 8
_ROWS_ABOVE_NEWS: Final = 4
_NO_VALUE: Final = "-"

RANK: Final = "how well the films fit, as a share of the subscriber's best list"
VARIETY: Final = "how much they differ in genre and decade: 1 is in everything"
AGE: Final = "how old they are when the list is complete"
COLUMNS: Final = {
    "plain": "films that match: plain publish/subscribe sends them all",
    "Tidings": "films that Tidings sent",
    "rank": RANK,
    "variety": f"{VARIETY} (*: did not ask for it)",
    "age": AGE,
}
"""The columns of the table, explained."""
FIRST_COME: Final = (
    "First come means the first films that matched since the previous list: what somebody reads "
    "who stops after that many notifications."
)
MEANWHILE: Final = "Starting Spark; meanwhile, the first day in this process"


class News(NamedTuple):
    """A delivery, as the ticker shows it."""

    subscriber: str
    listed: ListedFilm


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
    table.add_column("likes (and how much)")
    table.add_column("gets", style="dim")
    for subscriber in subscribers:
        table.add_row(subscriber.name, subscriber.likes, subscriber.gets)
    return Group(Text("Tidings: ranked publish/subscribe", style="bold cyan"), Text(text), table)


class LiveView:
    """The live view: the latest deliveries while Spark starts, then the table and the feeds."""

    def __init__(self, console: Console, elapsed: Callable[[], float]) -> None:
        self.state: DemoState | None = None
        self.day: FirstDay | None = None
        self.news: deque[News] = deque(maxlen=50)
        self._console = console
        self._elapsed = elapsed
        self._spinner = Spinner("dots", style="cyan")

    def __call__(self, message: str) -> RenderableType:
        """Draw the current state."""
        if self.state is None or not self.state.batches:
            text = f"{message or MEANWHILE} ({self._elapsed():.0f} s)"
            self._spinner.update(text=Text(text, style="dim"))
            return Group(self._spinner, *self._first_day())
        message = message or f"batch {self.state.batches} of {len(self.state.sizes)}"
        stats = list(self.state.stats.values())
        return Group(
            progress(self.state, self._elapsed(), message),
            stats_table(stats),
            *self._visible_feeds(stats),
        )

    def _first_day(self) -> Iterator[RenderableType]:
        """Yield the first day so far, and as many of its deliveries as there is room for."""
        if self.day is not None and self.day.published:
            room = max(1, self._console.height - _ROWS_ABOVE_NEWS)
            yield Text(day_line(self.day), style="bold")
            yield _news_table(list(self.news)[-room:][::-1])

    def _visible_feeds(self, stats: list[SubscriberStats]) -> Iterator[RenderableType]:
        """Yield the feeds that fit below the table; the first one rotates every few seconds."""
        room = self._console.height - _ROWS_ABOVE_FEEDS - len(stats)
        first = int(self._elapsed() / _ROTATION_S) % len(stats)
        for subscriber_stats in stats[first:] + stats[:first]:
            room -= height(subscriber_stats)
            if room < 0:
                return
            yield Group(feed(subscriber_stats, fold=False), "")


def _news_table(news: Iterable[News]) -> Table:
    rows = Table.grid(padding=(0, 2), expand=True)
    for style, width in (("dim", 5), ("cyan", 14), ("bold green", 4)):
        rows.add_column(style=style, min_width=width, no_wrap=True)
    rows.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for subscriber, (sent, _) in news:
        rank = f"{sent.rank:.2f}"
        rows.add_row(clock(sent.at_us // SECOND_US), subscriber, rank, Text(title(sent.film)))
    return rows


def day_line(day: FirstDay) -> str:
    """Return how far the first day is, and what it delivered, in one line."""
    sent = f"{len(day.deliveries):,} of {day.matches:,} matches sent"
    return f"day 1 {clock(day.published * EVERY_S)}: {sent}"


def news_line(news: News) -> str:
    """Return a delivery in one line."""
    return f"to {news.subscriber}: {title(news.listed.sent.film)}"


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
    return f"{position(state)}: {state.delivered:,} of {state.matches:,} matches sent"


def position(state: DemoState) -> str:
    """Return the position in the stream: the number of films, and the simulated time."""
    past_s = state.published * EVERY_S
    films = f"{state.published:,} of {state.films.num_rows:,} films"
    return f"{films}, day {past_s // DAY_S + 1} {clock(past_s)}"


def age(seconds: float) -> str:
    """Return a duration in a few characters.

    >>> age(51.2), age(1790), age(117 * 60), age(6 * 3600)
    ('51 s', '30 min', '2 h', '6 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.0f} h"


def stats_table(stats: Iterable[SubscriberStats]) -> Table:
    """Draw a row per subscriber: plain publish/subscribe next to Tidings."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("subscriber", style="bold cyan", no_wrap=True)
    table.add_column("plain", justify="right", no_wrap=True)
    table.add_column("Tidings", justify="right", style="bold green", no_wrap=True)
    for name in ("rank", "variety", "age"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in stats:
        cells = _quality_cells(row.subscriber, row.figures)
        table.add_row(row.subscriber.name, f"{row.matches:,}", f"{row.delivered:,}", *cells)
    return table


def _quality_cells(owner: DemoSubscriber, quality: Figures | None) -> list[str]:
    if quality is None:
        return [_NO_VALUE] * 3
    mark = " " if owner.asks_for_variety else "*"
    return [
        arrow(quality.rank, "{:.0%}".format),
        arrow(quality.variety, "{:.2f}".format) + mark,
        arrow(quality.age_s, age),
    ]


def arrow(pair: FigurePair, form: Callable[[float], str]) -> str:
    """Return the figure of the films that came first, an arrow, and that of Tidings.

    >>> arrow(FigurePair(0.5, 0.75), "{:.0%}".format)
    '50% → 75%'
    """
    return f"{form(pair.first_come)} → {form(pair.tidings)}"


def legend() -> RenderableType:
    """Explain the columns of the table."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column()
    for name, text in COLUMNS.items():
        rows.add_row(name, text)
    text = "The arrows lead from first come to Tidings, list by list with the same number of films."
    return Group(rows, Text(f"{text} {FIRST_COME}"))


def feed(stats: SubscriberStats, *, fold: bool) -> RenderableType:
    """Draw the last deliveries to a subscriber: when, rank, film, and with `fold` why it matched.

    With `fold` long texts are wrapped. Otherwise they are cut, so that a film takes one line.
    """
    head = Text.assemble((stats.subscriber.name, "bold cyan"), f"  {stats.subscriber.gets}")
    head.no_wrap, head.overflow = not fold, "ellipsis" if not fold else "fold"
    if not stats.films:
        return Group(head, Text("   nothing sent yet", style="dim"))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(justify="right", style="bold green", no_wrap=True)
    rows.add_column(no_wrap=not fold, overflow="fold" if fold else "ellipsis", ratio=4)
    if fold:
        rows.add_column(style="dim", overflow="fold", ratio=3)
    for sent, reason in stats.films:
        when = f"   {clock(sent.at_us // SECOND_US)}"
        cells = [Text(title(sent.film)), *([Text(reason)] if fold else [])]
        rows.add_row(when, f"{sent.rank:.2f}", *cells)
    return Group(head, rows)


def height(stats: SubscriberStats) -> int:
    """Return the number of rows that a feed takes without folding, with an empty one after it."""
    return max(1, len(stats.films)) + 2


def result(state: DemoState, facts: RunFacts) -> RenderableType:
    """Draw the last list of every subscriber, then all figures."""
    stats = state.stats.values()
    return Group(
        Text("The last films of each feed: when they were sent, rank, and why", style="bold"),
        *_scale_note(stats),
        "",
        *(Group(feed(subscriber_stats, fold=True), "") for subscriber_stats in stats),
        Text("All deliveries, compared with plain publish/subscribe", style="bold"),
        stats_table(stats),
        legend(),
        "",
        *_contrast(state),
        *_rules(stats),
        *_totals(state, facts),
    )


def _scale_note(stats: Iterable[SubscriberStats]) -> Iterator[Text]:
    """Explain ranks above 1, if there are any."""
    names = [
        row.subscriber.name for row in stats if any(listed.sent.rank > 1 for listed in row.films)
    ]
    if names:
        yield Text(
            f"Ranks are on each subscriber's own scale. That of {' and '.join(names)} goes above "
            "1, since preference graphs reward related traits.",
            style="dim",
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
        sent = sum(map(state.stats[name].received, dramas))
        parts.append(f"{name}, who ranks them {state.rank(name, dramas[0])}, got {sent}")
    yield Text(f"{len(dramas)} dramas by T. Burton: {'; '.join(parts)}.")


def _rules(stats: Iterable[SubscriberStats]) -> Iterator[Text]:
    """Yield what the rules of subscribers did, in words."""
    for row in stats:
        if row.ruled:
            yield Text(f"{row.subscriber.name} gets {row.subscriber.gets}: {row.ruled}.")


def _totals(state: DemoState, facts: RunFacts) -> Iterator[Text]:
    share = state.delivered / state.matches if state.matches else 0.0
    days = state.published * EVERY_S / DAY_S
    seconds = f"{facts.seconds:.0f} seconds"
    yield Text(f"{state.published:,} films, {days:.1f} simulated days, {seconds}.")
    yield Text.assemble(
        f"{state.matches:,} matches, ",
        (f"{state.delivered:,} sent ({share:.1%})", "bold green"),
        f", {state.dead} refused, {state.late} late.",
    )
    yield Text(facts.agreement)


def next_steps(directory: Path, command: str, report: Path) -> RenderableType:
    """List the report and the files that were written, and commands to try next."""
    config = directory / CONFIG
    steps = {
        str(report): "a day on two phones: open it in a browser",
        f"{directory}/deliveries/": "all deliveries, as Parquet",
        f"{command} check {config}": "check the subscriptions",
        f"{command} run {config}": "change them and run again",
        "README.md": "continue with Python and Spark",
    }
    lines = [
        Text.assemble((f"{what}\n", "cyan"), (f"    {why}", "dim")) for what, why in steps.items()
    ]
    return Group("", Text("Output, and what to try next", style="bold"), *lines)
