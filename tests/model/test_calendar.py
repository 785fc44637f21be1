"""Calendars, with the instants written out, and against a clock that is read minute by minute."""

import struct
from datetime import time, timedelta
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidPolicy
from tidings.model import calendar
from tidings.model.calendar import DailySpans, EqualPeriods, LocalPeriods
from tidings.model.values import EARLIEST_US, LATEST_US, format_time, moment, parse_time_us

MINUTE_US = 60_000_000
DAY = 1_440
ZONES = (
    "UTC",
    "Europe/Athens",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
)
# Days around changes of the clock in these zones, and one around the leap day of 2028.
STARTS = tuple(
    map(
        parse_time_us,
        (
            "2011-12-28T00:00Z",
            "2018-11-02T00:00Z",
            "2019-02-15T00:00Z",
            "2026-03-07T00:00Z",
            "2026-03-28T00:00Z",
            "2026-04-03T00:00Z",
            "2026-10-24T00:00Z",
            "2026-10-31T00:00Z",
            "2028-02-27T00:00Z",
        ),
    )
)
instants = st.builds(
    lambda start, minutes, us: start + minutes * MINUTE_US + us,
    st.sampled_from(STARTS),
    st.integers(0, 5 * DAY),
    st.integers(0, MINUTE_US - 1),
)
clocks = st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 30]))


def shown(period: calendar.Period | None) -> tuple[str, str] | None:
    return None if period is None else (format_time(period.start), format_time(period.end))


@pytest.mark.parametrize(
    ("periods", "at", "start", "end"),
    [
        # Athens, 29 March 2026: 03:00 becomes 04:00, and the day has 23 hours.
        (calendar.days("Europe/Athens"), "2026-03-29T12:00Z", "2026-03-28T22", "2026-03-29T21"),
        # 25 October 2026: 04:00 becomes 03:00, and the day has 25 hours.
        (calendar.days("Europe/Athens"), "2026-10-25T12:00Z", "2026-10-24T21", "2026-10-25T22"),
        # São Paulo, 4 November 2018: midnight is skipped, and the day begins at 01:00.
        (calendar.days("America/Sao_Paulo"), "2018-11-04T12:00Z", "2018-11-04T03", "2018-11-05T02"),
        # Havana, 1 November 2026: midnight comes twice, and the day begins with the first.
        (calendar.days("America/Havana"), "2026-11-01T12:00Z", "2026-11-01T04", "2026-11-02T05"),
        # Apia went from 29 to 31 December 2011.
        (calendar.days("Pacific/Apia"), "2011-12-30T09:00Z", "2011-12-29T10", "2011-12-30T10"),
        (calendar.days("Pacific/Apia"), "2011-12-30T10:00Z", "2011-12-30T10", "2011-12-31T10"),
        # A leap day.
        (calendar.days("UTC"), "2028-02-29T12:00Z", "2028-02-29T00", "2028-03-01T00"),
        (calendar.weeks("UTC"), "2026-11-16T00:00Z", "2026-11-16T00", "2026-11-23T00"),
        (calendar.weeks("UTC"), "2026-11-15T23:59Z", "2026-11-09T00", "2026-11-16T00"),
        # The hour from three to four comes twice in Athens.
        (calendar.hours("Europe/Athens"), "2026-10-25T00:30Z", "2026-10-25T00", "2026-10-25T01"),
        (calendar.hours("Europe/Athens"), "2026-10-25T01:30Z", "2026-10-25T01", "2026-10-25T02"),
        (EqualPeriods(3_600_000_000), "1969-12-31T23:30Z", "1969-12-31T23", "1970-01-01T00"),
    ],
)
def test_periods_have_these_instants(
    periods: calendar.Calendar, at: str, start: str, end: str
) -> None:
    assert shown(periods.period(parse_time_us(at))) == (f"{start}:00:00Z", f"{end}:00:00Z")


@pytest.mark.parametrize(
    ("zone", "local", "at", "end"),
    [
        ("Europe/Athens", "03:30", "2026-03-29T00:00Z", "2026-03-29T01:00:00Z"),  # skipped
        ("Europe/Athens", "03:30", "2026-10-25T00:00Z", "2026-10-25T00:30:00Z"),  # the first
        ("Asia/Kathmandu", "08:00", "2026-11-16T00:00Z", "2026-11-16T02:15:00Z"),
        ("Australia/Lord_Howe", "02:15", "2026-10-03T12:00Z", "2026-10-03T15:30:00Z"),  # skipped
    ],
)
def test_local_times_around_changes(zone: str, local: str, at: str, end: str) -> None:
    periods = LocalPeriods(zone, (time.fromisoformat(local),))
    assert format_time(periods.period(parse_time_us(at)).end) == end


