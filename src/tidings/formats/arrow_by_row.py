"""Arrow tables read row by row: each row becomes an object or a bad record."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidings.errors import InvalidForm, InvalidValue, clipped, prefix_errors
from tidings.formats.json_text import read_json
from tidings.model.dead_letter import BadRecord, Failure, attempt, try_call
from tidings.model.limits import CONTENT, TRUSTED, Limits
from tidings.model.values import SECOND_US, moment

R = TypeVar("R")
T = TypeVar("T")
Decode = Callable[[Any], object]
Convert = Callable[[Any], object]
Quick = Callable[[pa.RecordBatch], list[T] | None]

EVENT_COLUMNS: Final = ("id", "published_at", "sequence", "content")
BATCH_ROWS: Final = 4096
_PIECE_ROWS: Final = 256
"""Rows that are read one by one if one of them is not valid."""
BATCH_BYTES: Final = 64_000_000
"""Bytes of strings that are decoded at once; dictionaries and views share theirs."""
_BATCH_VALUES: Final = 1_000_000
"""Values of lists and maps that are decoded at once; list views may share theirs."""
_DAY: Final = (86_400 * SECOND_US, 1)
TICK: Final = {"s": (SECOND_US, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_TEXT_TYPES: Final = (types.is_string, types.is_large_string, types.is_string_view)
_NUMBER_TYPES: Final = (types.is_integer, types.is_floating, types.is_decimal)
_PLAIN_TYPES: Final = (*_TEXT_TYPES, *_NUMBER_TYPES, types.is_boolean, types.is_null)
_SCALAR_BYTES: Final = 16
_VIEW_BYTES: Final = 16
"""Bytes of a string view, and at most of the offset and size of a list."""
_VIEW_TYPES: Final = (types.is_list_view, types.is_large_list_view)
LIST_TYPES: Final = (
    types.is_list,
    types.is_large_list,
    types.is_fixed_size_list,
    *_VIEW_TYPES,
)


class Cells(NamedTuple):
    """The functions that read cells whose type a file does not tell; other cells stay as they are.

    A column may have a function for all its values, or one for its text. Text of columns without
    one is read by `other_texts`.
    """

    converters: Mapping[str, Convert] = {}
    texts: Mapping[str, Convert] = {}
    other_texts: Convert | None = None

    def converter(self, column: str, *, text: bool) -> Convert | None:
        """Return the function for values of a column, or for its text; None if there is none."""
        if column in self.converters:
            return self.converters[column]
        return self.texts.get(column, self.other_texts) if text else None

    def read(self, column: str, value: Any) -> object:
        """Return the value of a cell that is not missing."""
        convert = self.converter(column, text=isinstance(value, str))
        return value if convert is None else convert(value)


AS_READ: Final = Cells()
"""Cells that stay as they are."""


class Column(NamedTuple):
    """A column: the type to cast to, and the decoder of its values; a map unfolds into its keys."""

    name: str
    kind: pa.DataType
    decode: Decode
    unfolds: bool = False


class Reading(NamedTuple):
    """The way in which the rows of a table become objects.

    `build` makes one object from a row, a dict without its null cells. `quick` makes those of a
    whole batch, or returns None if rows have to be read one by one. The strings of the column
    `apart` have a limit of their own.
    """

    columns: Sequence[Column]
    build: Callable[[dict[str, Any]], Any]
    quick: Quick[Any] | None = None
    limits: Limits = TRUSTED
    apart: str = CONTENT


def read_rows(table: pa.Table | pa.RecordBatch, how: Reading) -> Iterator[Any]:
    """Yield an object for each row, or a bad record for a row that is refused."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    position = 0
    for chunk in table.to_batches(max_chunksize=BATCH_ROWS):
        for batch in _split(chunk):
            for piece, objects in _pieces(batch, how):
                yield from _read_by_row(piece, how, position) if objects is None else objects
                position += piece.num_rows


