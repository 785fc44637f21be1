"""A fast path that reads the events of a whole Arrow batch, column by column.

It returns the same events as `arrow_by_row`. Cells that need a conversion, such as text in a CSV
file, are converted once for each distinct value. If a cell may be invalid, the result is None, or
an error is raised, and the batch is read row by row.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.errors import InvalidEvent
from tidings.formats.arrow_by_row import (
    AS_READ,
    EVENT_COLUMNS,
    LIST_TYPES,
    TICK,
    Cells,
    Convert,
    content_decoder,
)
from tidings.model import validate
from tidings.model.content import Content, read_content
from tidings.model.event_columns import (
    UNNUMBERED,
    ColumnEvents,
    ColumnsBuilder,
    NumberEntries,
    TextEntries,
    attach,
)
from tidings.model.limits import CONTENT
from tidings.model.records import LAST_SEQUENCE, Event, PublicationTime
from tidings.model.values import EARLIEST, LATEST, SECOND_US, attribute_value, moment

_TEXTS: Final = (types.is_string, types.is_large_string)
_PLAIN: Final = (*_TEXTS, types.is_integer, types.is_boolean)
"""Types whose values are all valid and need no conversion."""
_MOST_CELLS: Final = 256
"""Cells per entry up to which a table of events by names finds one that occurs twice."""


def quick_events(
    batch: pa.RecordBatch, cells: Cells = AS_READ, *, attaches: bool = False
) -> list[Event] | None:
    """Return the events of a batch with a checked schema; None if it must be read by row.

    If it `attaches` columns, the events have them where all their values are texts and numbers.
    """
    columns = {name: _decoded(batch.column(name)) for name in batch.schema.names}
    converters = {
        name: cells.converter(name, text=_is(column, _TEXTS)) for name, column in columns.items()
    }
    if "" in columns or CONTENT in cells.converters:
        return None
    ids = _ids(columns["id"], converters["id"])
    times = _publications(columns["published_at"], converters["published_at"])
    numbers = _numbers(columns.get("sequence"), converters.get("sequence"), batch.num_rows)
    if ids is None or times is None or numbers is None:
        return None
    attributes: list[dict[str, Any]] = [{} for _ in ids]
    builder = ColumnsBuilder()
    reserved = {*columns, *EVENT_COLUMNS}
    for name, column in columns.items():
        if name in EVENT_COLUMNS:
            continue
        if types.is_map(column.type):
            # The converters of a map are those of its keys.
            valid = cells == AS_READ and _unfold(attributes, column, reserved, builder)
        else:
            valid = _fill(attributes, name, column, converters[name], builder)
        if not valid:
            return None
    contents = _contents(ids, columns[CONTENT]) if CONTENT in columns else repeat(None)
    events = list(map(Event.known, ids, attributes, times, numbers, contents))
    if attaches and builder.complete:
        attach(builder.columns(len(events)), events)
    return events


class EventNumbers(NamedTuple):
    """The ids of events, and some of their attributes as rows of numbers, NaN for no number."""

    ids: pa.Array
    rows: Float64s


def quick_numbers(
    batch: pa.RecordBatch, names: Sequence[str], *, validated: bool = False
) -> EventNumbers | None:
    """Return the events of a batch without an object for each.

    None, or an error, if a cell may be invalid, or if an attribute is more than a single value.
    Text of a batch that is `validated` is known to be UTF-8.
    """
    columns = {name: _decoded(batch.column(name)) for name in batch.schema.names}
    if not validated:
        _validate_texts(columns.values())
    ids, times = columns.pop("id"), columns.pop("published_at")
    if "" in columns or columns.keys() & {*EVENT_COLUMNS} or not _is(ids, _TEXTS):
        return None
    if ids.null_count or times.null_count or _valid_times(times) is None:
        return None
    if pc.min(pc.binary_length(ids)).as_py() == 0:
        return None
    place = {name: position for position, name in enumerate(names)}
    rows = np.full((batch.num_rows, len(names)), np.nan)
    for name, column in columns.items():
        if types.is_integer(column.type) or types.is_floating(column.type):
            # An integer that no float equals raises an error.
            values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            if np.count_nonzero(np.isfinite(values)) < len(column) - column.null_count:
                return None
            if name in place:
                rows[:, place[name]] = values
        elif not _is(column, (*_TEXTS, types.is_boolean)):
            return None
    return EventNumbers(ids.cast(pa.string()), rows)


def _validate_texts(columns: Iterable[pa.Array]) -> None:
    """Raise an error for text that is not UTF-8, which makes a record a bad one."""
    for column in columns:
        if _is(column, _TEXTS):
            column.validate(full=True)


def quick_columns(
    batch: pa.RecordBatch, build: Callable[[], Sequence[Event]]
) -> ColumnEvents | None:
    """Return the events of a batch by column; `build` returns them as objects.

    None, or an error, if a cell may be invalid, or has a value other than one text or number.
    """
    columns = {name: _decoded(batch.column(name)) for name in batch.schema.names}
    if "" in columns or CONTENT in columns:
        return None
    id_column, times = columns.pop("id"), columns.pop("published_at")
    numbers = _numbers(columns.pop("sequence", None), None, batch.num_rows)
    ids = _ids(id_column, None)
    us = None if times.null_count else _time_ticks(times)
    if ids is None or us is None or numbers is None:
        return None
    names, entries = dict[str, int](), list[TextEntries | NumberEntries]()
    reserved = {*columns, *EVENT_COLUMNS}
    for name, column in columns.items():
        if types.is_null(column.type):
            continue
        part = (
            _map_entries(column, names, reserved)
            if types.is_map(column.type)
            else _column_entries(name, column, names)
        )
        if part is None:
            return None
        entries.append(part)
    if _some_twice(entries, batch.num_rows, len(names)):
        return None
    sequence = [UNNUMBERED if number is None else number for number in numbers]
    return ColumnEvents(ids, us, np.array(sequence, np.int64), [*names], entries, build)


def _map_entries(
    column: pa.Array, names: dict[str, int], reserved: Container[str]
) -> TextEntries | NumberEntries | None:
    """Return the entries of maps, and number their names; None if one may be invalid."""
    maps = column.drop_null()
    whole = maps.take(pa.array(np.arange(len(maps))))  # drops the entries of other slices
    keys, items = whole.keys, whole.items
    if not _is(keys, _TEXTS) or keys.null_count or items.null_count:
        return None
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    event = np.repeat(rows, np.diff(whole.offsets.to_numpy()))
    keys.validate(full=True)
    distinct, codes = _coded(keys)
    if any(name == "" or name in reserved for name in distinct):
        return None
    numbers = np.array([names.setdefault(name, len(names)) for name in distinct], np.int32)
    return _entries(event, numbers[codes], items)


def _column_entries(
    name: str, column: pa.Array, names: dict[str, int]
) -> TextEntries | NumberEntries | None:
    """Return the entries of a column that is one attribute."""
    event = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    number = names.setdefault(name, len(names))
    values = column.drop_null() if column.null_count else column
    return _entries(event, np.full(len(event), number, np.int32), values)


def _entries(event: Int64s, name: Int32s, values: pa.Array) -> TextEntries | NumberEntries | None:
    if _is(values, _TEXTS):
        values.validate(full=True)  # text that is not UTF-8 is a bad record
        texts, codes = _coded(values)
        return TextEntries(event, name, codes, texts)
    if types.is_integer(values.type) or types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        return NumberEntries(event, name, numbers) if np.isfinite(numbers).all() else None
    return None


def _some_twice(entries: Sequence[TextEntries | NumberEntries], events: int, names: int) -> bool:
    """Return whether an event has an attribute twice."""
    parts = [part.event * names + part.name for part in entries]
    keys = np.concatenate([np.zeros(0, np.int64), *parts])
    if events * names > _MOST_CELLS * len(keys):
        return len(np.unique(keys)) < len(keys)
    seen = np.zeros(events * names, np.bool_)
    seen[keys] = True
    return int(np.count_nonzero(seen)) < len(keys)


def _contents(ids: list[str], column: pa.Array) -> Iterator[Content | None]:
    """Yield the content of each event; content that is invalid raises an error."""
    decode = content_decoder(column.type)
    for name, cell in zip(ids, column.to_pylist(), strict=True):
        yield None if cell is None else read_content(f"event {name}", decode(cell), InvalidEvent)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _converted(column: pa.Array, convert: Convert) -> list[Any] | None:
    """Return a function's result for each cell that is not null; None for other than plain cells.

    An error of the function is raised.
    """
    if not (_is(column, _PLAIN) or types.is_floating(column.type)):
        return None
    coded = column.dictionary_encode()
    values = [convert(value) for value in coded.dictionary.to_pylist()]
    codes: list[int] = coded.indices.drop_null().to_pylist()
    return [values[code] for code in codes]


def _ids(column: pa.Array, convert: Convert | None) -> list[str] | None:
    if column.null_count:
        return None
    if convert is not None and convert is not str:
        return _converted(column, lambda cell: validate.name("an id", convert(cell), InvalidEvent))
    if not _is(column, _TEXTS):
        return None
    shortest = pc.min(pc.binary_length(column)).as_py()
    return None if shortest == 0 else _plain_values(column)


def _publications(column: pa.Array, convert: Convert | None) -> list[PublicationTime] | None:
    """Return times of publication; None if some are missing or invalid."""
    if column.null_count:
        return None
    times = _times(column) if convert is None else None
    if times is not None:
        return [PublicationTime(us, us / SECOND_US) for us in times]
    return _converted(column, lambda cell: PublicationTime.read(convert(cell) if convert else cell))


def _times(column: pa.Array) -> list[int] | None:
    """Return times without nulls in microseconds; None if some are invalid."""
    ticks = _time_ticks(column)
    if ticks is None:
        return None
    times: list[int] = ticks.tolist()
    return times


def _time_ticks(column: pa.Array) -> Int64s | None:
    """Return times without nulls in microseconds, as an array; None if some are invalid."""
    times = _valid_times(column)
    if times is None:
        return None
    us, parts = TICK[times.type.unit]
    ticks = times.cast(pa.int64()).to_numpy()
    whole: Int64s = ticks if us == parts else ticks * us // parts
    return whole


def _valid_times(column: pa.Array) -> pa.Array | None:
    """Return times without nulls as timestamps; None if some are invalid."""
    times = column.cast(pa.timestamp("us")) if types.is_date(column.type) else column
    if not types.is_timestamp(times.type):
        return None
    us, parts = TICK[times.type.unit]
    for end in pc.min_max(times.cast(pa.int64())).as_py().values():
        if end is not None and not EARLIEST <= end * us // parts // SECOND_US <= LATEST:
            return None
    return times


def _numbers(
    column: pa.Array | None, convert: Convert | None, rows: int
) -> list[int | None] | None:
    if column is None or column.null_count == rows:
        return [None] * rows
    if convert is not None:
        values = None if column.null_count else _converted(column, convert)
        if values is None or not all(type(value) is int for value in values):
            return None
        column = pa.array(values, pa.int64())
    if not types.is_integer(column.type):
        return None
    ends = pc.min_max(column).as_py()
    if (ends["min"] or 0) < 0 or (ends["max"] or 0) > LAST_SEQUENCE:
        return None
    numbers: list[int | None] = column.to_pylist()
    return numbers


def _fill(
    attributes: list[dict[str, Any]],
    name: str,
    column: pa.Array,
    convert: Convert | None,
    builder: ColumnsBuilder,
) -> bool:
    """Add the values of a column to the attributes; return whether all of them are valid."""
    if types.is_null(column.type):
        return True
    if convert is not None:
        builder.complete = False
        return _fill_converted(attributes, name, column, convert)
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    names = np.repeat(builder.names([name]), len(rows))
    values = _noted_values(
        column.drop_null() if column.null_count else column, rows, names, builder
    )
    if values is None:
        return False
    if not column.null_count:
        for attribute, value in zip(attributes, values, strict=True):
            attribute[name] = value
        return True
    for row, value in zip(rows.tolist(), values, strict=True):
        attributes[row][name] = value
    return True


def _fill_converted(
    attributes: list[dict[str, Any]], name: str, column: pa.Array, convert: Convert
) -> bool:
    """Add a function's results for the values of a column; None is a missing value."""

    def read(cell: Any) -> Any:
        value = convert(cell)
        return None if value is None else attribute_value(value)

    values = _converted(column, read)
    if values is None:
        return False
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).tolist()
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            attributes[row][name] = value
    return True


