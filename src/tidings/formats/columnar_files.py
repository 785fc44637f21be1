"""Parquet and Arrow IPC files, read batch by batch with a bound on their decoded size.

A few kilobytes can stand for gigabytes: a compressed page of zeros, a run of a billion list values,
or one long string that a dictionary repeats in every row. `pyarrow` allocates whatever a file
claims, so the claims of all pages and buffers are added up before any is decompressed, and the
strings of rows are counted before they are decoded. A file is refused above these bounds:

    pages  max(EXPANSION_FLOOR, PAGE_EXPANSION * its size) bytes
    rows   max(EXPANSION_FLOOR, ROW_EXPANSION * its size) bytes; a column of one constant string
           takes a few bytes a page, so honest rows expand further than honest pages

Both grow with the size, so files of gigabytes are read; only a batch of rows is in memory.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import dataset, feather, ipc, parquet, types

from tidings.errors import InvalidForm
from tidings.formats.arrow_by_row import BATCH_BYTES, BATCH_ROWS, decoded_bytes
from tidings.formats.arrow_validation import validate_fully
from tidings.formats.parquet_claims import ColumnChunk, RowGroup, check_delta_pages, read_row_groups
from tidings.model.limits import Limits

EXPANSION_FLOOR: Final = 256_000_000
PAGE_EXPANSION: Final = 100
ROW_EXPANSION: Final = 1_000
LIST_VALUES_FLOOR: Final = 32_000_000
"""List values of one row group, which may all belong to one row: 12 bytes each while read."""
_LIST_VALUES_PER_BYTE: Final = 8
_FEW_ROWS: Final = 10_000
_ROWS_PER_BYTE: Final = 100


@dataclass(frozen=True)
class ColumnarFile:
    """The schema of a file, its size in bytes, and its batches."""

    schema: pa.Schema
    size: int
    unchecked: Iterator[pa.RecordBatch]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield valid batches, until their rows expand above the bound."""
        total = 0
        for batch in map(validate_fully, self.unchecked):
            if batch.num_rows > max(_FEW_ROWS, batch.nbytes):
                raise InvalidForm(
                    f"the file claims {batch.num_rows:,} rows in {batch.nbytes:,} bytes"
                )
            total += decoded_bytes(batch)
            check_expansion("rows", total, self.size, ROW_EXPANSION)
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def check_expansion(what: str, claimed: int, size: int, ratio: int) -> None:
    """Refuse a file whose content expands above the bound for its size."""
    most = max(EXPANSION_FLOOR, ratio * size)
    if claimed > most:
        raise InvalidForm(
            f"its {what} would take {claimed:,} bytes or more, above the limit of {most:,} for a "
            f"file of {size:,} bytes"
        )


def open_parquet(path: Path, limits: Limits) -> ColumnarFile:
    """Open a Parquet file, or a directory of them, whose partitions are columns too."""
    if not path.is_dir():
        return _open_parquet_file(path, limits)
    folder = dataset.dataset(path, format="parquet", partitioning="hive")
    size = sum(Path(file).stat().st_size for file in folder.files)
    return ColumnarFile(folder.schema, size, _read_directory(folder, limits))


def _read_directory(folder: dataset.Dataset, limits: Limits) -> Iterator[pa.RecordBatch]:
    for fragment in folder.get_fragments():
        keys = dataset.get_partition_keys(fragment.partition_expression)
        for batch in _open_parquet_file(Path(fragment.path), limits).unchecked:
            yield _with_schema(batch, folder.schema, keys)


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema, keys: dict[str, Any]) -> pa.RecordBatch:
    """Return a batch with the columns of its directory; partition keys are constant columns."""
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            constant = pa.scalar(keys.get(field.name), field.type)
            columns.append(pa.repeat(constant, batch.num_rows))
            continue
        column = batch.column(field.name)
        # Long strings stay in their dictionary until they are counted.
        keeps_dictionary = "dictionary" in str(column.type)
        columns.append(column if keeps_dictionary else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema.names)


