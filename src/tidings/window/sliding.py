"""Sliding-window delivery (PREF Def. 13): after every match, the chosen k of the last w."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.model import validate
from tidings.model.records import Match
from tidings.window.buffer import Recent
from tidings.window.deliver_once import DELIVERED, OnceOnly
from tidings.window.length import check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick


@dataclass(frozen=True)
class Sliding:
    """What is chosen and was not delivered before is delivered.

    Delivered events keep their place among the candidates (PREF 5.2); `delivered="leave"` frees it
    (TKS 4.3). `wait` holds until there are k candidates.
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
    """The last w matches, and which of them were delivered."""

    def __init__(self, part: Sliding, chooser: Chooser) -> None:
        self._recent = Recent(part.length, part.count)
        self._once = OnceOnly(part, chooser)

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Slide over the match, and choose."""
        self._recent.add(match)
        self._recent.expire(now)
        self._once.forget(self._recent.matches)
        return self._once.deliver(self._recent.matches, now.us)

    def advance(self, now: Moment) -> list[Pick]:
        """Do nothing: only a match is a reason to choose."""
        return []

    def current(self, now: Moment) -> list[Pick]:
        """Choose from what the window holds now."""
        return self._once.current(self._recent.at(now), now.us)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return self._recent.snapshot() | self._once.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self._recent.restore(state)
        self._once.restore(state)
