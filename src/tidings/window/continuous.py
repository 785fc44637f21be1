"""Continuous delivery (TKS 4.3): a match is delivered at once if it is among the best k."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.model import validate
from tidings.model.records import Match
from tidings.window import snapshot_fields
from tidings.window.buffer import Recent, extent, ids_of, picks
from tidings.window.length import read_lengths
from tidings.window.protocol import Chooser, Moment, Pick


@dataclass(frozen=True)
class Continuous:
    """The best k of all matches that have not expired; without `expires`, of all.

    Only the newest match is ever delivered, except that `wait` holds matches until there are k.
    With a diversifier every unexpired match stays a candidate: give `expires` to bound them.
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
    """The unexpired matches, and those held back because there are too few."""

    def __init__(self, part: Continuous, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._recent = Recent(part.expires)
        self._held: set[str] = set()

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Add the match, and deliver it if it is chosen."""
        self._recent.add(match)
        self._recent.expire(now)
        matches = self._recent.matches
        due = {match.event.id} | (self._held & ids_of(matches))
        if self._part.wait and len(matches) < self._chooser.k:
            self._held = due
            return []
        self._held = set()
        chosen = self.current(now)
        if self._part.expires is None and self._chooser.best_only:
            self._recent.keep([pick.match for pick in chosen])
        return [pick for pick in chosen if pick.match.event.id in due]

    def advance(self, now: Moment) -> list[Pick]:
        """Do nothing: only a match is a reason to choose."""
        return []

    def current(self, now: Moment) -> list[Pick]:
        """Choose from all unexpired matches."""
        matches = self._recent.at(now)
        if not matches:
            return []
        window = extent(self._part.name, matches, now.us)
        return picks(self._chooser.choose(matches, now.us), window, now.us)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return self._recent.snapshot() | {"held": sorted(self._held)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self._recent.restore(state)
        self._held = set(snapshot_fields.texts(state, "held"))