def _pieces(
    batch: pa.RecordBatch, how: Reading
) -> Iterator[tuple[pa.RecordBatch, list[Any] | None]]:
    """Yield a batch with its objects, or, if a row may be invalid, small pieces with theirs."""
    objects = _read_batch(batch, how)
    if objects is not None or how.quick is None or batch.num_rows <= _PIECE_ROWS:
        yield batch, objects
        return
    for start in range(0, batch.num_rows, _PIECE_ROWS):
        piece = batch.slice(start, _PIECE_ROWS)
        yield piece, _read_batch(piece, how)


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves that each decode to at most BATCH_BYTES, or to one row."""
    if batch.num_rows <= 1 or decoded_bytes(batch) <= BATCH_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _split(batch.slice(0, half))
    yield from _split(batch.slice(half))


def decoded_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes that the values of a batch take once each is decoded."""
    return sum(map(_decoded_bytes, batch.columns))


def _decoded_bytes(array: pa.Array) -> int:
    # `nbytes` of a slice counts all of a dictionary or view buffer, so these are counted by value.
    kind = array.type
    if not _shares_values(kind):
        return int(array.nbytes)
    if types.is_dictionary(kind):
        codes = array.indices.drop_null()
        values = int(pc.sum(_lengths(array.dictionary).take(codes)).as_py() or 0)
        return int(array.indices.nbytes) + values
    if types.is_string_view(kind):
        return _VIEW_BYTES * len(array) + int(pc.sum(_lengths(array)).as_py() or 0)
    if any(test(kind) for test in _VIEW_TYPES):
        longest = int(pc.max(_lengths(array.values)).as_py() or 0)
        return _VIEW_BYTES * len(array) + _values_in(array) * longest
    if types.is_struct(kind):
        return sum(map(_decoded_bytes, array.flatten()))
    if types.is_map(kind):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        parts = (array.keys, array.items)
        return sum(_decoded_bytes(part.slice(start, end - start)) for part in parts)
    return _VIEW_BYTES * len(array) + _decoded_bytes(array.flatten())


def _shares_values(kind: pa.DataType) -> bool:
    """Return whether several values of an array may be the same bytes."""
    if types.is_dictionary(kind) or types.is_string_view(kind):
        return True
    if any(test(kind) for test in _VIEW_TYPES):
        return True
    fields = range(kind.num_fields) if types.is_nested(kind) else ()
    return any(_shares_values(kind.field(number).type) for number in fields)


def _lengths(array: pa.Array) -> pa.Array:
    """Return the bytes of each value of an array without nested values."""
    if types.is_dictionary(array.type):
        return _lengths(array.dictionary).take(array.indices)
    if types.is_string_view(array.type):
        # A view is four integers, of which the first is its length.
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
        return pa.array(views[array.offset : array.offset + len(array), 0], pa.int64())
    if types.is_string(array.type) or types.is_large_string(array.type):
        return pc.binary_length(array).cast(pa.int64())
    return pa.repeat(pa.scalar(_SCALAR_BYTES, pa.int64()), len(array))


def _read_batch(batch: pa.RecordBatch, how: Reading) -> list[Any] | None:
    """Return the objects of all rows; None if rows have to be read one by one."""
    if how.quick is None or not is_within(batch, how.limits):
        return None
    objects = try_call(how.quick, batch)
    # After a failure, reading by row finds the rows that cannot be read.
    return None if isinstance(objects, Failure) else objects


def is_within(batch: pa.RecordBatch, limits: Limits) -> bool:
    """Return whether every row of a batch is within the limits, judging by the batch alone."""
    if batch.nbytes > min(limits.record_bytes, limits.string_bytes):
        return False
    if CONTENT in batch.schema.names and limits != TRUSTED:  # its depth is only known once read
        return False
    if batch.num_columns > limits.attributes:
        return False
    return _expanded(batch) <= min(limits.list_values, limits.attributes)


def _expanded(batch: pa.RecordBatch) -> int:
    """Return the number of values in lists and maps; shared values count each time."""
    return sum(map(_values_in, batch.columns))