def _open_parquet_file(path: Path, limits: Limits) -> ColumnarFile:
    size = path.stat().st_size
    _check_rows(path, size)
    batch_rows, dictionaries, total = BATCH_ROWS, set[str](), 0
    with path.open("rb") as file:
        for group in read_row_groups(file, size):
            total += group.size
            check_expansion("pages", total, size, PAGE_EXPANSION)
            for chunk in group.chunks:
                _check_chunk(chunk, group, size)
                check_delta_pages(file, chunk)
                if _repeats_long_strings(chunk):
                    dictionaries.add(chunk.leaf.path)
            batch_rows = min(batch_rows, _batch_rows(group))
    opened = parquet.ParquetFile(path, read_dictionary=sorted(dictionaries))
    _check_fixed_lists(opened.schema_arrow, limits)
    batches = opened.iter_batches(batch_rows, use_threads=False)
    return ColumnarFile(opened.schema_arrow, size, batches)


def _check_rows(path: Path, size: int) -> None:
    """Refuse a Parquet file that claims more rows than its bytes can stand for."""
    about = parquet.read_metadata(path)
    # Columns are not inspected: pyarrow aborts over damaged ones (`column` is noexcept).
    groups = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    claimed = max(about.num_rows, sum(groups))
    if claimed > max(_FEW_ROWS, _ROWS_PER_BYTE * size) or min(about.num_rows, *groups, 0) < 0:
        raise InvalidForm(f"the file claims {claimed:,} rows in {size:,} bytes")


def _check_chunk(chunk: ColumnChunk, group: RowGroup, size: int) -> None:
    """Refuse more values than rows, too many list values, and prefixes in lists."""
    name, values = chunk.leaf.path, chunk.values
    if not chunk.leaf.repeated:
        if values > group.rows:
            raise InvalidForm(f"column {name} claims {values:,} values in {group.rows:,} rows")
        return
    most = max(LIST_VALUES_FLOOR, _LIST_VALUES_PER_BYTE * size)
    if values > most:
        raise InvalidForm(
            f"column {name} claims {values:,} list values in one row group, above the limit of "
            f"{most:,} for a file of {size:,} bytes; write smaller row groups"
        )
    if chunk.shares_prefixes:
        raise InvalidForm(
            f"column {name} has lists in the encoding DELTA_BYTE_ARRAY, whose size is not known "
            "before they are decoded; write them in another encoding"
        )


def _repeats_long_strings(chunk: ColumnChunk) -> bool:
    """Return whether a batch could repeat the strings of a dictionary until they fill the memory.

    The column is then read as codes and a dictionary, so that its rows can be counted first.
    """
    repeats = chunk.values if chunk.leaf.repeated else min(BATCH_ROWS, chunk.values)
    return chunk.leaf.is_binary and chunk.dictionary_size * repeats > BATCH_BYTES


