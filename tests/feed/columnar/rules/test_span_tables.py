"""Spans of a calendar for kernels, around the instants that were asked for."""

from datetime import time

from tidings.feed.columnar.rules.span_tables import SpanTables
from tidings.model.calendar import DailySpans, days

DAY_US = 86_400_000_000
ATHENS = days("Europe/Athens")
NIGHTS = DailySpans("Europe/Athens", time(22), time(7))


def test_loaded_spans_are_those_of_the_calendar() -> None:
    tables = SpanTables([None, ATHENS, NIGHTS])
    assert tables.columns.first.tolist() == [0, 0, 0, 0]
    tables.load(1, 100 * DAY_US)
    tables.load(2, 100 * DAY_US)
    columns = tables.columns
    for place, calendar in ((1, ATHENS), (2, NIGHTS)):
        low, high = columns.known[place].tolist()
        assert low < 100 * DAY_US < high
        own = slice(columns.first[place], columns.first[place + 1])
        pairs = zip(columns.start[own].tolist(), columns.end[own].tolist(), strict=True)
        assert [*pairs] == calendar.between(low, high)


def test_known_time_grows_until_it_would_be_too_long() -> None:
    tables = SpanTables([ATHENS])
    tables.load(0, 0)
    tables.load(0, 60 * DAY_US)
    low, high = tables.columns.known[0].tolist()
    assert low < 0
    assert high > 60 * DAY_US
    tables.load(0, 4_000 * DAY_US)
    assert tables.columns.known[0, 0] > 3_900 * DAY_US