def first_reading(zone: ZoneInfo, from_us: int, clock: time) -> int:
    """Return the first whole minute from a time on at which clocks show, or jump over, a time."""
    us = from_us
    before = moment(us - MINUTE_US).astimezone(zone).replace(tzinfo=None)
    while True:
        now = moment(us).astimezone(zone).replace(tzinfo=None)
        days = {before.date(), now.date()}
        wanted = [now.combine(day, clock) for day in days]
        jumps = (now - before).total_seconds() > 60
        if any(one == now or (jumps and before < one < now) for one in wanted):
            return us
        before, us = now, us + MINUTE_US


@given(st.sampled_from(ZONES), st.sampled_from(STARTS), clocks)
def test_a_day_ends_where_a_clock_first_shows_the_time(zone: str, start: int, clock: time) -> None:
    periods = LocalPeriods(zone, (clock,))
    period = periods.period(start)
    assert period.start <= start < period.end
    info = ZoneInfo(zone)
    shown_at = moment(period.end).astimezone(info)
    expected = first_reading(info, start + MINUTE_US, clock)
    # The second of two readings is no boundary, so the scan may see one that does not count.
    if expected != period.end:
        assert shown_at.fold == 0
        assert moment(expected).astimezone(info).fold == 1
        assert first_reading(info, expected + MINUTE_US, clock) == period.end


@given(st.sampled_from(ZONES), instants, st.sampled_from(["hours", "days", "weeks"]))
def test_periods_divide_time(zone: str, us: int, kind: str) -> None:
    periods: LocalPeriods = getattr(calendar, kind)(zone)
    period = periods.period(us)
    assert period.start <= us < period.end
    assert periods.period(period.start) == periods.period(period.end - 1) == period
    assert periods.period(period.end).start == period.end
    assert periods.period(period.start - 1).end == period.start


