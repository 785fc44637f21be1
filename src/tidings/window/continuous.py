"""Continuous delivery (TKS 4.3): a match is delivered at once if it is among the best k."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.model import validate
from tidings.model.records import Match
from tidings.window import snapshot_fields
from tidings.window.buffer import MatchBuffer, describe_window, event_ids, number_picks
from tidings.window.length import read_lengths
from tidings.window.protocol import Chooser, Moment, Pick


@dataclass(frozen=True)
class Continuous:
    """The best k of all matches that have not expired; without `expires`, none does.

    Only the newest match is ever delivered, except that `wait` holds matches back until there are
    k. With a diversifier every unexpired match stays a candidate: set `expires` to bound them.
    """

    expires: Any = None
    wait: bool = False
    name: ClassVar[str] = "continuous"

    def __post_init__(self) -> None:
        if self.expires is not None:
            read_lengths(self, "expires")
        validate.flag("wait", self.wait)

    def open(self, chooser: Chooser) -> "ContinuousWindow":
        """Open an empty window."""
        return ContinuousWindow(self, chooser)


class ContinuousWindow:
    """The unexpired matches, and those held back until there are k."""

    def __init__(self, part: Continuous, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._buffer = MatchBuffer(part.expires)
        self._held: set[str] = set()

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Add the match, and deliver it if it is chosen."""
        self._buffer.add(match)
        self._buffer.expire(now)
        matches = self._buffer.matches
        due = {match.event.id} | (self._held & event_ids(matches))
        if self._part.wait and len(matches) < self._chooser.k:
            self._held = due
            return []
        self._held = set()
        chosen = self.current(now)
        if self._part.expires is None and self._chooser.best_only:
            self._buffer.retain([pick.match for pick in chosen])
        return [pick for pick in chosen if pick.match.event.id in due]

    def advance(self, now: Moment) -> list[Pick]:
        """Return nothing: only a match triggers a choice."""
        return []

    def current(self, now: Moment) -> list[Pick]:
        """Choose from all unexpired matches."""
        matches = self._buffer.within(now)
        if not matches:
            return []
        window = describe_window(self._part.name, matches, now.us)
        return number_picks(self._chooser.choose(matches, now.us), window, now.us)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return self._buffer.snapshot() | {"held": sorted(self._held)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._buffer.restore(state)
        self._held = set(snapshot_fields.texts(state, "held"))
