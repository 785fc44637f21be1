"""The matches that a window still looks at, oldest first, and the axis that they stand on."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.errors import InvalidEvent
from tidings.model.records import Match
from tidings.model.values import format_time
from tidings.window import snapshot_fields
from tidings.window.length import Length
from tidings.window.protocol import Moment, Pick

Entry = tuple[int, Match]


class Axis:
    """What a length runs along: time, published events, or matching events.

    Every match has a whole-numbered place; a window that ends at `end` and is `size` long holds the
    places in [end - size, end).
    """

    def __init__(self, length: Length, count: str) -> None:
        self.kind = "time" if length.us is not None else count
        self.size: int = length.us if length.us is not None else length.count or 0

    def place(self, entry: Entry) -> int:
        """Give the place of the n-th match."""
        number, match = entry
        if self.kind == "time":
            return match.event.published_us
        return (sequence_of(match) if self.kind == "published" else number) - 1

    def end(self, now: Moment, seen: int) -> int:
        """Give the first place after `now`."""
        if self.kind == "time":
            return now.us + 1
        return now.sequence if self.kind == "published" else seen

    def passed(self, end: int, now: Moment, seen: int) -> bool:
        """Tell whether nothing before `end` can still come."""
        return end <= now.us if self.kind == "time" else end <= self.end(now, seen)


class Recent:
    """The matches within a length; without one, nothing expires. `seen` counts all ever added."""

    def __init__(self, length: Length | None, count: str = "matching") -> None:
        self.axis = None if length is None else Axis(length, count)
        self._entries: list[Entry] = []
        self.seen = 0

    @property
    def matches(self) -> list[Match]:
        """What is in the window."""
        return [match for _, match in self._entries]

    def add(self, match: Match) -> Entry:
        """Add the newest match."""
        self.seen += 1
        self._entries.append((self.seen, match))
        return self._entries[-1]

    def at(self, now: Moment) -> list[Match]:
        """Give what the window holds at `now`."""
        return self.until(self.axis.end(now, self.seen)) if self.axis else self.matches

    def until(self, end: int) -> list[Match]:
        """Give what a window that ends at `end` holds."""
        axis = self.axis
        if axis is None:
            return self.matches
        start = end - axis.size
        return [entry[1] for entry in self._entries if start <= axis.place(entry) < end]

    def expire(self, now: Moment) -> None:
        """Drop what a window at `now`, or later, has left behind."""
        if self.axis:
            self.expire_until(self.axis.end(now, self.seen))

    def expire_until(self, end: int) -> None:
        """Drop what a window that ends at `end`, or later, has left behind."""
        axis = self.axis
        if axis:
            self._entries = [e for e in self._entries if axis.place(e) >= end - axis.size]

    def oldest(self) -> int:
        """Return the first place that is taken on the axis of the window, which holds something."""
        if self.axis is None:
            raise LookupError("a window without a length has no axis")
        return min(map(self.axis.place, self._entries))

    def keep(self, matches: Sequence[Match]) -> None:
        """Drop all but these."""
        ids = ids_of(matches)
        self._entries = [entry for entry in self._entries if entry[1].event.id in ids]

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        entries = [[number, match.to_dict()] for number, match in self._entries]
        return {"seen": self.seen, "entries": entries}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        seen, last = snapshot_fields.whole(state, "seen"), 0
        entries = list[Entry]()
        for number, form in snapshot_fields.items(state, "entries", width=2):
            last = snapshot_fields.number("the number of a match", number, last + 1, seen)
            entries.append((last, snapshot_fields.read_match(form)))
        self.seen, self._entries = seen, entries

    def last_place(self, axis: "Axis") -> int:
        """Return the last place on an axis that the matches seen so far have reached."""
        if axis.kind == "matching":
            return self.seen
        return max((axis.place(entry) for entry in self._entries), default=0)


def sequence_of(match: Match) -> int:
    """Give the number of the publication, which windows over published events need."""
    if match.event.sequence is None:
        raise InvalidEvent(f'event {match.event.id} has no sequence, which count="published" needs')
    return match.event.sequence


def ids_of(matches: Sequence[Match]) -> set[str]:
    """Give the ids of the events."""
    return {match.event.id for match in matches}


def newest_us(matches: Sequence[Match]) -> int:
    """Give the newest publication time."""
    return max(match.event.published_us for match in matches)


def picks(
    chosen: Sequence[tuple[Match, float]], window: Mapping[str, Any], at_us: int
) -> list[Pick]:
    """Give the chosen matches their positions."""
    return [
        Pick(match, rank, position, window, at_us)
        for position, (match, rank) in enumerate(chosen, start=1)
    ]


def extent(name: str, matches: Sequence[Match], now_us: int) -> dict[str, Any]:
    """Describe a window by its oldest event, the time of the choice, and how many it held."""
    start = min((match.event.published_us for match in matches), default=now_us)
    return {
        "name": name,
        "start": format_time(start),
        "end": format_time(now_us),
        "size": len(matches),
    }