EVERY_MINUTE = tuple(time(minute // 60, minute % 60) for minute in range(DAY))
EVERY_QUARTER = EVERY_MINUTE[::15]


@given(st.sampled_from(ZONES), instants)
def test_many_times_of_a_day_begin_where_each_of_them_does(zone: str, us: int) -> None:
    place, today = ZoneInfo(zone), moment(us).date()
    days = [today + timedelta(days=number) for number in range(-2, 4)]
    starts = {calendar.instant(place, day, local) for day in days for local in EVERY_QUARTER}
    found = LocalPeriods(zone, EVERY_QUARTER).period(us)
    assert found.start == max(start for start in starts if start <= us)
    assert found.end == min(start for start in starts if start > us)


@given(st.sampled_from(ZONES), instants)
def test_hours_begin_where_each_of_them_does(zone: str, us: int) -> None:
    place, today = ZoneInfo(zone), moment(us).date()
    days = [today + timedelta(days=number) for number in range(-2, 4)]
    starts = {
        start
        for day in days
        for hour in range(24)
        for start in calendar._instants(place, day, time(hour), repeated=True)
    }
    found = calendar.hours(zone).period(us)
    assert found.start == max(start for start in starts if start <= us)
    assert found.end == min(start for start in starts if start > us)


class OffsetChange(NamedTuple):
    """A change of the clock of a zone."""

    second: int
    before: int
    after: int


def offset_changes(zone: str) -> list[OffsetChange]:
    """Return all changes of the clock, from the file of a zone (RFC 8536, its second part)."""
    data = (files("tzdata") / "zoneinfo" / zone).read_bytes()
    head = struct.Struct(">4s1s15x6l")
    _, _, utc, standard, leaps, times, kinds, letters = head.unpack_from(data)
    at = head.size + times * 5 + kinds * 6 + letters + leaps * 8 + standard + utc
    _, _, _, _, _, times, kinds, _ = head.unpack_from(data, at)
    at += head.size
    seconds = struct.unpack_from(f">{times}q", data, at)
    numbers = data[at + 8 * times : at + 9 * times]
    offsets = [
        struct.unpack_from(">lbB", data, at + 9 * times + 6 * kind)[0] for kind in range(kinds)
    ]
    after = [offsets[number] for number in numbers]
    changes = map(OffsetChange, seconds, [offsets[0], *after], after)
    return [change for change in changes if change.before != change.after]


def test_no_clock_changes_twice_within_three_days() -> None:
    """A day whose two ends have the same offset has it all along."""
    zones = sorted(available_timezones() - {"localtime"})
    gaps = [
        later.second - change.second
        for zone in zones
        for change, later in pairwise(offset_changes(zone))
    ]
    assert len(zones) > 400
    assert min(gaps) > 3 * 86_400


@pytest.mark.parametrize("days", [calendar.DAYS, ("mon",)])
def test_few_instants_are_kept_of_calendars_with_many(days: tuple[str, ...]) -> None:
    """A stream may ask for thousands of days, and all of them are kept for some time."""
    kept = calendar._starts(LocalPeriods("Europe/Athens", EVERY_MINUTE, days), 20_000)
    assert DAY <= len(kept) <= 7 * DAY


@given(st.sampled_from(ZONES), instants, clocks, clocks)
def test_spans_contain_what_the_local_clock_says(
    zone: str, us: int, start: time, end: time
) -> None:
    if start == end:
        return
    span = DailySpans(zone, start, end).span(us)
    local = moment(us).astimezone(ZoneInfo(zone))
    clock = local.time()
    inside = start <= clock < end if start < end else clock >= start or clock < end
    if span is not None:
        assert span.start <= us < span.end
    near_change = (
        moment(us - DAY * MINUTE_US).astimezone(ZoneInfo(zone)).utcoffset()
        != moment(us + DAY * MINUTE_US).astimezone(ZoneInfo(zone)).utcoffset()
    )
    if not near_change:
        assert (span is not None) == inside


@given(st.sampled_from(ZONES), instants, clocks, clocks)
def test_spans_lie_where_both_of_their_times_do(zone: str, us: int, start: time, end: time) -> None:
    place, today = ZoneInfo(zone), moment(us).date()
    days = [today + timedelta(days=number) for number in range(-4, 5)]
    spans = [
        calendar.Period(
            calendar.instant(place, day, start),
            calendar.instant(place, day + timedelta(days=end <= start), end),
        )
        for day in days
    ]
    low, high = us - DAY * MINUTE_US, us + DAY * MINUTE_US
    assert DailySpans(zone, start, end).between(low, high) == [
        span for span in spans if max(low, span.start) < min(high, span.end)
    ]


@given(st.sampled_from(ZONES), instants, st.integers(1, 9 * DAY))
def test_periods_between_instants_follow_each_other(zone: str, low: int, minutes: int) -> None:
    hours, high = calendar.hours(zone), low + minutes * MINUTE_US
    expected = [hours.period(low)]
    while expected[-1].end < high:
        expected.append(hours.period(expected[-1].end))
    assert hours.between(low, high) == expected


@pytest.mark.parametrize("us", [EARLIEST_US, EARLIEST_US + 1, LATEST_US - 1, LATEST_US])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
def test_the_first_and_last_days_have_periods(us: int, zone: str) -> None:
    for periods in (calendar.days(zone), calendar.weeks(zone), calendar.hours(zone)):
        period = periods.period(us)
        assert period.start <= us < period.end
    DailySpans(zone, time(22), time(7)).span(us)


@pytest.mark.parametrize(
    "zone", ["", "Mars/Base", "europe/athens ", "../UTC", "localtime", None, 5, "\0"]
)
def test_other_zones_are_refused(zone: object) -> None:
    with pytest.raises(InvalidPolicy, match="zone is the name of a time zone"):
        calendar.read_zone("zone", zone)


def test_days_are_read_and_sorted() -> None:
    assert calendar.read_days("days", ["sun", "Monday", "SUN"]) == ("mon", "sun")
    for wrong in ([], "mon", None, ["someday"], [1], ["mon", None]):
        with pytest.raises(InvalidPolicy, match="days"):
            calendar.read_days("days", wrong)


def test_times_are_read_and_sorted() -> None:
    assert calendar.read_times("at", "08:00") == ("08:00",)
    assert calendar.read_times("at", ["17:30", time(8), "08:00", "00:00:05"]) == (
        "00:00:05",
        "08:00",
        "17:30",
    )
    for wrong in ("8", "24:00", ["08:00", 5], None, {"a": 1}, "08:00Z"):
        with pytest.raises(InvalidPolicy, match="at "):
            calendar.read_times("at", wrong)
