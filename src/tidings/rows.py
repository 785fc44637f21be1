"""Arrow tables row by row: cells as Python values, and the refused rows apart from the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
from pyarrow import types

from tidings.errors import InvalidForm, InvalidValue
from tidings.values import SECOND_US, moment, printable

R = TypeVar("R")
T = TypeVar("T")
Decode = Callable[[Any], object]
Cell = Callable[[str, Any], object]
Quick = Callable[[pa.RecordBatch], list[T] | None]

EVENT_COLUMNS: Final = ("id", "published_at", "sequence")
_BATCH_ROWS: Final = 4096
_DAY: Final = (86_400 * SECOND_US, 1)
TICK: Final = {"s": (SECOND_US, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_TEXT_TYPES: Final = (types.is_string, types.is_large_string, types.is_string_view)
_NUMBER_TYPES: Final = (types.is_integer, types.is_floating, types.is_decimal)
_PLAIN_TYPES: Final = (*_TEXT_TYPES, *_NUMBER_TYPES, types.is_boolean, types.is_null)
LIST_TYPES: Final = (
    types.is_list,
    types.is_large_list,
    types.is_fixed_size_list,
    types.is_list_view,
    types.is_large_list_view,
)


@dataclass(frozen=True)
class BadRecord:
    """A record that is refused, for the dead letters; the others go on.

    `position` counts from 1: the row of a table, or the line of a JSON Lines file.
    """

    record: Mapping[str, Any] = field(hash=False)
    reason: str
    position: int

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form; what JSON cannot hold is printed."""
        record = printable(self.record)
        return {"record": record, "reason": self.reason, "position": self.position}


@dataclass(frozen=True)
class DeadLetter:
    """Something refused: as it was given, and why."""

    record: Any
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"record": printable(self.record), "reason": self.reason}


def attempt(
    read: Callable[[R], T], raw: R, position: int, show: Callable[[R], Mapping[str, Any]]
) -> T | BadRecord:
    """Give what `read` makes of `raw`, or a bad record that shows it with the reason."""
    try:
        return read(raw)
    except (ValueError, OverflowError, RecursionError) as error:
        return BadRecord(show(raw), str(error), position)


class Column(NamedTuple):
    """How a column is read: cast to `kind`, each value decoded; a map unfolds into its keys."""

    name: str
    kind: pa.DataType
    decode: Decode
    unfolds: bool = False


def read_rows(
    table: pa.Table | pa.RecordBatch,
    columns: Sequence[Column],
    build: Callable[[dict[str, Any]], T],
    quick: Quick[T] | None = None,
) -> Iterator[T | BadRecord]:
    """Build an object of each row, a dict without its null cells; refused rows come out as bad.

    `quick` may build all rows of a batch at once, where none has to be looked at.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    taken = frozenset(EVENT_COLUMNS).union(c.name for c in columns if not c.unfolds)
    position = 0
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        made = quick(batch) if quick else None
        if made is not None:
            position += batch.num_rows
            yield from made
            continue
        arrays = zip(columns, batch.columns, strict=True)
        cells = [array.cast(column.kind).to_pylist() for column, array in arrays]
        for row in zip(*cells, strict=True):
            position += 1
            yield attempt(
                lambda row: build(_unfold(columns, row, taken)),
                row,
                position,
                partial(_show, columns),
            )


def _unfold(columns: Iterable[Column], row: Iterable[Any], taken: frozenset[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column, cell in zip(columns, row, strict=True):
        for name, value in (cell or ()) if column.unfolds else ((column.name, cell),):
            if value is None:
                continue
            if column.unfolds and (name in taken or name in found):
                raise InvalidForm(
                    f"column {column.name}: the key {name} is also another column or key"
                )
            found[name] = column.decode(value)
    return found


def _show(columns: Iterable[Column], row: Iterable[Any]) -> dict[str, Any]:
    """Give a row for the dead letters, with times as ticks where they are no times."""
    shown = {}
    for column, cell in zip(columns, row, strict=True):
        if cell is not None:
            try:
                shown[column.name] = dict(cell) if column.unfolds else column.decode(cell)
            except ValueError:
                shown[column.name] = cell
    return shown


def check_columns(schema: pa.Schema, required: Iterable[str], text: Iterable[str]) -> None:
    """Check that no column is there twice, the required ones are, and those of text hold text."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InvalidForm(f"there are several columns {name}; rename them")
    for name in required:
        if name not in schema.names:
            raise InvalidForm(f"there is no column {name} among {', '.join(schema.names)}")
    for name in text:
        if name in schema.names and not _is_text(schema.field(name).type):
            kind = schema.field(name).type
            raise InvalidForm(f"column {name} holds {kind}; cast it to string")