def _values_in(column: pa.Array) -> int:
    if types.is_map(column.type):
        offsets = column.offsets
        return int(offsets[-1].as_py() - offsets[0].as_py()) if len(offsets) else 0
    if not any(test(column.type) for test in LIST_TYPES):
        return 0
    return int(pc.sum(pc.list_value_length(column)).as_py() or 0)


def _read_by_row(batch: pa.RecordBatch, how: Reading, position: int) -> Iterator[Any]:
    reserved = frozenset(EVENT_COLUMNS).union(c.name for c in how.columns if not c.unfolds)

    def build(row: Iterable[Any]) -> Any:
        fields = _unfold(how.columns, row, reserved)
        how.limits.check_record(fields, "the row", apart=how.apart)
        how.limits.check("attributes", len(fields), "the row: its attributes", InvalidForm)
        return how.build(fields)

    for row_number, row in enumerate(_rows_of(batch, how), start=position + 1):
        if isinstance(row, BadRecord):
            yield BadRecord(row.record, row.reason, row_number)
        else:
            yield attempt(build, row, row_number, partial(_show, how.columns))


def _rows_of(batch: pa.RecordBatch, how: Reading) -> Iterator[tuple[Any, ...] | BadRecord]:
    """Yield the decoded cells of each row; a row that cannot be decoded is a bad record."""
    if _expanded(batch) <= _BATCH_VALUES and decoded_bytes(batch) <= BATCH_BYTES:
        cells = try_call(_cells, how, batch)
        if not isinstance(cells, Failure):
            yield from zip(*cells, strict=True)
            return
    for row in range(batch.num_rows):
        yield attempt(partial(_row, how), batch.slice(row, 1), 0, partial(_printed, how))


def _row(how: Reading, batch: pa.RecordBatch) -> tuple[Any, ...]:
    how.limits.check("list_values", _expanded(batch), "the row: the size of a list", InvalidForm)
    how.limits.check(
        "record_bytes", decoded_bytes(batch), "the row: its size in bytes", InvalidForm
    )
    return tuple(cells[0] for cells in _cells(how, batch))


def _cells(how: Reading, batch: pa.RecordBatch) -> list[list[Any]]:
    """Return the cells of each column."""
    return [_decoded(*pair) for pair in zip(how.columns, batch.columns, strict=True)]


def _decoded(column: Column, array: pa.Array) -> list[Any]:
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if any(test(array.type) for test in _VIEW_TYPES):
        return _decode_views(column, array)
    if array.type != column.kind:  # Arrow aborts when it casts slices of structs of nulls
        array = array.cast(column.kind)
    cells: list[Any] = array.to_pylist()
    return cells


def _decode_views(column: Column, array: pa.Array) -> list[Any]:
    """Decode list views one by one, since Arrow returns wrong values when it casts them."""
    spans = zip(array.is_valid(), array.offsets, array.sizes, strict=True)
    element, values = column.kind.value_type, array.values
    return [
        values.slice(start.as_py(), size.as_py()).cast(element).to_pylist() if present else None
        for present, start, size in ((bool(valid.as_py()), *span) for valid, *span in spans)
    ]


def _printed(how: Reading, batch: pa.RecordBatch) -> dict[str, Any]:
    """Return a row with cells that cannot be decoded, for a bad record."""
    form = {}
    for column, array in zip(how.columns, batch.columns, strict=True):
        cell = try_call(_cell, column, array)
        if isinstance(cell, Failure):
            form[column.name] = _raw(array)
        elif cell is not None:
            form[column.name] = cell
    return form


def _cell(column: Column, array: pa.Array) -> Any:
    if _values_in(array) > _BATCH_VALUES or _decoded_bytes(array) > BATCH_BYTES:
        raise InvalidForm("the cell is too large to be shown")
    return _decoded(column, array)[0]


def _raw(array: pa.Array) -> str:
    """Return a cell as text, with replacement characters for invalid UTF-8."""
    if not any(test(array.type) for test in _TEXT_TYPES):
        return f"a cell of {array.type} that cannot be read"
    body: bytes = array.cast(pa.large_binary())[0].as_py()
    return clipped(body.decode(errors="replace"))


