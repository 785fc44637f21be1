"""Delivery from overlapping windows: each event is delivered once."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from tidings.model.records import Match
from tidings.window import snapshot_fields
from tidings.window.buffer import describe_window, event_ids, number_picks
from tidings.window.protocol import Chooser, Pick

DELIVERED: Final = ("keep", "leave")
"""Whether delivered events stay candidates."""


class OverlappingPart(Protocol):
    """The parameters of a window part that determine how its choices are delivered."""

    name: ClassVar[str]

    @property
    def delivered(self) -> str: ...
    @property
    def wait(self) -> bool: ...


class OnceOnly:
    """Delivers chosen events that were not delivered before.

    Delivered events stay candidates (`delivered="keep"`), or cease to be (`"leave"`).
    """

    def __init__(self, part: OverlappingPart, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._delivered: set[str] = set()

    def deliver(self, matches: Sequence[Match], now_us: int) -> list[Pick]:
        """Choose from the matches of the window, and return the picks that are new."""
        chosen = self.current(matches, now_us)
        new = [pick for pick in chosen if pick.match.event.id not in self._delivered]
        self._delivered |= event_ids([pick.match for pick in new])
        return new

    def current(self, matches: Sequence[Match], now_us: int) -> list[Pick]:
        """Choose without changing the state."""
        candidates = self._candidates(matches)
        if self._too_few(candidates):
            return []
        chosen = self._chooser.choose(candidates, now_us)
        return number_picks(chosen, describe_window(self._part.name, matches, now_us), now_us)

    def settled(self, matches: Sequence[Match], delivered: bool) -> bool:
        """Return whether a later choice from the same matches would deliver nothing new.

        `delivered` says whether the last choice delivered anything.
        """
        candidates = self._candidates(matches)
        if self._too_few(candidates):
            return True
        if self._part.delivered == "leave":
            return self._chooser.steady and not delivered
        return self._chooser.steady or event_ids(candidates) <= self._delivered

    def _candidates(self, matches: Sequence[Match]) -> list[Match]:
        excluded = self._delivered if self._part.delivered == "leave" else ()
        return [match for match in matches if match.event.id not in excluded]

    def _too_few(self, candidates: Sequence[Match]) -> bool:
        return not candidates or (self._part.wait and len(candidates) < self._chooser.k)

    def forget(self, matches: Sequence[Match]) -> None:
        """Forget delivered events that no later window holds: only `matches` can recur."""
        self._delivered &= event_ids(matches)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {"delivered": sorted(self._delivered)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._delivered = set(snapshot_fields.texts(state, "delivered"))
