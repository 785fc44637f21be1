"""History-based filtering (PREF Def. 14): a match is delivered if it improves the delivered set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.model import validate
from tidings.model.records import Match, newest_first
from tidings.window import snapshot_fields
from tidings.window.buffer import MatchBuffer, describe_window, number_picks
from tidings.window.length import check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick


@dataclass(frozen=True)
class History:
    """H, the k events delivered last, each for at most a window of `length`.

    A match is delivered while H has fewer than k events (an event that leaves the window frees its
    place), or if some swap does not lower divrank(H); with `strict`, if some swap raises it (PREF
    Alg. 2). The swap with the largest divrank is made; of equal ones, the one that drops the oldest
    event. `wait` holds matches back until H and they are k.
    """

    length: Any
    count: str = "matching"
    strict: bool = False
    wait: bool = False
    name: ClassVar[str] = "history"

    def __post_init__(self) -> None:
        read_lengths(self, "length")
        check_count(self.count, self.length)
        validate.flag("strict", self.strict)
        validate.flag("wait", self.wait)

    def open(self, chooser: Chooser) -> "HistoryWindow":
        """Open an empty window."""
        return HistoryWindow(self, chooser)


class HistoryWindow:
    """H, followed by the matches that `wait` holds back."""

    def __init__(self, part: History, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._buffer = MatchBuffer(part.length, part.count)
        self._held: set[str] = set()

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Deliver the match into a free place or by a swap, or drop it."""
        history = self._buffer
        history.add(match)
        history.expire(now)
        before = [member for member in history.matches if member is not match]
        if len(before) < self._chooser.k:
            return self._fill(match, now)
        dropped = self._best_swap(before, match, now.us)
        leaving = dropped or match
        history.retain([member for member in (*before, match) if member is not leaving])
        return self._deliver({match.event.id}, now) if dropped else []

    def _fill(self, match: Match, now: Moment) -> list[Pick]:
        self._held.add(match.event.id)
        if self._part.wait and len(self._buffer.matches) < self._chooser.k:
            return []
        due, self._held = self._held, set()
        return self._deliver(due, now)

    def _best_swap(self, history: list[Match], match: Match, now_us: int) -> Match | None:
        """Return the member that the match should replace, if any."""

        def value(dropped: Match) -> float:
            rest = [member for member in history if member is not dropped]
            return self._chooser.divrank([*rest, match], now_us)

        values = {member.event.id: value(member) for member in history}
        best = max(
            history, key=lambda member: (values[member.event.id], newest_first(member.event))
        )
        swapped, unchanged = values[best.event.id], self._chooser.divrank(history, now_us)
        improves = swapped > unchanged or (swapped == unchanged and not self._part.strict)
        return best if improves else None

    def _deliver(self, due: set[str], now: Moment) -> list[Pick]:
        return [pick for pick in self.current(now) if pick.match.event.id in due]

    def advance(self, now: Moment) -> list[Pick]:
        """Return nothing: only a match triggers a choice."""
        return []

    def current(self, now: Moment) -> list[Pick]:
        """Return H, best rank first."""
        matches = self._buffer.within(now)
        history = [match for match in matches if match.event.id not in self._held]
        window = describe_window(self._part.name, history, now.us)
        return number_picks(self._chooser.ranked(history, now.us), window, now.us)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return self._buffer.snapshot() | {"held": sorted(self._held)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._buffer.restore(state)
        self._held = set(snapshot_fields.texts(state, "held"))
