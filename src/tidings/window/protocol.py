"""The protocol of windows: pure state machines, driven by event time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from tidings.model.records import Match


class Moment(NamedTuple):
    """A point in a stream: event time, and the number of publications so far."""

    us: int
    sequence: int


@dataclass(frozen=True)
class Pick:
    """A match that a window delivers: its fresh rank, its position, and the window it came from."""

    match: Match
    rank: float
    position: int
    window: Mapping[str, Any]
    at_us: int


class Chooser(Protocol):
    """The stages behind a window: decay and diversity, for one subscriber's k."""

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
        """Return all matches, best fresh rank first."""

    def divrank(self, matches: Sequence[Match], now_us: int) -> float:
        """Return the diversity-aware rank of a set (PREF Def. 10)."""


class Window(Protocol):
    """The state of one subscriber's window; matches are offered in order of publication."""

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Add a match published at `now`, and return the deliveries that it causes."""

    def advance(self, now: Moment) -> list[Pick]:
        """Advance the stream to `now`, and return the deliveries that are due by then."""

    def current(self, now: Moment) -> list[Pick]:
        """Return the current list, on demand, without changing the state."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""


class WindowPart(Protocol):
    """A part of a policy that opens windows."""

    name: ClassVar[str]

    def open(self, chooser: Chooser) -> Window:
        """Open an empty window for one subscriber."""