def check_times(schema: pa.Schema) -> None:
    """Check that `published_at` can hold times, and `sequence` numbers."""
    kind = schema.field("published_at").type
    if types.is_nested(kind) or types.is_boolean(kind):
        raise InvalidForm(f"column published_at holds {kind}, and no times")
    if "sequence" in schema.names:
        kind = schema.field("sequence").type
        if not any(test(kind) for test in (types.is_integer, types.is_floating, types.is_null)):
            raise InvalidForm(f"column sequence holds {kind}; cast it to a whole number")


def check_policies(schema: pa.Schema) -> None:
    """Check that policies are text or structs."""
    if "policy" in schema.names and types.is_map(schema.field("policy").type):
        kind = schema.field("policy").type
        raise InvalidForm(f"column policy holds {kind}; a policy is JSON text or a struct")


def _is_text(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return types.is_null(kind) or any(test(kind) for test in _TEXT_TYPES)


def attribute_columns(schema: pa.Schema) -> list[Column]:
    """Tell how to read columns of attributes; one that no attribute can come from is refused."""
    return [_column(column.name, column.type) for column in schema]


def _column(name: str, kind: pa.DataType) -> Column:
    if not types.is_map(kind):
        return Column(name, *_values(name, kind))
    if not _is_text(kind.key_type):
        raise InvalidForm(f"column {name} is a map with keys of {kind.key_type}; keys are strings")
    item, decode = _values(name, kind.item_type)
    return Column(name, pa.map_(pa.string(), item), decode, unfolds=True)


def _values(name: str, kind: pa.DataType) -> tuple[pa.DataType, Decode]:
    if not any(test(kind) for test in LIST_TYPES):
        return _scalars(name, kind)
    element, decode = _scalars(name, kind.value_type)
    return pa.list_(element), partial(_decode_list, decode)


def _decode_list(decode: Decode, cells: Iterable[Any]) -> list[object]:
    return [cell if cell is None else decode(cell) for cell in cells]


def _scalars(name: str, kind: pa.DataType) -> tuple[pa.DataType, Decode]:
    """Give the type to cast to and the decoder; times go as ticks, so that no cell can fail."""
    if types.is_dictionary(kind):
        return _scalars(name, kind.value_type)
    if types.is_timestamp(kind):
        return pa.int64(), partial(_time, TICK[kind.unit])
    if types.is_date32(kind):
        return pa.int32(), partial(_time, _DAY)
    if types.is_date64(kind):
        return pa.int64(), partial(_time, TICK["ms"])
    if any(test(kind) for test in _PLAIN_TYPES):
        return kind, _same
    raise InvalidForm(
        f"column {name} holds {kind}; an attribute is a number, string, boolean or time, a list of "
        "these, or a map of names to these"
    )


def _time(tick: tuple[int, int], ticks: int) -> object:
    us, parts = tick
    try:
        return moment(ticks * us // parts)
    except OverflowError:
        raise InvalidValue(f"the time {ticks} is outside the years 1 to 9999") from None


def _same(value: object) -> object:
    return value


def as_read(_column: str, value: object) -> object:
    """Leave a cell as it was read."""
    return value
