"""History-based filtering (PREF Def. 14): a match is delivered if it betters what was delivered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.model import validate
from tidings.model.records import Match, newest_first
from tidings.window import snapshot_fields
from tidings.window.buffer import Recent, extent, picks
from tidings.window.length import check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick


@dataclass(frozen=True)
class History:
    """H, the last top-k delivered, each for a window of `length` at most.

    A match is delivered while H has fewer than k (an event that leaves the window frees its place),
    or if some swap does not lower divrank(H); `strict` wants it higher (PREF Alg. 2). The swap of
    the largest divrank is made; of equal ones, the one that drops the oldest. `wait` holds matches
    until H and they are k.
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
    """H, with the matches held back by `wait` at its end."""

    def __init__(self, part: History, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._recent = Recent(part.length, part.count)
        self._held: set[str] = set()

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Deliver the match for a free place or for a swap, or forget it."""
        history = self._recent
        history.add(match)
        history.expire(now)
        before = [each for each in history.matches if each is not match]
        if len(before) < self._chooser.k:
            return self._fill(match, now)
        dropped = self._best_swap(before, match, now.us)
        history.keep([each for each in (*before, match) if each is not (dropped or match)])
        return self._deliver({match.event.id}, now) if dropped else []

    def _fill(self, match: Match, now: Moment) -> list[Pick]:
        self._held.add(match.event.id)
        if self._part.wait and len(self._recent.matches) < self._chooser.k:
            return []
        due, self._held = self._held, set()
        return self._deliver(due, now)

    def _best_swap(self, history: list[Match], match: Match, now_us: int) -> Match | None:
        """Give the member whose place the match should take, if any."""

        def value(dropped: Match) -> float:
            rest = [each for each in history if each is not dropped]
            return self._chooser.divrank([*rest, match], now_us)

        values = {each.event.id: value(each) for each in history}
        best = max(history, key=lambda each: (values[each.event.id], newest_first(each.event)))
        now = self._chooser.divrank(history, now_us)
        better = values[best.event.id]
        return best if better > now or (better == now and not self._part.strict) else None

    def _deliver(self, due: set[str], now: Moment) -> list[Pick]:
        return [pick for pick in self.current(now) if pick.match.event.id in due]

    def advance(self, now: Moment) -> list[Pick]:
        """Do nothing: only a match is a reason to choose."""
        return []

    def current(self, now: Moment) -> list[Pick]:
        """Give H, best rank first."""
        history = [each for each in self._recent.at(now) if each.event.id not in self._held]
        window = extent(self._part.name, history, now.us)
        return picks(self._chooser.ranked(history, now.us), window, now.us)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return self._recent.snapshot() | {"held": sorted(self._held)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self._recent.restore(state)
        self._held = set(snapshot_fields.texts(state, "held"))
