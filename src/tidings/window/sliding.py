"""Sliding windows (PREF Def. 13): after every match, a choice from the last w."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.model import validate
from tidings.model.records import Match
from tidings.window.buffer import MatchBuffer
from tidings.window.deliver_once import DELIVERED, OnceOnly
from tidings.window.length import check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick


@dataclass(frozen=True)
class Sliding:
    """Delivers chosen events that were not delivered before.

    Delivered events stay candidates (PREF 5.2), unless `delivered="leave"` (TKS 4.3). With `wait`,
    nothing is chosen until there are k candidates.
    """

    length: Any
    count: str = "matching"
    delivered: str = "keep"
    wait: bool = False
    name: ClassVar[str] = "sliding"

    def __post_init__(self) -> None:
        read_lengths(self, "length")
        check_count(self.count, self.length)
        validate.choice("delivered", self.delivered, DELIVERED)
        validate.flag("wait", self.wait)

    def open(self, chooser: Chooser) -> "SlidingWindow":
        """Open an empty window."""
        return SlidingWindow(self, chooser)


class SlidingWindow:
    """The last w matches, and the ones that were delivered."""

    def __init__(self, part: Sliding, chooser: Chooser) -> None:
        self._buffer = MatchBuffer(part.length, part.count)
        self._once = OnceOnly(part, chooser)

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Add the match, expire old ones, and choose."""
        self._buffer.add(match)
        self._buffer.expire(now)
        self._once.forget(self._buffer.matches)
        return self._once.deliver(self._buffer.matches, now.us)

    def advance(self, now: Moment) -> list[Pick]:
        """Return nothing: only a match triggers a choice."""
        return []

    def current(self, now: Moment) -> list[Pick]:
        """Choose from the matches in the window now."""
        return self._once.current(self._buffer.within(now), now.us)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return self._buffer.snapshot() | self._once.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._buffer.restore(state)
        self._once.restore(state)
