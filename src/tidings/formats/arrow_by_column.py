"""A fast path that reads the events of a whole Arrow batch, column by column.

It returns the same events as `arrow_by_row`. If a cell may be invalid or needs a conversion, it
returns None, and the batch is read row by row.
"""

from collections.abc import Container, Iterator
from itertools import pairwise, repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidings.errors import InvalidEvent
from tidings.formats.arrow_by_row import EVENT_COLUMNS, LIST_TYPES, TICK, content_decoder
from tidings.model.content import Content, read_content
from tidings.model.limits import CONTENT
from tidings.model.records import LAST_SEQUENCE, Event
from tidings.model.values import EARLIEST, LATEST, SECOND_US, moment

_TEXTS: Final = (types.is_string, types.is_large_string)
_PLAIN: Final = (*_TEXTS, types.is_integer, types.is_boolean)
"""Types whose values are all valid and need no conversion."""


def quick_events(batch: pa.RecordBatch) -> list[Event] | None:
    """Return the events of a batch with a checked schema; None if it must be read by row."""
    columns = {name: _decoded(batch.column(name)) for name in batch.schema.names}
    ids, times = _ids(columns["id"]), _times(columns["published_at"])
    numbers = _numbers(columns.get("sequence"), batch.num_rows)
    if ids is None or times is None or numbers is None or "" in columns:
        return None
    attributes: list[dict[str, Any]] = [{} for _ in ids]
    reserved = {*columns, *EVENT_COLUMNS}
    for name, column in columns.items():
        if name in EVENT_COLUMNS:
            continue
        unfolds = types.is_map(column.type)
        if not (
            _unfold(attributes, column, reserved) if unfolds else _fill(attributes, name, column)
        ):
            return None
    contents = _contents(ids, columns[CONTENT]) if CONTENT in columns else repeat(None)
    return list(map(Event.known, ids, attributes, times, numbers, contents))


def _contents(ids: list[str], column: pa.Array) -> Iterator[Content | None]:
    """Yield the content of each event; content that is invalid raises an error."""
    decode = content_decoder(column.type)
    for name, cell in zip(ids, column.to_pylist(), strict=True):
        yield None if cell is None else read_content(f"event {name}", decode(cell), InvalidEvent)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _ids(column: pa.Array) -> list[str] | None:
    if not _is(column, _TEXTS) or column.null_count:
        return None
    shortest = pc.min(pc.binary_length(column)).as_py()
    return None if shortest == 0 else _plain_values(column)


def _times(column: pa.Array) -> list[int] | None:
    """Return times in microseconds; None if some are missing or invalid."""
    if not types.is_timestamp(column.type) or column.null_count:
        return None
    us, parts = TICK[column.type.unit]
    ticks = column.cast(pa.int64())
    for end in pc.min_max(ticks).as_py().values():
        if end is not None and not EARLIEST <= end * us // parts // SECOND_US <= LATEST:
            return None
    times: list[int] = (ticks.to_numpy() * us // parts).tolist()
    return times


def _numbers(column: pa.Array | None, rows: int) -> list[int | None] | None:
    if column is None or types.is_null(column.type):
        return [None] * rows
    if not types.is_integer(column.type):
        return None
    ends = pc.min_max(column).as_py()
    if (ends["min"] or 0) < 0 or (ends["max"] or 0) > LAST_SEQUENCE:
        return None
    numbers: list[int | None] = column.to_pylist()
    return numbers


def _fill(attributes: list[dict[str, Any]], name: str, column: pa.Array) -> bool:
    """Add the values of a column to the attributes; return whether all of them are valid."""
    if types.is_null(column.type):
        return True
    values = _values(column.drop_null() if column.null_count else column)
    if values is None:
        return False
    if not column.null_count:
        for attribute, value in zip(attributes, values, strict=True):
            attribute[name] = value
        return True
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).tolist()
    for row, value in zip(rows, values, strict=True):
        attributes[row][name] = value
    return True


def _unfold(attributes: list[dict[str, Any]], column: pa.Array, reserved: Container[str]) -> bool:
    """Add the entries of maps to the attributes; return whether all of them are valid."""
    maps = column.drop_null()
    whole = maps.take(pa.array(np.arange(len(maps))))  # drops the entries of other slices
    keys, items = whole.keys, whole.items
    if not _is(keys, _TEXTS) or items.null_count:
        return False
    names, values = _plain_values(keys), _values(items)
    if values is None or any(name == "" or name in reserved for name in set(names)):
        return False
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).tolist()
    for row, (first, last) in zip(rows, pairwise(whole.offsets.to_pylist()), strict=True):
        attribute = attributes[row]
        size = len(attribute) + last - first
        attribute.update(zip(names[first:last], values[first:last], strict=True))
        if len(attribute) != size:  # a name occurs twice
            return False
    return True


def _values(column: pa.Array) -> list[Any] | None:
    """Return the values of a column without nulls; None if some may be invalid."""
    if _is(column, _PLAIN):
        return _plain_values(column)
    if types.is_floating(column.type):
        floats = column.to_numpy()
        return floats.tolist() if np.isfinite(floats).all() else None
    if types.is_decimal(column.type):
        return list(map(float, column.to_pylist()))  # Arrow's cast does not always round correctly
    if types.is_timestamp(column.type):
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