def _batch_rows(group: RowGroup) -> int:
    """Return how many rows of a group to read at once, to stay near BATCH_BYTES."""
    fit = [BATCH_ROWS]
    if group.size > BATCH_BYTES:
        fit.append(group.rows * BATCH_BYTES // group.size)
    # A value may repeat all that its page has as its prefix.
    fit += [BATCH_BYTES // max(1, c.largest_page) for c in group.chunks if c.shares_prefixes]
    return max(1, min(fit))


def _check_fixed_lists(schema: pa.Schema, limits: Limits) -> None:
    """Refuse long lists of a fixed size: even a null of them takes the memory of a list."""
    for field in schema:
        values, kind = 1, field.type
        while types.is_nested(kind) and kind.num_fields == 1:
            values *= kind.list_size if types.is_fixed_size_list(kind) else 1
            kind = kind.field(0).type
        most = min(limits.list_values, EXPANSION_FLOOR // BATCH_ROWS)
        if values > most:
            raise InvalidForm(
                f"column {field.name} has lists of the fixed size {values:,}, above the limit of "
                f"{most:,}; cast them to lists of any size"
            )


_MAGIC: Final = b"ARROW1\0\0"
_OLD_FEATHER: Final = b"FEA1"
_COMPRESSED_IN_METADATA: Final = b"ARROW:experimental_compression"
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_STORED: Final = -1


def open_arrow(path: Path) -> ColumnarFile:
    """Open an Arrow IPC file (Feather 2) or an old Feather file.

    An IPC file is a stream between two marks. It is read as the stream, so that the messages whose
    claims are checked are those that are decoded, even if its footer points elsewhere.
    """
    size = path.stat().st_size
    with path.open("rb") as opened:
        beginning = opened.read(len(_MAGIC))
    if beginning.startswith(_OLD_FEATHER):  # never compressed
        table = feather.read_table(path)
        return ColumnarFile(table.schema, size, iter(table.to_batches(BATCH_ROWS)))
    if beginning != _MAGIC:
        raise InvalidForm("this is not an Arrow file")
    _check_messages(path, size)
    reader = ipc.open_stream(_stream(path))
    return ColumnarFile(reader.schema, size, iter(reader))


def _stream(path: Path) -> pa.NativeFile:
    file = pa.OSFile(str(path))
    file.seek(len(_MAGIC))
    return file


def _check_messages(path: Path, size: int) -> None:
    """Refuse a file whose buffers expand too far; each compressed one begins with its size."""
    total = 0
    for message in ipc.MessageReader.open_stream(_stream(path)):
        try:
            total += _expanded_bytes(message)
        except struct.error:
            raise InvalidForm("the file is damaged: its metadata cannot be read") from None
        check_expansion("buffers", total, size, PAGE_EXPANSION)


def _expanded_bytes(message: ipc.Message) -> int:
    """Return the bytes that the buffers of a message take when they are decompressed.

    Message:         version, header type, header, body length, metadata
    RecordBatch:     length, nodes, buffers, compression
    DictionaryBatch: id, record batch
    """
    metadata, body = message.metadata, message.body
    flat = _Flatbuffer(metadata.to_pybytes())
    root = flat.root()
    kind, header = flat.byte(root, 1), flat.table(root, 2)
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or header is None or body is None:
        return 0
    batch = header if kind == _RECORD_BATCH else flat.table(header, 1)
    if batch is None:
        return 0
    compressed = flat.table(batch, 3) is not None or _COMPRESSED_IN_METADATA in flat.content
    total = 0
    for offset, length in flat.pairs(batch, 2):
        total += length
        if compressed and length >= 8 and 0 <= offset <= body.size - 8:
            (expanded,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            total += expanded if expanded != _STORED else 0
            if expanded < _STORED:
                raise InvalidForm("the file is damaged: it has a buffer of negative size")
    return total


class _Flatbuffer:
    """Fields of tables in a flatbuffer, by the position of the table and the number of the field.

    A table begins with the distance back to its vtable, which lists the offsets of its fields.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content

    def root(self) -> int:
        """Return the position of the root table."""
        return self._number("<I", 0)

    def byte(self, table: int, field: int) -> int:
        """Return a field of one byte; 0 if it is absent."""
        position = self._field(table, field)
        return self._number("<B", position) if position else 0

    def table(self, table: int, field: int) -> int | None:
        """Return the position of a table in a field; None if it is absent."""
        position = self._field(table, field)
        return position + self._number("<I", position) if position else None

    def pairs(self, table: int, field: int) -> Iterator[tuple[int, int]]:
        """Yield the structs of two integers in a field."""
        start = self.table(table, field)
        if start is None:
            return
        count = self._number("<I", start)
        for number in range(count):
            yield struct.unpack_from("<qq", self.content, start + 4 + 16 * number)

    def _field(self, table: int, field: int) -> int:
        vtable = table - self._number("<i", table)
        listed = 4 + 2 * field
        if listed >= self._number("<H", vtable):
            return 0
        offset = self._number("<H", vtable + listed)
        return table + offset if offset else 0

    def _number(self, form: str, position: int) -> int:
        (value,) = struct.unpack_from(form, self.content, position)
        return int(value)
