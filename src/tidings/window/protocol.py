"""What a window is: over which events, and when? A pure state machine, driven by event time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from tidings.model.records import Match


class Moment(NamedTuple):
    """Where a stream is: event time, and the number of publications so far."""

    us: int
    sequence: int


@dataclass(frozen=True)
class Pick:
    """A match that a window delivers: its fresh rank, its position, and the window it won in."""

    match: Match
    rank: float
    position: int
    window: Mapping[str, Any]
    at_us: int


class Chooser(Protocol):
    """The stages behind a window: freshness and diversity, for one subscriber's k."""

    @property
    def k(self) -> int: ...
    @property
    def best_only(self) -> bool:
        """Whether rank alone decides, so that only the k best can ever matter."""

    @property
    def steady(self) -> bool:
        """Whether the choice from the same matches stays the same as time passes."""

    def choose(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        """Choose at most k, in order of choice, with their fresh ranks."""

    def ranked(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        """Give all of them, best fresh rank first."""

    def divrank(self, matches: Sequence[Match], now_us: int) -> float:
        """Give the diversity-aware rank of a set (PREF Def. 10)."""


class Window(Protocol):
    """The state of one subscriber's window; matches are offered in order of publication."""

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Take a match published at `now`, and give what is delivered because of it."""

    def advance(self, now: Moment) -> list[Pick]:
        """Say that the stream has come to `now`, and give what is due by then."""

    def current(self, now: Moment) -> list[Pick]:
        """Give the list as it stands, on demand; nothing changes."""

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""


class WindowPart(Protocol):
    """A part of a policy that opens windows."""

    name: ClassVar[str]

    def open(self, chooser: Chooser) -> Window:
        """Open an empty window for one subscriber."""
