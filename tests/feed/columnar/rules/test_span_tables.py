"""Spans of a calendar for kernels, around the instants that were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.rules.codes import LocalSpans
from tidings.feed.columnar.rules.span_tables import SpanTables
from tidings.model.calendar import DailySpans, LocalPeriods, Period, days, hours

DAY_US = 86_400_000_000
ATHENS = days("Europe/Athens")
NIGHTS = DailySpans("Europe/Athens", time(22), time(7))


def test_loaded_spans_are_those_of_the_calendar() -> None:
    tables = SpanTables([None, ATHENS, NIGHTS])
    assert tables.columns.first.tolist() == [0, 0, 0, 0]
    tables.load(100 * DAY_US)
    columns = tables.columns
    for place, calendar in ((1, ATHENS), (2, NIGHTS)):
        low, high = columns.known[place].tolist()
        assert low < 100 * DAY_US < high
        own = slice(columns.first[place], columns.first[place + 1])
        pairs = zip(columns.start[own].tolist(), columns.end[own].tolist(), strict=True)
        assert [*pairs] == calendar.between(low, high)


def test_a_night_that_began_before_all_known_time_is_in_it() -> None:
    tables = SpanTables([DailySpans("UTC", time(22), time(7))])
    tables.load(0)
    assert tables.columns.start[0] < 0 < tables.columns.end[0]


def test_known_time_grows_until_it_would_be_too_long() -> None:
    tables = SpanTables([hours("Europe/Athens")])
    for day in range(60):
        tables.load(day * DAY_US)
    low, high = tables.columns.known[0].tolist()
    assert (low, high) == (0, 60 * DAY_US)
    for day in range(60, 200):
        tables.load(day * DAY_US)
    assert len(tables.columns.start) <= 2_000
    assert tables.columns.known[0, 0] > 0


@pytest.mark.parametrize("gap", [100, 10_000, 1_000_000])
def test_nothing_between_two_instants_is_looked_up(gap: int) -> None:
    tables = SpanTables([hours("Europe/Athens")])
    tables.load(0)
    tables.load(gap * DAY_US)
    assert len(tables.columns.start) < 5 * 24
    before = tables.columns.start
    tables.load(0)
    tables.load(gap * DAY_US)
    assert tables.columns.start.tolist() == before.tolist()


@dataclass(frozen=True)
class CountedHours(LocalPeriods):
    """The hours of a zone, and how often they were looked up."""

    times: tuple[time, ...] = hours("UTC").times
    looked_up: list[int] = field(default_factory=list, compare=False)

    def period(self, us: int) -> Period:
        self.looked_up.append(1)
        return super().period(us)

    def between(self, low: int, high: int) -> list[Period]:
        found = super().between(low, high)
        self.looked_up.append(len(found))
        return found


@pytest.mark.parametrize("months", [1, 12, 120])
def test_after_a_long_gap_one_period_is_looked_up_for_all_rules_of_a_zone(months: int) -> None:
    calendar = CountedHours("Europe/Athens")
    tables = SpanTables([calendar] * 16)
    for number in range(1, 51):
        tables.load(number * months * 30 * DAY_US)
        assert len(tables.columns.start) == 16
    assert calendar.looked_up == [1] * 50


@pytest.mark.parametrize("calendar", [ATHENS, NIGHTS, hours("America/New_York")])
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=12))
def test_what_is_looked_up_piece_by_piece_has_no_gap(
    calendar: LocalSpans, numbers: Sequence[int]
) -> None:
    tables = SpanTables([calendar])
    for number in numbers:
        tables.load(number * DAY_US)
        low, high = tables.columns.known[0].tolist()
        assert low <= number * DAY_US < high
        pairs = zip(tables.columns.start.tolist(), tables.columns.end.tolist(), strict=True)
        assert [Period(*pair) for pair in pairs] == calendar.between(low, high)
