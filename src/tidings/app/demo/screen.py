"""What the demo puts on the screen, drawn from the board; no Spark and no clock in here."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidings.app.demo.movies import EVERY_S
from tidings.app.demo.state import Board
from tidings.app.demo.subscriber_stats import Line, Tally
from tidings.app.demo.subscribers import Role
from tidings.app.demo.workspace import CONFIG
from tidings.model.records import Event

_WIDE: Final = 130
_WHY: Final = 42
_DAY_S: Final = 24 * 60 * 60
_ARTICLE: Final = re.compile(r"(.+), (The|An?|La|Le|Les|L'|Der|Die|Das|El|Los|Las|Il)")


def opening(films: int, roles: Sequence[Role]) -> RenderableType:
    """Say in two sentences what will happen, and who takes part."""
    said = (
        f"{films:,} real films are published, one every {EVERY_S} seconds of simulated time, and "
        f"flow through a Spark stream to {len(roles)} subscribers with different tastes. Plain "
        "publish/subscribe would send each of them every film that matches; Tidings sends the few "
        "that rank highest and differ from each other."
    )
    people = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    people.add_column("subscriber", style="bold cyan", no_wrap=True)
    people.add_column("likes")
    people.add_column("gets", style="dim")
    for role in roles:
        people.add_row(role.name, role.likes, role.gets)
    return Group(Text("Tidings: ranked publish/subscribe", style="bold cyan"), Text(said), people)


def progress(board: Board, elapsed_s: float, doing: str) -> RenderableType:
    """Draw how far the stream is."""
    rows = Table.grid(padding=(0, 2), expand=True)
    rows.add_column(ratio=1)
    rows.add_column(justify="right", no_wrap=True)
    bar = ProgressBar(total=board.films.num_rows, completed=board.published)
    rows.add_row(bar, Text(where(board), style="bold"))
    rows.add_row(Text(doing, style="dim"), Text(f"{elapsed_s:.0f} s", style="dim"))
    return rows


def where(board: Board) -> str:
    """Say how far the stream is: films, and the time that they bring with them."""
    past_s = board.published * EVERY_S
    day, hour, minute = past_s // _DAY_S + 1, past_s // 3600 % 24, past_s // 60 % 60
    films = f"{board.published:,} of {board.films.num_rows:,} films"
    return f"{films}, day {day} {hour:02d}:{minute:02d}"


def standings(tallies: Iterable[Tally], width: int) -> Table:
    """Draw a row for each subscriber: plain publish/subscribe beside Tidings."""
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
    for tally in tallies:
        counts = [f"{tally.matches:,}", f"{len(tally.delivered):,}", f"{tally.share:.1%}"]
        pairs = [_arrow(tally.mean_ranks), _arrow(tally.mean_diversities)]
        table.add_row(tally.role.name, *([tally.role.gets] * wide), *counts, *pairs)
    return table


def _arrow(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.2f} → {pair[1]:.2f}" if pair[1] else ""


def feed(tally: Tally, width: int, *, whole: bool = False) -> RenderableType:
    """Draw the last list of a subscriber: position, rank, film, and why it matched.

    What is too long is cut, so that a film is a line, or folded to be there as a `whole`.
    """
    role = tally.role
    head = Text.assemble((role.name, "bold cyan"), f"  {role.gets}")
    if not tally.lines:
        return Group(head, Text("     nothing yet", style="dim"))
    return Group(head, _films(tally.lines, width, whole=whole), _apart(tally))


def _films(lines: Iterable[Line], width: int, *, whole: bool) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", style="dim", width=3)
    rows.add_column(justify="right", style="bold green", width=4)
    rows.add_column(width=width - _WHY - 14, no_wrap=not whole, overflow="ellipsis")
    rows.add_column(width=_WHY, style="dim", no_wrap=not whole, overflow="ellipsis")
    for line in lines:
        texts = (f"{line.position}.", f"{line.rank:.2f}", named(line.film), line.why)
        rows.add_row(*map(Text, texts))
    return rows


def _apart(tally: Tally) -> Text:
    """Say how diverse the list is, beside what plain publish/subscribe sent last."""
    plain, ours = tally.diversity
    films = ", ".join(named(film) for film in tally.plain)
    said = Text.assemble(
        (f"     diversity {ours:.2f}", "green"), (f", plain {plain:.2f}: {films}", "dim")
    )
    said.no_wrap, said.overflow = True, "ellipsis"
    return said


def height(tally: Tally) -> int:
    """Tell how many rows a feed takes where it is cut, with an empty one after it."""
    return len(tally.lines) + 3


def named(film: Event) -> str:
    """Name a film as people do.

    >>> named(Event("m1", {"title": "Graduate, The", "year": 1967}, 0))
    'The Graduate (1967)'
    """
    title = str(film.attributes["title"])
    if found := _ARTICLE.fullmatch(title):
        title = f"{found[2]} {found[1]}".replace("' ", "'")
    return f"{title} ({film.attributes['year']})"


def ending(board: Board, seconds: float, width: int) -> RenderableType:
    """Draw the last list of everybody, then all numbers."""
    said = "The last list of each feed: position, rank, film, and why it matched"
    tallies = board.tallies.values()
    return Group(
        Text(said, style="bold"),
        "",
        *(Group(feed(tally, width, whole=True), "") for tally in tallies),
        Text("All of it, beside plain publish/subscribe", style="bold"),
        standings(tallies, width),
        *_contrast(board),
        *_totals(board, seconds),
    )


def stopped(board: Board, directory: Path) -> Text:
    """Say what is there after an interrupt."""
    return Text(
        f"Stopped after {board.batches} of {len(board.sizes)} batches, which are in {directory}."
    )


def _contrast(board: Board) -> Iterator[Text]:
    """Say what became of the films about which two subscribers differ (PREF 3.2)."""
    dramas = board.dramas_by("T. Burton")
    if not dramas:
        return
    said = [f"{len(dramas)} dramas by T. Burton:"]
    for name in ("addison-burton", "carson"):
        got = sum(film.id in board.tallies[name].delivered for film in dramas)
        said.append(f"{name}, for whom they rank {board.rank(name, dramas[0])}, got {got};")
    yield Text(" ".join(said).removesuffix(";") + ".")


def _totals(board: Board, seconds: float) -> Iterator[Text]:
    share = board.delivered / board.matches if board.matches else 0.0
    days = board.published * EVERY_S / _DAY_S
    yield Text(f"{board.published:,} films, {days:.1f} simulated days, {seconds:.0f} seconds.")
    yield Text.assemble(
        f"{board.matches:,} matches, ",
        (f"{board.delivered:,} delivered ({share:.1%})", "bold green"),
        f", {board.dead} refused, {board.late} late.",
    )


def next_steps(directory: Path, command: str) -> RenderableType:
    """Say where everything was written, and what to type next."""
    config = directory / CONFIG
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="cyan", no_wrap=True)
    rows.add_column(style="dim")
    rows.add_row(f"{directory}/deliveries/", "who got what, as Parquet")
    rows.add_row(f"{directory}/subscriptions.jsonl", "who asked for what")
    rows.add_row(f"{command} check {config}", "check it")
    rows.add_row(f"{command} run {config}", "change it, run it")
    rows.add_row("README.md", "read on: Python, Spark")
    return Group("", Text("Where it is, and what to type next", style="bold"), rows)
