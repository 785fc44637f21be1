"""Layouts: how the columns of a table, or the fields of flat JSON objects, become events.

Ordinary files have neither a column `id` nor one called `published_at`. A layout says which columns
hold them, and how to read cells whose type a file does not tell.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tidings.errors import InvalidForm, TidingsError, shown
from tidings.formats.arrow_by_row import AS_READ, EVENT_COLUMNS, Cells, Convert
from tidings.model import validate
from tidings.model.limits import CONTENT, TRUSTED, Limits
from tidings.model.values import format_time, moment, parse_time_us, time_us

GENERATED: Final = ("id", "published_at")
TICKS_PER_SECOND: Final = {
    "epoch-s": 1,
    "epoch-ms": 1_000,
    "epoch-us": 1_000_000,
    "epoch-ns": 1_000_000_000,
}
RFC_822: Final = "rfc-822"
"""The type of times as in mail and RSS, with any of their zones."""
MISSING: Final = ("NA", "N/A", "n/a", "NULL", "null", "None", "-")
"""Words for a missing value in a column of numbers."""
UNIT: Final = r"[$€£¥₹%]|[A-Z]{3}"
"""The units of amounts: signs of currency and percent, and codes such as EUR."""
_INDEX: Final = re.compile(r"__index_level_\d+__")
_TAGS: Final = ({"time"}, {"range"}, {"range", "mode"})
_BOOLEANS: Final = {
    word: value
    for words, value in (("true t yes y 1", True), ("false f no n 0", False))
    for word in words.split()
}


@dataclass(frozen=True)
class Layout:
    """The layout of a source; the default one leaves everything as it is.

    columns: the column of the source for each name that differs, such as `{"id": "sku"}`.
    keep: the attributes to keep besides these; all of them by default.
    lists: separators of columns, by their new names, whose text is a list.
    types: types of columns, by their new names: string, number, amount (1,234.50), amount-comma
        (1.234,50), boolean, time, epoch-s, epoch-ms, epoch-us, epoch-ns, rfc-822 (Sun, 15 Nov 2026
        20:05:00 GMT), or the format of a time as for `strptime`. Of amounts, signs of currency and
        percent are dropped.
    generate: `id` from the name of the file and the row, or `published_at` from the time at which
        the file was modified, a microsecond later for each row.
    root: the folder that names of files in ids are relative to.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] | None = None
    lists: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    generate: tuple[str, ...] = ()
    root: Path | None = None

    def __post_init__(self) -> None:
        for name in self.generate:
            validate.choice("generate", name, GENERATED, InvalidForm)
            if name in self.columns:
                raise InvalidForm(f"{name} is either generated or a column, not both")
        for name, kind in self.types.items():
            _check_type(name, kind)
        for name, separator in self.lists.items():
            if not separator:
                raise InvalidForm(f"lists {name}: the separator is empty")

    @property
    def renames_only(self) -> bool:
        """Whether cells stay as they are, so that any reader of tables can do the rest."""
        return not (self.lists or self.types or self.generate)

    @property
    def is_plain(self) -> bool:
        """Whether records already have the form of events."""
        return self.renames_only and not self.columns and self.keep is None

    @property
    def text_columns(self) -> set[str]:
        """The columns of the source that must be read as text, if it has no types of its own."""
        return {self.source_of(name) for name in (*self.lists, *self.types)}

    @cached_property
    def renamed(self) -> frozenset[str]:
        """The columns of the source that have another name, or whose name another one has."""
        return frozenset({*self.columns.values(), *self.columns})

    def source_of(self, name: str) -> str:
        """Return the column of the source that has a name."""
        return self.columns.get(name, name)

    def keeps(self, name: str) -> bool:
        """Return whether a column that is not renamed is kept: `keep` chooses among attributes."""
        return self.keep is None or name in self.keep or name in EVENT_COLUMNS

    def sources(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the column of a table for each name; a column that is missing is refused.

        A column whose name another column takes over is left out, and so are the unnamed indexes of
        pandas.
        """
        for name in (*self.columns.values(), *(self.keep or ())):
            if name not in columns:
                listed = ", ".join(columns)
                raise InvalidForm(f"[source] names the column {name!r}, but there are: {listed}")
        for name in GENERATED:
            if name not in (*columns, *self.columns, *self.generate):
                raise InvalidForm(
                    f"there is no column {name} among {', '.join(columns)}; say in [source] which "
                    f'one it is, columns = {{ {name} = "..." }}, or generate = ["{name}"]; for '
                    f"`tidings lab`, --column {name}=..."
                )
        used = {*self.renamed, *self.generate}
        remaining = [name for name in columns if name not in used and not _INDEX.fullmatch(name)]
        names = [name for name in remaining if self.keeps(name)]
        return {**self.columns, **dict(zip(names, names, strict=True))}

    @cached_property
    def converters(self) -> dict[str, Convert]:
        """The function that reads the cells of each column with a list or a type."""
        readers = {
            name: _TYPES.get(kind) or partial(_time, kind) for name, kind in self.types.items()
        }
        lists = {
            name: partial(_split, separator, readers.get(name))
            for name, separator in self.lists.items()
        }
        converters: dict[str, Convert] = {**readers, **lists}
        return {name: partial(_naming, name, convert) for name, convert in converters.items()}

    def form(
        self, record: object, generated: Mapping[str, object], limits: Limits = TRUSTED
    ) -> dict[str, Any]:
        """Return the form of an event for a flat JSON object; nested objects get dotted names.

        The values that are `generated` are those of this record.
        """
        fields = flat_fields(record, limits)
        if isinstance(record, dict) and isinstance(record.get(CONTENT), dict):
            within = [name for name in fields if name.startswith(f"{CONTENT}.")]
            fields = {name: value for name, value in fields.items() if name not in within}
            fields[CONTENT] = record[CONTENT]
        values = {name: fields.get(source) for name, source in self.columns.items()}
        for name, value in fields.items():
            if name not in self.renamed and self.keeps(name):
                values[name] = value
        values |= generated
        values = {name: value for name, value in values.items() if value is not None}
        for name in self.converters.keys() & values.keys():
            values[name] = self.converters[name](values[name])
        for name in GENERATED:
            if name not in values:
                raise InvalidForm(f"field {self.source_of(name)!r} is missing")
        form: dict[str, Any] = {"attributes": values}
        for name in EVENT_COLUMNS:
            if name in values:
                form[name] = values.pop(name)
        return form

    def cells(self, plain: Cells = AS_READ) -> Cells:
        """Return the readers of cells, given those of cells without a list or a type."""
        return plain._replace(converters=self.converters) if self.converters else plain


AS_IT_IS: Final = Layout()
"""The layout of records that already are events."""


def _check_type(name: str, kind: object) -> None:
    if not isinstance(kind, str) or not ("%" in kind or kind in _TYPES):
        listed = ", ".join(_TYPES)
        raise InvalidForm(
            f"types {name}: unknown type {shown(kind)}; expected one of: {listed}, or the format "
            "of a time such as '%d/%m/%Y %H:%M'"
        )
    if "%" in kind and (fault := _format_fault(kind)):
        raise InvalidForm(f"types {name}: {shown(kind)} is not a time format: {fault}")


@lru_cache(maxsize=1_000)
def _format_fault(kind: str) -> str:
    """Return why a text is not the format of a time; empty if it is one."""
    try:
        now = datetime(2026, 11, 15, tzinfo=UTC)
        datetime.strptime(now.strftime(kind), kind)  # noqa: DTZ007 - only the format matters
    except (ValueError, re.error, IndexError) as error:
        return str(error) or "it cannot be read"
    return ""


@dataclass(frozen=True)
class FileLayout:
    """The layout of the source that a file belongs to."""

    layout: Layout
    path: Path

    def table(self, table: pa.Table, rows: Iterable[int]) -> pa.Table:
        """Return a table of events; `rows` are the numbers of its rows in the file."""
        sources = self.layout.sources(table.column_names)
        same = list(sources.items()) == [(name, name) for name in table.column_names]
        if same and not self.layout.generate:
            return table
        columns = {name: table.column(source) for name, source in sources.items()}
        numbers = list(islice(rows, table.num_rows)) if self.layout.generate else []
        for name, generate in self.generators.items():
            columns[name] = pa.array(map(generate, numbers), _GENERATED[name])
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))

    def form(self, record: object, row: int, limits: Limits = TRUSTED) -> dict[str, Any]:
        """Return the form of the event in a row."""
        generated = {name: generate(row) for name, generate in self.generators.items()}
        return self.layout.form(record, generated, limits)

    @cached_property
    def generators(self) -> dict[str, Callable[[int], object]]:
        """The functions from the number of a row to its id, or to its time."""
        return {name: self._generator(name) for name in self.layout.generate}

    def _generator(self, name: str) -> Callable[[int], object]:
        if name == "id":
            path = self.path.resolve()
            root = self.layout.root.resolve() if self.layout.root else path.parent
            label = path.relative_to(root).as_posix() if root in path.parents else path.name
            return lambda row: f"{label}:{row:07d}"
        modified_us = self.path.stat().st_mtime_ns // 1_000
        return lambda row: moment(modified_us + row)


def flat_fields(record: object, limits: Limits = TRUSTED) -> dict[str, Any]:
    """Return the fields of a JSON object by name; those of objects within it get dotted names.

    >>> flat_fields({"sku": 7, "maker": {"name": "Arco"}})
    {'sku': 7, 'maker.name': 'Arco'}
    """
    label = "a flat event is an object with named fields"
    fields = validate.mapping(label, record, InvalidForm)
    if not any(type(value) is dict for value in fields.values()):
        return dict(fields)
    return dict(_flat(fields, limits.nesting))


def _flat(fields: Mapping[Any, Any], levels: int, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if levels < 0:
        raise InvalidForm("its objects nest too deeply")
    for name, value in fields.items():
        if isinstance(value, dict) and not any(set(value) == tag for tag in _TAGS):
            yield from _flat(value, levels - 1, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _naming(column: str, convert: Convert, value: object) -> object:
    """Convert a cell; an error names its column."""
    try:
        return convert(value)
    except TidingsError as error:
        raise InvalidForm(f"{column}: {error}") from None


def _split(separator: str, read: Convert | None, value: object) -> object:
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(separator)]
    return [read(part) if read else part for part in parts if part]


def _string(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return format_time(time_us(value if value.tzinfo else value.replace(tzinfo=UTC)))
    if isinstance(value, float | Decimal) and value == value // 1:
        return str(int(value))
    return str(value) if isinstance(value, int | float | Decimal) else value


def _number(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return int(value) if value.strip().lstrip("+-").isdigit() else float(value)
    except ValueError:
        raise InvalidForm(f"{shown(value)} is not a number") from None


def _amount(pattern: re.Pattern[str], example: str, value: object) -> object:
    """Read a number with separators of thousands, a sign of currency, or percent.

    >>> [_TYPES["amount"](text) for text in ("1,234.50", "-$7", "10 %")]
    [1234.5, -7, 10]
    """
    if not isinstance(value, str):
        return value
    if value.strip() in MISSING:
        return None
    parts = pattern.fullmatch(value.strip())
    if parts is None:
        raise InvalidForm(f"{shown(value)} is not an amount such as {example}")
    whole = parts["sign"] + re.sub(r"\D", "", parts["digits"])
    return int(whole) if parts["decimals"] is None else float(f"{whole}.{parts['decimals']}")


def _boolean(value: object) -> object:
    word = str(value).strip().lower()
    if word not in _BOOLEANS:
        raise InvalidForm(f"{shown(value)} is not a boolean; write true or false")
    return _BOOLEANS[word]


def _time(kind: str, value: object) -> object:
    """Read a time: RFC 3339, a number of ticks since the epoch, or text of a format."""
    if isinstance(value, datetime):
        return value
    if kind in TICKS_PER_SECOND:
        ticks = _number(value)
        if isinstance(ticks, bool) or not isinstance(ticks, int | float | Decimal):
            raise InvalidForm(f"{shown(value)} is not a number of ticks since the epoch")
        return moment(parse_time_us(ticks / TICKS_PER_SECOND[kind]))
    if kind == "time":
        return moment(parse_time_us(value))
    if kind == RFC_822:
        return _mail_time(str(value).strip())
    return _formatted(kind, str(value).strip())


@lru_cache(65_536)
def _mail_time(text: str) -> datetime:
    try:
        time = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        raise InvalidForm(f"{shown(text)} is not a time of RFC 822") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)  # -0000: the zone is not known


@lru_cache(65_536)
def _formatted(kind: str, text: str) -> datetime:
    try:
        time = datetime.strptime(text, kind)  # noqa: DTZ007 - a time without a zone is UTC
    except ValueError:
        raise InvalidForm(f"{shown(text)} is not a time of the format {kind!r}") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_GENERATED: Final = {"id": pa.string(), "published_at": pa.timestamp("us", "UTC")}


def _amounts(groups: str, point: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<sign>[+-]?)\s*(?:{UNIT})?\s*"
        rf"(?P<digits>\d{{1,3}}(?:[{groups}'\s]\d{{3}})+|\d+)(?:{point}(?P<decimals>\d+))?"
        rf"\s*(?:{UNIT})?"
    )


AMOUNTS: Final[dict[str, Convert]] = {
    "amount": partial(_amount, _amounts(",", r"\."), "1,234.50"),
    "amount-comma": partial(_amount, _amounts(".", ","), "1.234,50"),
}
_TYPES: Final[dict[str, Convert]] = {
    "string": _string,
    "number": _number,
    **AMOUNTS,
    "boolean": _boolean,
    **{kind: partial(_time, kind) for kind in ("time", *TICKS_PER_SECOND, RFC_822)},
}
