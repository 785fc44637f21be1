"""The columns of a sample: what they hold, and which of them are ids, times and lists."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

from tidings.errors import TidingsError
from tidings.formats.layout import AMOUNTS, MISSING, RFC_822, TICKS_PER_SECOND, UNIT, Layout
from tidings.model.values import parse_time_us

Row = Mapping[str, Any]

_ID_NAME: Final = re.compile(
    r"(^|.*[_\W])(?i:id|id_str|uuid|guid|guid\.value|key|sku|isbn|ean|asin|code|slug|url|link"
    r"|rownames|row|number|no|nr|nummer|ref|reference)\W*$"
    r"|^.*[a-z](Id|ID)$|^column_1$"
)
_ROW_NUMBER: Final = re.compile(r"(?i)rownames|row|column_1")
"""Names of ids that only number the rows of an export; any other id is preferred."""
_TIME_NAMES: Final = (
    re.compile(r"(?i).*(publish|posted|created|issued|timestamp|datetime|date_?time)"),
    re.compile(r"(?i).*(time|date|when)|(^|.*[_\W])(ts|at|day)$"),
    re.compile(r"(?i).*(updated|modified|year|month|epoch|seen)"),
)
_DATES: Final = (
    *("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%Y/%m/%d", "%d.%m.%Y", "%m.%d.%Y"),
    *("%d.%m.%y", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%d %b %Y", "%d-%b-%Y"),
    *("%d-%b-%y", "%d/%b/%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    *("%a, %d %b %Y", "%a %b %d %Y"),
)
_CLOCKS: Final = (
    *(" %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S"),
    *(":%H:%M:%S", ", %H:%M", ", %H:%M:%S", ", %I:%M %p"),
)
_ZONES: Final = ("", " %z", "%z")
_MONTHS: Final = ("%b-%Y", "%b %Y", "%B-%Y", "%B %Y", "%Y-%m", "%Y/%m", "%m/%Y")
FORMATS: Final = (
    *_DATES,
    *_MONTHS,
    *("".join(parts) for parts in product(_DATES, _CLOCKS, _ZONES)),
    *("%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%Y%m%d %H:%M:%S", "%Y%m%d %H%M"),
    *("%a, %d %b %Y %H:%M:%S %Z", "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %z %Y"),
    RFC_822,
)
_DIRECTIVE: Final = re.compile(r"%.")
_NAMED_PART: Final = re.compile(r"%[^YymdHMSfI]")
"""A directive that may stand for more than digits: a name of a month, a zone."""
_LIKE_A_TIME: Final = re.compile(
    r"(?s)(?=.{6,40}$)(\D{0,12}\d{1,4}\D{1,12}\d{1,4}(\D.*)?|\d{8,14}(\D.*)?|[^\W\d]{3,9}[ -]\d{4})"
)
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?")
_PARTS: Final = ("year", "month", "day", "hour", "minute")
_SEPARATORS: Final = ("|", ";", ",")
_NUMBER: Final = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*")
_UNIT: Final = re.compile(UNIT)
_TRIED: Final = 200
_FULL_SHARE: Final = 0.9
"""The share of rows that must have a time, since the others cannot be published."""
_LONG_ID: Final = 200
_LONG_PART: Final = 40
_MOST_PARTS: Final = 500
# Ticks since the epoch are those of the years 1990 to 2100. Those finer than a second may be as old
# as 1971, since nothing else that is called a time has such large numbers.
_FIRST_S, _FIRST_FINE_S, _LAST_S = 631_152_000, 31_536_000, 4_102_444_800
_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True)
class SampleColumn:
    """A column of a sample: its values where it has some, and the number of rows."""

    name: str
    values: Sequence[Any]
    rows: int

    @property
    def is_full(self) -> bool:
        """Whether every row has a value."""
        return len(self.values) == self.rows

    @property
    def is_nearly_full(self) -> bool:
        """Whether all but a few rows have a value."""
        return len(self.values) >= _FULL_SHARE * self.rows

    @property
    def is_unique(self) -> bool:
        """Whether no value occurs twice."""
        return len(set(map(str, self.values))) == len(self.values)

    def holds(self, *kinds: type) -> bool:
        """Return whether all values are of some kinds."""
        return bool(self.values) and all(type(value) in kinds for value in self.values)

    @property
    def kind(self) -> str:
        """The type of the values, as a user would call it."""
        if not self.values:
            return "empty"
        names = ((bool,), "boolean"), ((int, float, Decimal), "number"), ((datetime,), "time")
        for kinds, name in names:
            if self.holds(*kinds):
                return name
        return "list" if self.holds(list, tuple) else "string" if self.holds(str) else "mixed"


def columns_of(rows: Sequence[Row]) -> list[SampleColumn]:
    """Return the columns of a sample, in the order in which they first occur."""
    cells = dict[str, list[Any]]()
    for row in rows:  # once: each row may have names of its own
        for name, value in row.items():
            column = cells.setdefault(name, [])
            if value is not None:
                column.append(value)
    return [SampleColumn(name, values, len(rows)) for name, values in cells.items()]


def find_id(columns: Iterable[SampleColumn]) -> str | None:
    """Return the column of ids: one that is full and unique, and has a name like an id."""
    named = [
        column.name
        for column in columns
        if _ID_NAME.match(column.name)
        and column.is_full
        and column.holds(int, str)
        and column.is_unique
        and all(len(str(value)) <= _LONG_ID for value in column.values)
    ]
    exact = [name for name in named if name.lower() in ("id", "uuid")]
    telling = [name for name in named if not _ROW_NUMBER.fullmatch(name)]
    return next(iter(exact + telling + named), None)


@dataclass(frozen=True)
class TimeColumn:
    """A column of publication times, and its type unless it is RFC 3339 or a timestamp."""

    name: str
    type: str | None = None


def find_time(columns: Iterable[SampleColumn]) -> TimeColumn | None:
    """Return the column of publication times: by name, then one with times of day, then the first.

    If a date and a time are on the same day, the time is chosen, whatever the names.
    """
    dated = []
    for place, column in enumerate(columns):
        hints = [rank for rank, hint in enumerate(_TIME_NAMES) if hint.match(column.name)]
        kind = _time_type(column, named=bool(hints)) if column.values else None
        if kind is None or not column.is_nearly_full:
            continue
        times = _times(column, kind)
        has_clock = any(time % _DAY_US for time in times)
        order = (min(hints, default=9), not has_clock, place)
        dated.append(_FoundTime(order, TimeColumn(column.name, kind or None), times, has_clock))
    if not dated:
        return None
    best = min(dated, key=lambda time: time.order)
    finer = [time for time in dated if not best.has_clock and time.is_finer_than(best)]
    return min(finer, key=lambda time: time.order).column if finer else best.column


class _FoundTime(NamedTuple):
    """A column that may hold the publication times; the one with the smallest `order` is the best.

    `has_clock` says whether there are times of day, or only dates.
    """

    order: tuple[int, bool, int]
    column: TimeColumn
    times: Sequence[int]
    has_clock: bool

    def is_finer_than(self, dates: "_FoundTime") -> bool:
        """Return whether these are times of day on the given dates, up to a day off."""
        pairs = zip(self.times, dates.times, strict=False)
        same_rows = len(self.times) == len(dates.times)
        return (
            self.has_clock and same_rows and all(-_DAY_US <= t - d < 2 * _DAY_US for t, d in pairs)
        )


def find_time_parts(columns: Sequence[SampleColumn], time: str | None) -> list[str]:
    """Return columns that only together make up a time.

    They are a year, a month, a day and so on, or the `time` that was found and a time of day.
    """
    date = next((column for column in columns if column.name == time), None)
    if date is None:
        numbers = {
            column.name.lower(): column.name for column in columns if column.kind == "number"
        }
        parts = [numbers[part] for part in _PARTS if part in numbers]
        return parts if numbers.keys() >= {*_PARTS[:3]} else []
    clocks = [
        column.name
        for column in columns
        if column.holds(str) and all(map(_CLOCK.fullmatch, column.values[:_TRIED]))
    ]
    kind = _time_type(date, named=True)
    if not clocks or kind is None or any(time_us % _DAY_US for time_us in _times(date, kind)):
        return []
    return [date.name, clocks[0]]


def find_odd_time(columns: Iterable[SampleColumn]) -> SampleColumn | None:
    """Return a column that is named like a time and holds times in several formats."""
    named = (
        column for column in columns if any(hint.match(column.name) for hint in _TIME_NAMES[:2])
    )
    for column in named:
        if column.holds(str) and _time_type(column, named=True) is None:
            similar = sum(_LIKE_A_TIME.fullmatch(value) is not None for value in column.values)
            if similar >= _FULL_SHARE * len(column.values):
                return column
    return None


def _time_type(column: SampleColumn, *, named: bool) -> str | None:
    """Return the type of a column of times, '' if it needs none, or None for another column."""
    if column.holds(datetime):
        return ""
    if column.holds(int, float) and named:
        return _ticks(column)
    if not column.holds(str) or not _LIKE_A_TIME.fullmatch(column.values[0]):
        return None
    fitting: Sequence[str] = ("", *FORMATS)
    for tried in (1, _TRIED, column.rows):
        fitting = [kind for kind in fitting if _fits(kind, column.values[:tried])]
    return min(fitting, key=lambda kind: _disorder(_times(column, kind)), default=None)


def _ticks(column: SampleColumn) -> str | None:
    if column.holds(int) and _fits("%Y%m%d", list(map(str, column.values))):
        return "%Y%m%d"
    for kind, ticks in TICKS_PER_SECOND.items():
        first = _FIRST_S if ticks == 1 else _FIRST_FINE_S
        if all(first <= value / ticks <= _LAST_S for value in column.values):
            return "" if ticks == 1 else kind
    return None


def _fits(kind: str, values: Sequence[Any]) -> bool:
    if "%" in kind and values and not _has_signs(kind, values[0]):
        return False
    read = _read(kind)
    try:
        for value in values:
            read(value)
    except (TidingsError, ValueError):
        return False
    return True


def _has_signs(kind: str, text: str) -> bool:
    """Return whether a text has the signs of a format, as each text that fits it does.

    This excludes most of the hundreds of formats; Python compiles a pattern for each other one.
    """
    signs = "".join(_DIRECTIVE.sub("", kind).split()).casefold()
    rest = "".join(sign for sign in text if not (sign.isdecimal() or sign.isspace())).casefold()
    if not _NAMED_PART.search(kind):
        return rest == signs
    after = iter(rest)
    return all(sign in after for sign in signs)


def _read(kind: str) -> Callable[[Any], Any]:
    if not kind:
        return parse_time_us
    return Layout(types={"time": kind}).converters["time"]


def _times(column: SampleColumn, kind: str) -> list[int]:
    read = _read(kind)
    return [parse_time_us(read(value) if kind else value) for value in column.values]


def _disorder(times: Sequence[int]) -> tuple[int, int]:
    """Return how often the times go back, and their span; of two readings, the smaller is meant.

    So 31/10, 01/11, 02/11 are consecutive days, and not days of three different months.
    """
    return sum(before > after for before, after in pairwise(times)), max(times) - min(times)


def other_reading(column: SampleColumn, kind: str) -> str | None:
    """Return the form with day and month exchanged, if all times of a column have it too."""
    swapped = kind.translate(str.maketrans("dm", "md"))
    is_date = swapped != kind and column.holds(str) and swapped in FORMATS
    return swapped if is_date and _fits(swapped, column.values) else None


def find_amounts(columns: Iterable[SampleColumn]) -> dict[str, str]:
    """Return the types of text columns of amounts that have separators, or all the same unit."""
    return {
        column.name: kind
        for column in columns
        if column.holds(str)
        and any(value not in MISSING and not _NUMBER.fullmatch(value) for value in column.values)
        and len({unit for value in column.values for unit in _UNIT.findall(value)}) <= 1
        for kind in reversed(AMOUNTS)
        if _fits(kind, column.values)
    }


def find_lists(columns: Iterable[SampleColumn]) -> dict[str, str]:
    """Return the separators of text columns that hold lists: their parts are short and repeat."""
    separators = {}
    for column in columns:
        if not column.holds(str) or column.is_unique:
            continue
        for separator in _SEPARATORS:
            cells = [value.split(separator) for value in column.values]
            split = sum(len(cell) > 1 for cell in cells)
            parts = Counter(part.strip() for cell in cells for part in cell)
            if (
                split * 5 >= len(cells)
                and len(parts) * (10 if separator == "," else 2) <= parts.total()
                and len(parts) <= _MOST_PARTS
                and max(map(len, parts)) <= _LONG_PART
            ):
                separators[column.name] = separator
                break
    return separators
