"""How many events are matched at once: as many as have matches that fit into memory."""

from collections.abc import Iterator, Sequence
from typing import Final

from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.model.records import Event

MOST: Final = 2_000_000
"""Matches that are made at once, about; one takes some 100 bytes while it is sent."""


class Pace:
    """Cuts events into portions, by how many matches those before had, part by part.

    The first are few: each of them could match everything.
    """

    def __init__(self) -> None:
        self._rates: dict[int, float] = {}

    def cut(
        self, part: int, served: OverlayMatcher, events: Sequence[Event]
    ) -> Iterator[Sequence[Event]]:
        """Give the events some at a time; each portion is to be noted before the next is taken."""
        done = 0
        while done < len(events):
            rate = self._rates.get(part, served.size)
            size = max(1, int(MOST / (1 + rate)))
            yield events[done : done + size]
            done += size

    def note(self, part: int, events: int, matches: int) -> None:
        """Hear how many matches a portion had."""
        self._rates[part] = matches / events
