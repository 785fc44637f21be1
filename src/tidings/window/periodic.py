"""Periodic delivery (PREF Def. 12): disjoint periods, with a choice at the end of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any, ClassVar

from tidings.errors import InvalidForm, InvalidPolicy, InvalidValue
from tidings.model import calendar, validate
from tidings.model.records import Match
from tidings.model.values import format_time, parse_time_us
from tidings.window import snapshot_fields
from tidings.window.buffer import Axis, MatchBuffer, describe_window, newest_us, number_picks
from tidings.window.length import Length, check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick
from tidings.window.snapshot_fields import FAR


@dataclass(frozen=True)
class Periodic:
    """Periods [t, t + length) of publication time, aligned to `origin`, or groups of events.

    Instead of a length, periods may end `at` local times of a `zone`, on all `days` or some
    (semantics §6b). With `wait`, the matches of a period with fewer than k are carried over to the
    next one.
    """

    length: Any = None
    origin: Any = 0
    count: str = "matching"
    wait: bool = False
    at: Any = ()
    days: Any = calendar.DAYS
    zone: str = "UTC"
    name: ClassVar[str] = "periodic"

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self) -> None:
        validate.flag("wait", self.wait)
        self._read_calendar()
        if self.at:
            return
        if self.length is None:
            raise InvalidPolicy("a period needs a length, or local times at which it ends: at")
        read_lengths(self, "length")
        check_count(self.count, self.length)
        try:
            origin_us = parse_time_us(self.origin)
        except InvalidValue as error:
            raise InvalidPolicy(f"origin: {error}") from None
        default = isinstance(self.origin, int | float) and origin_us == 0
        if not default and self.length.us is None:
            raise InvalidPolicy("an origin needs a length that is a duration")
        if not isinstance(self.origin, int | float | str):
            object.__setattr__(self, "origin", format_time(origin_us))

    def _read_calendar(self) -> None:
        """Read `at`, `days` and `zone`, and refuse them beside what a length needs."""
        at = calendar.read_times("at", self.at)
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "days", calendar.read_days("days", self.days))
        object.__setattr__(self, "zone", calendar.read_zone("zone", self.zone))
        if at and (self.length, self.origin, self.count) != (None, 0, "matching"):
            raise InvalidPolicy("periods that end at local times have no length, origin or count")
        if not at and (self.days != calendar.DAYS or self.zone != "UTC"):
            raise InvalidPolicy("days and zone belong to local times: at")

    @property
    def periods(self) -> calendar.Calendar | None:
        """The periods of time; None if they are groups of events."""
        if self.at:
            times = tuple(map(time.fromisoformat, self.at))
            return calendar.LocalPeriods(self.zone, times, self.days)
        if self.length.us is None:
            return None
        return calendar.EqualPeriods(self.length.us, parse_time_us(self.origin))

    def open(self, chooser: Chooser) -> "PeriodicWindow":
        """Open an empty window."""
        return PeriodicWindow(self, chooser)


class PeriodicWindow:
    """The matches of the open period, and its end; the first match opens a period."""

    def __init__(self, part: Periodic, chooser: Chooser) -> None:
        self._part = part
        self._chooser = chooser
        self._periods = part.periods
        # The length of a calendar period is not used, only that its axis is time.
        self._axis = Axis(part.length or Length(us=1), part.count)
        self._buffer = MatchBuffer(None)
        self._end: int | None = None

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Close the period before the match, add it, and close the group that it completes."""
        due = self.advance(Moment(now.us, now.sequence - 1))
        entry = self._buffer.add(match)
        if self._end is None:
            self._end = self._end_after(self._axis.coordinate(entry))
        return due + self.advance(now)

    def _end_after(self, coordinate: int) -> int:
        if self._periods is not None:
            return self._periods.period(coordinate).end
        return (coordinate // self._axis.size + 1) * self._axis.size

    def advance(self, now: Moment) -> list[Pick]:
        """Close the open period if the stream has passed its end."""
        if self._end is None or not self._axis.passed(self._end, now, self._buffer.seen):
            return []
        matches, end = self._buffer.matches, self._end
        self._end = None
        if self._part.wait and len(matches) < self._chooser.k:
            return []
        self._buffer.retain(())
        return self._choose(matches, end if self._periods else newest_us(matches), end)

    def current(self, now: Moment) -> list[Pick]:
        """Choose from the period so far."""
        matches = self._buffer.matches
        return self._choose(matches, now.us, self._end) if matches else []

    def _choose(self, matches: list[Match], at_us: int, end: int | None) -> list[Pick]:
        window = describe_window(self._part.name, matches, at_us)
        if self._periods is not None and end is not None:
            start = self._periods.period(end - 1).start
            window |= {"start": format_time(start), "end": format_time(end)}
        return number_picks(self._chooser.choose(matches, at_us), window, at_us)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return self._buffer.snapshot() | {"end": self._end}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._buffer.restore(state)
        self._end = snapshot_fields.whole(state, "end", -FAR, FAR, missing=True)
        if self._end is not None and not self._buffer.matches:
            raise InvalidForm("field 'end' must be null in a window without matches")