def _unfold(
    columns: Iterable[Column], row: Iterable[Any], reserved: frozenset[str]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for column, cell in zip(columns, row, strict=True):
        for name, value in (cell or ()) if column.unfolds else ((column.name, cell),):
            if value is None:
                continue
            if column.unfolds and (name in reserved or name in fields):
                raise InvalidForm(
                    f"column {column.name}: the key {name} is also another column or key"
                )
            fields[name] = column.decode(value)
    return fields


def _show(columns: Iterable[Column], row: Iterable[Any]) -> dict[str, Any]:
    """Return a row for a bad record; invalid times stay ticks."""
    form = {}
    for column, cell in zip(columns, row, strict=True):
        if cell is not None:
            try:
                form[column.name] = dict(cell) if column.unfolds else column.decode(cell)
            except ValueError:
                form[column.name] = cell
    return form


def check_columns(schema: pa.Schema, required: Iterable[str], text: Iterable[str]) -> None:
    """Check that column names are unique, required columns exist, and text columns hold text."""
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise InvalidForm(f"there are several columns {name}; rename them")
    for name in required:
        if name not in schema.names:
            raise InvalidForm(f"there is no column {name} among {', '.join(schema.names)}")
    for name in text:
        if name in schema.names and not _is_text(schema.field(name).type):
            kind = schema.field(name).type
            raise InvalidForm(f"column {name} holds {kind}; cast it to string")


def with_text_ids(table: Any, names: Iterable[str]) -> Any:
    """Return a table whose columns of whole numbers among `names` are text."""
    for name in names:
        place = table.schema.get_field_index(name)
        if place >= 0 and any(test(table.schema.field(place).type) for test in _NUMBER_TYPES):
            ids = try_call(_whole_texts, table.column(place))
            table = table if isinstance(ids, Failure) else table.set_column(place, name, ids)
    return table


def _whole_texts(column: Any) -> Any:
    """Return numbers as text; fail if some are not whole."""
    kind = pa.decimal128(38, 0) if types.is_decimal(column.type) else pa.int64()
    return column.cast(kind).cast(pa.string())


def check_times(schema: pa.Schema) -> None:
    """Check that `published_at` can hold times, and `sequence` numbers."""
    kind = schema.field("published_at").type
    if types.is_nested(kind) or types.is_boolean(kind):
        raise InvalidForm(f"column published_at holds {kind}, not times")
    if "sequence" in schema.names:
        kind = schema.field("sequence").type
        if not (types.is_null(kind) or any(test(kind) for test in _NUMBER_TYPES)):
            raise InvalidForm(f"column sequence holds {kind}; cast it to a whole number")


def check_policies(schema: pa.Schema) -> None:
    """Check that policies are text or structs."""
    if "policy" in schema.names and types.is_map(schema.field("policy").type):
        kind = schema.field("policy").type
        raise InvalidForm(f"column policy holds {kind}; a policy is JSON text or a struct")


def check_nested(schema: pa.Schema) -> None:
    """Check that columns hold plain values, times, lists and structs.

    Other types are refused before a cell is decoded: Arrow aborts the process for some of them,
    such as views of views.
    """
    for column in schema:
        if not _is_form(column.type):
            raise InvalidForm(
                f"column {column.name} holds {column.type}; a form is made of text, numbers, "
                "booleans, times, lists and structs"
            )


def _is_form(kind: pa.DataType, *, maps: bool = False) -> bool:
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_form(kind.value_type, maps=maps)
    if types.is_struct(kind):
        return all(_is_form(field.type, maps=maps) for field in kind)
    if types.is_map(kind):
        return maps and _is_text(kind.key_type) and _is_form(kind.item_type, maps=maps)
    timed = types.is_timestamp(kind) or types.is_date(kind)
    return timed or any(test(kind) for test in _PLAIN_TYPES)


def _is_text(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return types.is_null(kind) or any(test(kind) for test in _TEXT_TYPES)


def event_columns(schema: pa.Schema) -> list[Column]:
    """Return the columns of events; refuse types that no attribute, or no content, can have."""
    return [
        Column(CONTENT, column.type, content_decoder(column.type))
        if column.name == CONTENT
        else _column(column.name, column.type)
        for column in schema
    ]


def attribute_columns(schema: pa.Schema) -> list[Column]:
    """Return columns of attributes only; refuse types that no attribute can have."""
    return [_column(column.name, column.type) for column in schema]


def attribute_places(schema: pa.Schema) -> list[int]:
    """Return the places of the columns that attributes can hold."""
    columns = (partial(attribute_columns, pa.schema([column])) for column in schema)
    return [at for at, read in enumerate(columns) if not isinstance(try_call(read), Failure)]


def content_decoder(kind: pa.DataType) -> Decode:
    """Return the decoder of a column of content: JSON text, structs or maps.

    Null fields of structs and maps are left out.
    """
    if _is_text(kind):
        return _content_of_text
    if not (types.is_struct(kind) or types.is_map(kind)) or not _is_form(kind, maps=True):
        raise InvalidForm(
            f"column {CONTENT} holds {kind}; content is a JSON object: text, a struct or a map; an "
            "attribute needs another name"
        )
    return _form_decoder(kind)


def _content_of_text(text: str) -> object:
    with prefix_errors(f"column {CONTENT} holds no JSON (an attribute needs another name): "):
        return read_json(text)


def _form_decoder(kind: pa.DataType) -> Decode:
    """Return the decoder of nested values of plain types."""
    if types.is_struct(kind):
        fields = {field.name: _form_decoder(field.type) for field in kind}
        return lambda cells: {
            name: decode(cells[name]) for name, decode in fields.items() if cells[name] is not None
        }
    if types.is_map(kind):
        item = _form_decoder(kind.item_type)
        return lambda cells: {name: item(cell) for name, cell in cells if cell is not None}
    if any(test(kind) for test in LIST_TYPES):
        return partial(_decode_list, _form_decoder(kind.value_type))
    return _same


def _column(name: str, kind: pa.DataType) -> Column:
    if not types.is_map(kind):
        return Column(name, *_values(name, kind))
    if not _is_text(kind.key_type):
        raise InvalidForm(f"column {name} is a map with keys of {kind.key_type}; keys are strings")
    if any(test(kind.item_type) for test in _VIEW_TYPES):  # Arrow cannot decode them safely
        raise InvalidForm(f"column {name} is a map of views of lists; cast them to lists")
    item, decode = _values(name, kind.item_type)
    if types.is_null(item) or (types.is_nested(item) and types.is_null(item.value_type)):
        return Column(name, kind, decode, unfolds=True)
    return Column(name, pa.map_(pa.string(), item), decode, unfolds=True)


def _values(name: str, kind: pa.DataType) -> tuple[pa.DataType, Decode]:
    if not any(test(kind) for test in LIST_TYPES):
        return _scalars(name, kind)
    element, decode = _scalars(name, kind.value_type)
    if types.is_null(element):  # Arrow loses nulls when it casts or takes lists of nulls
        return kind, partial(_decode_list, decode)
    return pa.list_(element), partial(_decode_list, decode)


def _decode_list(decode: Decode, cells: Iterable[Any]) -> list[object]:
    return [decode(cell) for cell in cells if cell is not None]


def _scalars(name: str, kind: pa.DataType) -> tuple[pa.DataType, Decode]:
    """Return the type to cast to and the decoder; times are cast to ticks, which cannot fail."""
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
        "these, or a map of names to these; convert the column, or leave it out by [source] keep"
    )


def _time(tick: tuple[int, int], ticks: int) -> object:
    us, parts = tick
    try:
        return moment(ticks * us // parts)
    except OverflowError:
        raise InvalidValue(f"the time {ticks} is outside the years 1 to 9999") from None


def _same(value: object) -> object:
    return value
