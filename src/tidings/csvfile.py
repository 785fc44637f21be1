"""CSV files as tables. CSV has no types: each column has the one that fits all its cells.

So text of digits reads as numbers, except in the columns that are known. Where nine cells of ten
are numbers, the others do not make text of them: a word for nothing is missing, and a row with
anything else is bad. An empty cell is missing, a time is RFC 3339, and a list is a JSON array.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from tidings.errors import InvalidForm
from tidings.rows import BadRecord, Cell
from tidings.values import format_time, plain

T = TypeVar("T")
Known = Mapping[str, Callable[[str], object]]
_SHARE: Final = 0.9
_NUMBER: Final = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_WORDS: Final = ("NA", "N/A", "n/a", "NULL", "null", "None", "-")
"""What stands for nothing in a column of numbers."""
_NOTHING: Final = pa.array(_WORDS)


def read_csv(
    path: Path, known: Known, read: Callable[[pa.Table, Cell], Iterator[T | BadRecord]]
) -> Iterator[T | BadRecord]:
    """Read the table of a CSV file with `read`; first come the rows that do not fit its header.

    A `known` column is text, of which each cell is read for itself: what cannot be read in one row
    does not change the type of the others. So is a column of numbers with some other cells.
    """
    text = dict.fromkeys(known, pa.string())
    table, broken = _table(path, text)
    clocks = {column.name: pa.string() for column in table.schema if types.is_time(column.type)}
    if clocks:  # a time of day is in no family
        table, broken = _table(path, text | clocks)

    readers = dict.fromkeys(_numeric(table), _measure) | dict(known)

    def cell(column: str, value: object) -> object:
        return readers.get(column, array)(value) if isinstance(value, str) else value

    return chain(broken, _renumbered(read(table, cell), {bad.position for bad in broken}))


def _table(path: Path, kinds: Mapping[str, pa.DataType]) -> tuple[pa.Table, list[BadRecord]]:
    broken = []

    def skip(row: csv.InvalidRow) -> str:
        reason = f"the row has {row.actual_columns} cells, the header {row.expected_columns}"
        broken.append(BadRecord({"text": row.text}, reason, row.number - 1))
        return "skip"

    table = csv.read_csv(
        path,
        csv.ReadOptions(use_threads=False),  # threads would not know the numbers of the rows
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
        raise InvalidForm(f"{text!r} is no number, as nearly all others of its column are")
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
        return json.loads(text) if text.startswith("[") else text
    except (ValueError, RecursionError):
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