def _unfold(
    attributes: list[dict[str, Any]],
    column: pa.Array,
    reserved: Container[str],
    builder: ColumnsBuilder,
) -> bool:
    """Add the entries of maps to the attributes; return whether all of them are valid."""
    maps = column.drop_null()
    whole = maps.take(pa.array(np.arange(len(maps))))  # drops the entries of other slices
    keys, items = whole.keys, whole.items
    if not _is(keys, _TEXTS) or items.null_count:
        return False
    distinct, codes = _coded(keys)
    if any(name == "" or name in reserved for name in distinct):
        return False
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    sizes = np.diff(whole.offsets.to_numpy())
    entry_rows = np.repeat(rows, sizes)
    values = _noted_values(items, entry_rows, builder.names(distinct)[codes], builder)
    if values is None:
        return False
    entries = zip(map(distinct.__getitem__, codes.tolist()), values, strict=True)
    for row, size in zip(rows.tolist(), sizes.tolist(), strict=True):
        attribute = attributes[row]
        together = len(attribute) + size
        attribute.update(islice(entries, size))
        if len(attribute) != together:  # a name occurs twice
            return False
    return True


def _noted_values(
    column: pa.Array, rows: Int64s, names: Int32s, builder: ColumnsBuilder
) -> list[Any] | None:
    """Return the values of a column, and note those that are texts or numbers as columns."""
    if _is(column, _TEXTS):
        texts, codes = _coded(column)
        builder.add_texts(rows, names, texts, codes)
        return list(map(texts.__getitem__, codes.tolist()))
    values = _values(column)
    if values is None:
        return None
    if types.is_integer(column.type) or types.is_floating(column.type):
        builder.add_numbers(rows, names, np.array(values, np.float64))
    else:
        builder.complete = False
    return values


def _coded(column: pa.Array) -> tuple[list[str], Int32s]:
    """Return the different texts of a column, and the place of each cell among them."""
    coded = column.dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy()


def _values(column: pa.Array) -> list[Any] | None:
    """Return the values of a column without nulls; None if some may be invalid."""
    if _is(column, _PLAIN):
        return _plain_values(column)
    if types.is_floating(column.type):
        floats = column.to_numpy()
        return floats.tolist() if np.isfinite(floats).all() else None
    if types.is_decimal(column.type):
        return list(map(float, column.to_pylist()))  # Arrow's cast does not always round correctly
    if types.is_timestamp(column.type) or types.is_date(column.type):
        times = _times(column)
        return None if times is None else list(map(moment, times))
    if _is(column, LIST_TYPES[:2]):
        elements = column.flatten()
        plain = _is(elements, _PLAIN) and not elements.null_count
        return list(map(tuple, column.to_pylist())) if plain else None
    return None


def _plain_values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _is(column: pa.Array, tests: Any) -> bool:
    return any(test(column.type) for test in tests)
