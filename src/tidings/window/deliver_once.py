"""Choices from overlapping windows, of which each event is delivered once."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from tidings.model.records import Match
from tidings.window import snapshot_fields
from tidings.window.buffer import extent, ids_of, picks
from tidings.window.protocol import Chooser, Pick

DELIVERED: Final = ("keep", "leave")


class Overlapping(Protocol):
    """The parameters of a window part that say how its choices are delivered."""

    name: ClassVar[str]

    @property
    def delivered(self) -> str: ...
    @property
    def wait(self) -> bool: ...


class OnceOnly:
    """Delivers what is chosen and was not delivered before.

    What was delivered keeps its place among the candidates, or leaves it.
    """

    def __init__(self, part: Overlapping, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._delivered: set[str] = set()

    def deliver(self, matches: Sequence[Match], now_us: int) -> list[Pick]:
        """Choose from what the window holds, and give what is new."""
        chosen = self.current(matches, now_us)
        new = [pick for pick in chosen if pick.match.event.id not in self._delivered]
        self._delivered |= ids_of([pick.match for pick in new])
        return new

    def current(self, matches: Sequence[Match], now_us: int) -> list[Pick]:
        """Choose, and change nothing."""
        candidates = self._candidates(matches)
        if self._too_few(candidates):
            return []
        chosen = self._chooser.choose(candidates, now_us)
        return picks(chosen, extent(self._part.name, matches, now_us), now_us)

    def settled(self, matches: Sequence[Match], delivered: bool) -> bool:
        """Tell whether a later choice from the same matches would bring nothing new.

        `delivered` says whether the last choice brought something.
        """
        candidates = self._candidates(matches)
        if self._too_few(candidates):
            return True
        if self._part.delivered == "leave":
            return self._chooser.steady and not delivered
        return self._chooser.steady or ids_of(candidates) <= self._delivered

    def _candidates(self, matches: Sequence[Match]) -> list[Match]:
        gone = self._delivered if self._part.delivered == "leave" else ()
        return [match for match in matches if match.event.id not in gone]

    def _too_few(self, candidates: Sequence[Match]) -> bool:
        return not candidates or (self._part.wait and len(candidates) < self._chooser.k)

    def forget(self, matches: Sequence[Match]) -> None:
        """Forget what no later window holds: only `matches` may come again."""
        self._delivered &= ids_of(matches)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return {"delivered": sorted(self._delivered)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self._delivered = set(snapshot_fields.texts(state, "delivered"))
