"""Calendars: periods that begin at local times of a zone, as instants.

A local time that a change of the clock skips stands for the first instant after the gap. One that
comes twice stands for the first (semantics §6b).
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import chain, pairwise
from typing import ClassVar, Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo, available_timezones

from tidings.errors import InvalidPolicy, shown
from tidings.model import validate
from tidings.model.values import EARLIEST_US, LATEST_US, SECOND_US, moment, time_us

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_US: Final = 86_400 * SECOND_US
_CHUNK_DAYS: Final = 28
_CHUNK_TIMES: Final = 96
"""Days with more local times come in smaller chunks, so that the cache of chunks stays small."""
_MARGIN_DAYS: Final = 10
"""More than a week and the largest shift of a zone, so that a chunk has both ends of a period."""
_DAILY_MARGIN_DAYS: Final = 3
"""The same if periods begin on every day."""
LONGEST_US: Final = 9 * _DAY_US
"""No period of local times is longer: a week, and what a zone may shift by."""
_MOST_DAYS: Final = 100
_MOST_TIMES: Final = 1_440
_LONG_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_NAMES: Final = {name: name[:3] for name in (*DAYS, *_LONG_DAYS)}
_MIDNIGHT: Final = time()
_MICROSECOND: Final = timedelta(microseconds=1)
_HOURS: Final = tuple(time(hour) for hour in range(24))


class Period(NamedTuple):
    """The instants [start, end), in microseconds since the epoch."""

    start: int
    end: int


class Calendar(Protocol):
    """A division of all time into periods."""

    def period(self, us: int) -> Period:
        """Return the period that contains an instant."""


@dataclass(frozen=True)
class EqualPeriods:
    """Periods of one length, aligned to an origin."""

    length_us: int
    origin_us: int = 0

    def period(self, us: int) -> Period:
        """Return the period that contains an instant."""
        start = us - (us - self.origin_us) % self.length_us
        return Period(start, start + self.length_us)


@dataclass(frozen=True)
class LocalPeriods:
    """Periods that begin at local times of some days of the week.

    With `repeated`, a local time that comes twice begins a period each time.
    """

    zone: str
    times: tuple[time, ...] = (_MIDNIGHT,)
    days: tuple[str, ...] = DAYS
    repeated: bool = False

    @property
    def chunk_days(self) -> int:
        """How many days are looked up at once."""
        return max(1, min(_CHUNK_DAYS, _CHUNK_TIMES // len(self.times)))

    @property
    def shortest_us(self) -> int:
        """The shortest time between two of the local times, on a clock that never changes."""
        starts = sorted(map(_since_midnight_us, self.times))
        return min(b - a for a, b in pairwise([*starts, starts[0] + _DAY_US]))

    def period(self, us: int) -> Period:
        """Return the period that contains an instant."""
        starts = _starts(self, us // (self.chunk_days * _DAY_US))
        place = bisect_right(starts, us)
        return Period(starts[place - 1], starts[place])

    def between(self, low: int, high: int) -> list[Period]:
        """Return the periods that touch the instants from `low` to `high`, in order."""
        chunks = _chunks(low, high, self.chunk_days)
        starts = sorted({start for chunk in chunks for start in _starts(self, chunk)})
        near = starts[bisect_right(starts, low) - 1 : bisect_left(starts, high) + 1]
        return [*map(Period, near, near[1:])]


def _chunks(low: int, high: int, days: int) -> range:
    """Return the numbers of the chunks of time that touch the instants from `low` to `high`."""
    size = days * _DAY_US
    return range(low // size, -(-high // size))


@lru_cache(1024)
def _zone(name: str) -> ZoneInfo:
    """Return a zone; the module `zoneinfo` itself keeps only the last few and reads files again."""
    return ZoneInfo(name)


@lru_cache(1024)
def _starts(calendar: LocalPeriods, chunk: int) -> Sequence[int]:
    """Return the starts of all periods that touch a chunk of time, in order."""
    zone = _zone(calendar.zone)
    margin = _DAILY_MARGIN_DAYS if calendar.days == DAYS else _MARGIN_DAYS
    times = [_since_midnight_us(local) for local in calendar.times]
    starts = set[int]()
    for number, day, midnight in _numbered_days(zone, chunk, calendar.chunk_days, margin):
        if day is None:
            starts.add(number * _DAY_US)  # beyond the calendar, a day of UTC is a period
        elif DAYS[day.weekday()] not in calendar.days:
            continue
        elif midnight is not None:
            starts.update([midnight + after for after in times])
        else:
            instants = (_instants(zone, day, local, calendar.repeated) for local in calendar.times)
            starts.update(chain.from_iterable(instants))
    return array("q", sorted(starts))


def _since_midnight_us(local: time) -> int:
    seconds = (local.hour * 60 + local.minute) * 60 + local.second
    return seconds * SECOND_US + local.microsecond


class _LocalDay(NamedTuple):
    """A day of a zone, by its number since the epoch.

    The date is None at the ends of the years 1 and 9999, where a local time may be out of range.
    """

    number: int
    date: date | None
    midnight: int | None
    """The instant at which it begins; None if the clock may change before the next day ends."""


def _numbered_days(zone: ZoneInfo, chunk: int, days: int, margin: int) -> Iterator[_LocalDay]:
    """Yield the days of a chunk and its margins."""
    first = chunk * days - margin
    # Whatever the zone, the days n and n + 1 lie between the midnights n - 1 and n + 3 of UTC.
    offsets = deque((_offset_us(zone, number) for number in range(first - 1, first + 3)), 5)
    for number in range(first, first + days + 2 * margin):
        offsets.append(_offset_us(zone, number + 3))
        us = number * _DAY_US
        if EARLIEST_US + 2 * _DAY_US <= us <= LATEST_US - 3 * _DAY_US:
            # In the whole database, no clock changes twice within three days: it would be seen.
            is_steady = offsets.count(offsets[0]) == len(offsets)
            midnight = us - offsets[0] if is_steady and offsets[0] is not None else None
            yield _LocalDay(number, moment(us).date(), midnight)
        else:
            yield _LocalDay(number, None, None)


def _offset_us(zone: ZoneInfo, number: int) -> int | None:
    """Return by how much clocks are ahead of UTC at a midnight of UTC; None beyond the calendar."""
    us = number * _DAY_US
    known = EARLIEST_US + _DAY_US <= us <= LATEST_US - _DAY_US
    return _offset(zone, us) // _MICROSECOND if known else None


def _instants(zone: ZoneInfo, day: date, local: time, repeated: bool) -> Iterator[int]:
    """Yield the instant of a local time; both, if it comes twice and that matters."""
    yield instant(zone, day, local)
    if repeated:
        earlier, later = _readings(zone, day, local)
        if earlier < later:
            yield later


def instant(zone: ZoneInfo, day: date, local: time) -> int:
    """Return the first instant at which clocks show a local time, or have skipped it."""
    earlier, later = _readings(zone, day, local)
    return earlier if earlier <= later else _change(zone, later, earlier)


def _readings(zone: ZoneInfo, day: date, local: time) -> tuple[int, int]:
    """Return the instants by the offsets before and after a change of the clock on that day.

    They are equal except around a change: the first is earlier if the time comes twice, and later
    if it is skipped.
    """
    clock = datetime.combine(day, local, zone)
    return time_us(clock.replace(fold=0)), time_us(clock.replace(fold=1))


def _change(zone: ZoneInfo, before: int, after: int) -> int:
    """Return the instant of the change between two instants with different offsets."""
    offset = _offset(zone, after)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset(zone, middle) == offset:
            after = middle
        else:
            before = middle
    return after


def _offset(zone: ZoneInfo, us: int) -> timedelta:
    offset = moment(us).astimezone(zone).utcoffset()
    assert offset is not None  # a ZoneInfo always has one
    return offset


def read_zone(what: str, value: object) -> str:
    """Return the name of a zone of the IANA database.

    >>> read_zone("zone", "Europe/Athens")
    'Europe/Athens'
    """
    name = validate.plain_text(value) if validate.is_a(value, str) else None  # type: ignore[arg-type]
    if name not in _zones():
        raise InvalidPolicy(
            f"{what} is the name of a time zone such as UTC or Europe/Athens, not {shown(value)}"
        )
    return name


@lru_cache(1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones()) - {"localtime"}  # the zone of the machine


def read_time(what: str, value: object) -> time:
    """Return a time of day, written HH:MM or HH:MM:SS.

    >>> read_time("start", "22:00")
    datetime.time(22, 0)
    """
    if isinstance(value, time) and value.tzinfo is None:
        return value.replace(fold=0)
    text = validate.plain_text(value) if validate.is_a(value, str) else ""  # type: ignore[arg-type]
    if text[2:3] == ":":
        try:
            local = time.fromisoformat(text)
        except ValueError:
            local = None
        if local is not None and local.tzinfo is None:
            return local
    raise InvalidPolicy(f"{what} is a time of day such as 07:30, not {shown(value)}")


def time_text(local: time) -> str:
    """Return a time of day as it is written."""
    return local.isoformat("auto" if local.second or local.microsecond else "minutes")


def read_times(what: str, value: object) -> tuple[str, ...]:
    """Return times of day, as they are written, in order; a single one needs no list.

    >>> read_times("at", ["17:30", "08:00"])
    ('08:00', '17:30')
    """
    single = isinstance(value, str | time)
    listed = [value] if single else validate.listed(value, _MOST_TIMES)
    if listed is None or len(listed) > _MOST_TIMES:
        raise InvalidPolicy(
            f"{what} lists at most {_MOST_TIMES:,} times of day, not {shown(value)}"
        )
    return tuple(time_text(minute) for minute in sorted({read_time(what, text) for text in listed}))


def read_days(what: str, value: object) -> tuple[str, ...]:
    """Return days of the week in their order, from names such as "mon" or "Monday".

    >>> read_days("days", ["Friday", "mon"])
    ('mon', 'fri')
    """
    listed = validate.listed(value, _MOST_DAYS)
    if not listed or isinstance(value, str):
        raise InvalidPolicy(f"{what} lists days such as mon and fri, not {shown(value)}")
    for day in listed:
        if not isinstance(day, str) or day.lower() not in _DAY_NAMES:
            raise InvalidPolicy(
                f"{what}: unknown day {shown(day)}; expected one of: {', '.join(DAYS)}"
            )
    named = {_DAY_NAMES[day.lower()] for day in listed}
    return tuple(day for day in DAYS if day in named)


@dataclass(frozen=True)
class DailySpans:
    """A part of every day, from one local time to another, which may be past midnight."""

    zone: str
    start: time
    end: time
    chunk_days: ClassVar[int] = _CHUNK_DAYS

    def span(self, us: int) -> Period | None:
        """Return the span that contains an instant, if there is one."""
        spans = _spans(self, us // (_CHUNK_DAYS * _DAY_US))
        place = bisect_right(spans, us, key=lambda span: span.start)
        last = spans[place - 1] if place else None
        return last if last is not None and us < last.end else None

    def between(self, low: int, high: int) -> list[Period]:
        """Return the spans that touch the instants from `low` to `high`, in order."""
        chunks = _chunks(low, high, _CHUNK_DAYS)
        spans = sorted({span for chunk in chunks for span in _spans(self, chunk)})
        return [span for span in spans if span.start < high and span.end > low]


@lru_cache(4096)
def _spans(daily: DailySpans, chunk: int) -> Sequence[Period]:
    """Return all spans that touch a chunk of time, in order; changes of the clock may skip some."""
    zone, overnight = _zone(daily.zone), timedelta(days=daily.end <= daily.start)
    spans = list[Period]()
    first = _since_midnight_us(daily.start)
    last = _since_midnight_us(daily.end) + overnight.days * _DAY_US
    for _, day, midnight in _numbered_days(zone, chunk, _CHUNK_DAYS, _DAILY_MARGIN_DAYS):
        if midnight is not None:
            spans.append(Period(midnight + first, midnight + last))
        elif day is not None:
            start = instant(zone, day, daily.start)
            end = instant(zone, day + overnight, daily.end)
            spans += [Period(start, end)] if start < end else []
    return spans


def hours(zone: str) -> LocalPeriods:
    """Return the hours of the local clock; an hour that comes twice is two."""
    return LocalPeriods(zone, _HOURS, repeated=True)


def days(zone: str) -> LocalPeriods:
    """Return the days of a zone, from midnight to midnight."""
    return LocalPeriods(zone)


def weeks(zone: str) -> LocalPeriods:
    """Return the weeks of a zone, which begin on Mondays."""
    return LocalPeriods(zone, days=DAYS[:1])
