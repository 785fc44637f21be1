"""The matches that a window still needs, oldest first, and the axis along which they expire."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tidings.errors import InvalidEvent
from tidings.model.records import Match
from tidings.model.values import format_time
from tidings.window import snapshot_fields
from tidings.window.length import Length
from tidings.window.protocol import Moment, Pick


class NumberedMatch(NamedTuple):
    """A match and its number among all that a window has seen, from 1."""

    number: int
    match: Match


class Axis:
    """The axis of a length: time, published events, or matching events.

    Every match has an integer coordinate. A window of length `size` that ends at `end` holds the
    coordinates in [end - size, end).
    """

    def __init__(self, length: Length, count: str) -> None:
        self.kind = "time" if length.us is not None else count
        self.size: int = length.us if length.us is not None else length.count or 0

    def coordinate(self, entry: NumberedMatch) -> int:
        """Return the coordinate of a match."""
        if self.kind == "time":
            return entry.match.event.published_us
        return (sequence_of(entry.match) if self.kind == "published" else entry.number) - 1

    def end(self, now: Moment, seen: int) -> int:
        """Return the first coordinate after `now`."""
        if self.kind == "time":
            return now.us + 1
        return now.sequence if self.kind == "published" else seen

    def passed(self, end: int, now: Moment, seen: int) -> bool:
        """Return whether no match before `end` can still arrive."""
        return end <= now.us if self.kind == "time" else end <= self.end(now, seen)


class MatchBuffer:
    """The matches within a length; without one, nothing expires.

    `seen` counts all matches ever added.
    """

    def __init__(self, length: Length | None, count: str = "matching") -> None:
        self.axis = None if length is None else Axis(length, count)
        self._entries: list[NumberedMatch] = []
        self.seen = 0

    @property
    def matches(self) -> list[Match]:
        """All matches of the buffer."""
        return [match for _, match in self._entries]

    def add(self, match: Match) -> NumberedMatch:
        """Add the newest match."""
        self.seen += 1
        self._entries.append(NumberedMatch(self.seen, match))
        return self._entries[-1]

    def within(self, now: Moment) -> list[Match]:
        """Return the matches that a window at `now` holds."""
        return self.ending_at(self.axis.end(now, self.seen)) if self.axis else self.matches

    def ending_at(self, end: int) -> list[Match]:
        """Return the matches that a window that ends at `end` holds."""
        axis = self.axis
        if axis is None:
            return self.matches
        start = end - axis.size
        return [entry.match for entry in self._entries if start <= axis.coordinate(entry) < end]

    def expire(self, now: Moment) -> None:
        """Drop the matches that no window at `now` or later holds."""
        if self.axis:
            self.expire_until(self.axis.end(now, self.seen))

    def expire_until(self, end: int) -> None:
        """Drop the matches that no window that ends at `end` or later holds."""
        axis = self.axis
        if axis:
            start = end - axis.size
            self._entries = [entry for entry in self._entries if axis.coordinate(entry) >= start]

    def oldest(self) -> int:
        """Return the smallest coordinate in a buffer that is not empty."""
        if self.axis is None:
            raise LookupError("a window without a length has no axis")
        return min(map(self.axis.coordinate, self._entries))

    def retain(self, matches: Sequence[Match]) -> None:
        """Drop all matches except these."""
        ids = event_ids(matches)
        self._entries = [entry for entry in self._entries if entry.match.event.id in ids]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        entries = [[number, match.to_dict()] for number, match in self._entries]
        return {"seen": self.seen, "entries": entries}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        seen, last = snapshot_fields.whole(state, "seen"), 0
        entries = list[NumberedMatch]()
        for number, form in snapshot_fields.items(state, "entries", width=2):
            last = snapshot_fields.number("the number of a match", number, last + 1, seen)
            entries.append(NumberedMatch(last, snapshot_fields.read_match(form)))
        self.seen, self._entries = seen, entries

    def last_coordinate(self, axis: Axis) -> int:
        """Return the last coordinate on an axis that the matches seen so far have reached."""
        if axis.kind == "matching":
            return self.seen
        return max(map(axis.coordinate, self._entries), default=0)


def sequence_of(match: Match) -> int:
    """Return the number of the publication, which windows over published events need."""
    if match.event.sequence is None:
        raise InvalidEvent(f'event {match.event.id} has no sequence, which count="published" needs')
    return match.event.sequence


def event_ids(matches: Sequence[Match]) -> set[str]:
    """Return the ids of the events."""
    return {match.event.id for match in matches}


def newest_us(matches: Sequence[Match]) -> int:
    """Return the newest publication time."""
    return max(match.event.published_us for match in matches)


def number_picks(
    chosen: Sequence[tuple[Match, float]], window: Mapping[str, Any], at_us: int
) -> list[Pick]:
    """Return the chosen matches with their positions, from 1."""
    return [
        Pick(match, rank, position, window, at_us)
        for position, (match, rank) in enumerate(chosen, start=1)
    ]


def describe_window(name: str, matches: Sequence[Match], now_us: int) -> dict[str, Any]:
    """Describe a window by its oldest event, the time of the choice, and its size."""
    start = min((match.event.published_us for match in matches), default=now_us)
    return {
        "name": name,
        "start": format_time(start),
        "end": format_time(now_us),
        "size": len(matches),
    }
