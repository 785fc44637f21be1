"""How the demo is told: live on a terminal, in lines to a pipe, in JSON Lines to a program."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tidings.app.demo import screen
from tidings.app.demo.state import Board
from tidings.app.demo.subscriber_stats import Tally
from tidings.app.demo.subscribers import Role

Elapsed = Callable[[], float]

_TURN_S: Final = 3
_ROWS_ABOVE_FEEDS: Final = 8


class Presenter(Protocol):
    """Tells a run from its opening to its end; `close` always comes last."""

    def open(self, films: int, roles: Sequence[Role]) -> None:
        """Say what will happen."""

    def say(self, doing: str) -> None:
        """Say what is being done now."""

    def move(self, board: Board) -> None:
        """Show how far the stream is."""

    def end(self, board: Board, directory: Path, command: str) -> None:
        """Say what came of it, where it was written, and what to type next."""

    def stop(self, board: Board, directory: Path) -> None:
        """Say that it was stopped before its end."""

    def close(self) -> None:
        """Leave the screen in order."""


def presenter(console: Console, elapsed: Elapsed, *, json_lines: bool = False) -> Presenter:
    """Choose by who looks: a program, a person at a terminal, or a file."""
    if json_lines:
        return JsonLines(console, elapsed)
    if console.is_terminal and not console.is_dumb_terminal:
        return Screen(console, elapsed)
    return Lines(console, elapsed)


class Lines:
    """A line for each step, and the end in full; no control codes."""

    def __init__(self, console: Console, elapsed: Elapsed) -> None:
        self._console = console
        self._elapsed = elapsed

    def open(self, films: int, roles: Sequence[Role]) -> None:
        self._console.print(screen.opening(films, roles))

    def say(self, doing: str) -> None:
        self._console.print(Text(f"{self._elapsed():4.0f} s  {doing}"), soft_wrap=True)

    def move(self, board: Board) -> None:
        counts = f"{board.delivered:,} of {board.matches:,} matches delivered"
        self.say(f"{screen.where(board)}: {counts}")

    def end(self, board: Board, directory: Path, command: str) -> None:
        self._console.print("")
        self._console.print(screen.ending(board, self._elapsed(), self._console.width))
        self._console.print(screen.next_steps(directory, command))

    def stop(self, board: Board, directory: Path) -> None:
        self._console.print(screen.stopped(board, directory))

    def close(self) -> None:
        pass


class Screen:
    """A live view: the bar, the table, and as many feeds, in turn, as the terminal has room for."""

    def __init__(self, console: Console, elapsed: Elapsed) -> None:
        self._console = console
        self._elapsed = elapsed
        self._doing = ""
        self._board: Board | None = None
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=5, transient=True
        )

    def open(self, films: int, roles: Sequence[Role]) -> None:
        self._console.print(screen.opening(films, roles))
        self._live.start()

    def say(self, doing: str) -> None:
        self._doing = doing

    def move(self, board: Board) -> None:
        self._board = board
        self._doing = f"batch {board.batches} of {len(board.sizes)}"

    def end(self, board: Board, directory: Path, command: str) -> None:
        seconds = self._elapsed()
        self.close()
        self._console.print(screen.ending(board, seconds, self._console.width))
        self._console.print(screen.next_steps(directory, command))

    def stop(self, board: Board, directory: Path) -> None:
        self.close()
        self._console.print(screen.stopped(board, directory))

    def close(self) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        if self._board is None:
            return Text(f"{self._doing} ({self._elapsed():.0f} s)", style="dim")
        tallies = list(self._board.tallies.values())
        return Group(
            screen.progress(self._board, self._elapsed(), self._doing),
            screen.standings(tallies, self._console.width),
            *self._in_turn(tallies),
        )

    def _in_turn(self, tallies: list[Tally]) -> Iterator[RenderableType]:
        """Give the feeds that fit below the table, beginning with another one every few seconds."""
        room = self._console.height - _ROWS_ABOVE_FEEDS - len(tallies)
        first = int(self._elapsed() / _TURN_S) % len(tallies)
        for tally in tallies[first:] + tallies[:first]:
            room -= screen.height(tally)
            if room < 0:
                return
            yield Group(screen.feed(tally, self._console.width), "")


class JsonLines:
    """A line for each batch, for each feed, and for the whole."""

    def __init__(self, console: Console, elapsed: Elapsed) -> None:
        self._console = console
        self._elapsed = elapsed

    def open(self, films: int, roles: Sequence[Role]) -> None:
        self._print({"films": films, "subscribers": [role.name for role in roles]})

    def say(self, doing: str) -> None:
        pass

    def move(self, board: Board) -> None:
        self._print({"batch": board.batches, **self._counts(board)})

    def end(self, board: Board, directory: Path, command: str) -> None:
        for tally in board.tallies.values():
            self._print(tally.to_dict())
        self._print({"written": str(directory), **self._counts(board)})

    def stop(self, board: Board, directory: Path) -> None:
        self._print({"stopped": True, "written": str(directory), **self._counts(board)})

    def close(self) -> None:
        pass

    def _counts(self, board: Board) -> dict[str, Any]:
        return board.counts() | {"seconds": round(self._elapsed(), 1)}

    def _print(self, form: dict[str, Any]) -> None:
        self._console.out(json.dumps(form, ensure_ascii=False), highlight=False)
