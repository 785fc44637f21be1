"""CSV files as tables. CSV has no types: each column has the one that fits all its cells.

So text of digits reads as numbers, except in the columns that are known. Where nine cells of ten
are numbers, the others do not make text of them: a word for nothing is missing, and a row with
anything else is bad. An empty cell is missing, a time is RFC 3339, and a list is a JSON array.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from tidings.errors import InvalidForm, shown
from tidings.formats.arrow_by_row import Cell
from tidings.formats.json_text import read_json
from tidings.model.dead_letter import BadRecord
from tidings.model.values import format_time, plain

T = TypeVar("T")
Known = Mapping[str, Callable[[str], object]]
_SHARE: Final = 0.9
_BLOCK_BYTES: Final = 1 << 20
_BEGINNING: Final = 200
_NUMBER: Final = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_WORDS: Final = ("NA", "N/A", "n/a", "NULL", "null", "None", "-")
"""What stands for nothing in a column of numbers."""
_NOTHING: Final = pa.array(_WORDS)


def read_csv(
    path: Path,
    known: Known,
    read: Callable[[pa.Table, Cell], Iterator[T | BadRecord]],
    most_bytes: int = 16_000_000,
) -> Iterator[T | BadRecord]:
    """Read the table of a CSV file with `read`; first come the rows that do not fit its header.

    A `known` column is text, of which each cell is read for itself: what cannot be read in one row
    does not change the type of the others. So is a column of numbers with some other cells. A row
    of more than `most_bytes` is refused, and not read.
    """
    text = dict.fromkeys(known, pa.string())
    source = _fitting(path, most_bytes)
    table, broken = _table(source, text)
    clocks = {column.name: pa.string() for column in table.schema if types.is_time(column.type)}
    if clocks:  # a time of day is in no family
        table, broken = _table(source, text | clocks)

    readers = dict.fromkeys(_numeric(table), _measure) | dict(known)

    def cell(column: str, value: object) -> object:
        return readers.get(column, array)(value) if isinstance(value, str) else value

    return chain(broken, _renumbered(read(table, cell), {bad.position for bad in broken}))


@dataclass(frozen=True)
class _Fitting:
    """What of a CSV file is read: a path, or its bytes without the rows that are too long."""

    content: Path | bytes
    block_bytes: int
    long: Sequence[BadRecord] = ()

    def place(self, number: int) -> int:
        """Return the row in the file of a row of what is read."""
        for bad in self.long:
            number += bad.position <= number
        return number


def _fitting(path: Path, most_bytes: int) -> _Fitting:
    """Look for rows that are too long; most files are too short to have one."""
    size = path.stat().st_size
    # The reader takes rows that fit into a block, and no others.
    block_bytes = max(_BLOCK_BYTES, min(size, most_bytes) + 2)
    if size <= most_bytes:
        return _Fitting(path, block_bytes)
    long, kept = list[BadRecord](), bytearray()
    with path.open("rb") as file:
        for number, (row, whole) in enumerate(_rows(file, most_bytes)):
            if whole:
                kept += row
            elif number == 0:
                raise InvalidForm(f"the header is longer than record_bytes = {most_bytes:,}")
            else:
                reason = f"the row is longer than the limit record_bytes = {most_bytes:,}"
                beginning = row[:_BEGINNING].decode(errors="replace")
                long.append(BadRecord({"beginning": beginning}, reason, number))
    return _Fitting(bytes(kept) if long else path, block_bytes, long)


def _rows(file: BinaryIO, most_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Give the rows of a CSV file, of which one ends with a line that closes all quotes.

    Of a row that is too long only the beginning is given, and that it is not the whole.
    """
    row, whole, quotes = bytearray(), True, 0
    while line := file.readline(_BLOCK_BYTES):
        quotes += line.count(b'"')
        if len(row) + len(line) <= most_bytes + 2:
            row += line
        else:
            whole = False
        if line.endswith(b"\n") and quotes % 2 == 0:
            if row.strip() or not whole:
                yield bytes(row or line), whole
            row, whole, quotes = bytearray(), True, 0
    if row or not whole:
        yield bytes(row), whole


def _table(source: _Fitting, kinds: Mapping[str, pa.DataType]) -> tuple[pa.Table, list[BadRecord]]:
    broken = list(source.long)

    def skip(row: csv.InvalidRow) -> str:
        reason = f"the row has {row.actual_columns} cells, the header {row.expected_columns}"
        broken.append(BadRecord({"text": row.text}, reason, source.place(row.number - 1)))
        return "skip"

    content = source.content
    table = csv.read_csv(
        content if isinstance(content, Path) else pa.BufferReader(content),
        # Threads would not know the numbers of the rows.
        csv.ReadOptions(use_threads=False, block_size=source.block_bytes),
        csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        csv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True),
    )
    for column in table.schema:
        if types.is_binary(column.type):
            raise InvalidForm(f"column {column.name} is not UTF-8; save the file as UTF-8")
    return table, broken


def _numeric(table: pa.Table) -> Iterator[str]:
    """Give the columns of text that are numbers but for a few cells."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_string(column.type):
            words = column.drop_null().filter(pc.invert(pc.is_in(column.drop_null(), _NOTHING)))
            numbers = pc.sum(pc.match_substring_regex(words, _NUMBER)).as_py() or 0
            if numbers and numbers >= _SHARE * len(words):
                yield name


def _measure(text: str) -> object:
    """Read a cell of a column of numbers."""
    if text in _WORDS:
        return None
    found = number(text)
    if isinstance(found, str):
        raise InvalidForm(f"{shown(text)} is no number, as nearly all others of its column are")
    return found


def _renumbered(found: Iterable[T | BadRecord], skipped: set[int]) -> Iterator[T | BadRecord]:
    """Give each bad record its row in the file, where the skipped rows count."""
    places = (place for place in count(1) if place not in skipped)
    for item, place in zip(found, places, strict=False):
        yield replace(item, position=place) if isinstance(item, BadRecord) else item


def number(text: str) -> object:
    """Give text that is a number as one, and other text as it is.

    >>> number("17"), number("1e-3"), number("soon")
    (17, 0.001, 'soon')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def array(text: str) -> object:
    """Give text that is a JSON array as a list, and other text as it is.

    >>> array('["drama", "comedy"]'), array("[REC]")
    (['drama', 'comedy'], '[REC]')
    """
    try:
        return read_json(text) if text.startswith("[") else text
    except InvalidForm:
        return text


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table; what CSV has no type for is written as text that `read_csv` understands."""
    texts = [_as_text(column) for column in table.columns]
    csv.write_csv(pa.table(texts, names=table.column_names), path)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    write: Callable[..., str]
    if types.is_timestamp(column.type):
        column, write = column.cast(pa.int64()), format_time
    elif types.is_list(column.type):
        write = _json_array
    else:
        return column
    cells = (None if cell is None else write(cell) for cell in column.to_pylist())
    return pa.array(cells, pa.string())


def _json_array(cell: list[object]) -> str:
    return json.dumps(cell, ensure_ascii=False, default=plain)
