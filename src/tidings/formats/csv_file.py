"""CSV files as tables. CSV has no types: each column gets the type that fits all its cells.

Cells are separated by commas, semicolons, tabs or bars, whichever the header has most often. A file
may be compressed with gzip.

Text of digits is read as numbers, except in columns with a cell reader. A column whose cells are
numbers to nine tenths is a column of numbers: words such as NA are missing values, and a row with
any other text is bad. An empty cell is missing, a time is RFC 3339, and a list is a JSON array.
"""

import csv as csv_text
import io
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from tidings.errors import InvalidForm, shown
from tidings.formats.arrow_by_row import Cells
from tidings.formats.gzip_file import is_gzip, open_text
from tidings.formats.json_text import read_json
from tidings.formats.layout import AS_IT_IS, MISSING, FileLayout
from tidings.model.dead_letter import BadRecord
from tidings.model.values import format_time, plain

T = TypeVar("T")
CellReaders = Mapping[str, Callable[[str], object]]
"""Functions that read the cells of a column, by its name."""
_SHARE: Final = 0.9
_BLOCK_BYTES: Final = 1 << 20
MOST_COLUMNS: Final = 50_000
_BEGINNING: Final = 200
_NUMBER: Final = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_SEPARATORS: Final = (",", ";", "\t", "|")
_SAMPLED_ROWS: Final = 100
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
_DECIMAL_POINT: Final = re.compile(r"[+-]?\d+\.\d+")
_NOTHING: Final = pa.array(MISSING)


def read_csv(
    path: Path,
    cell_readers: CellReaders,
    read: Callable[[pa.Table, Cells], Iterator[T | BadRecord]],
    most_bytes: int = 16_000_000,
    file: FileLayout | None = None,
) -> Iterator[T | BadRecord]:
    """Yield the records that `read` makes of a CSV file, after the rows that do not fit its header.

    A column with a cell reader is read as text, and its cells one by one, so that an invalid cell
    does not change the type of the others. So is a column of numbers with a few other cells. A row
    of more than `most_bytes`, or one that is not UTF-8, is refused without being read. The layout
    of the `file` renames columns first.
    """
    source = _without_bad_rows(path, most_bytes)
    layout = file.layout if file else AS_IT_IS
    untyped = layout.text_columns.union(map(layout.source_of, cell_readers))
    table, broken = _table(source, untyped)
    clocks = {column.name for column in table.schema if types.is_time(column.type)}
    if clocks:  # a time of day belongs to no family, so it is text
        table, broken = _table(source, untyped | clocks)
    skipped = {bad.position for bad in broken}
    if file is not None:
        table = file.table(table, (row for row in count(1) if row not in skipped))
    texts = dict.fromkeys(_numeric(table), _measure) | dict(cell_readers)
    cells = layout.cells(Cells(texts=texts, other_texts=array))
    return chain(broken, _renumbered(read(table, cells), skipped))


def read_header(path: Path, most_bytes: int = 16_000_000) -> list[str]:
    """Return the names of the columns."""
    return _clean(_without_bad_rows(path, most_bytes).dialect.header)


def zero_padded(path: Path, most_bytes: int = 16_000_000) -> list[str]:
    """Return the columns of digits of which some begin with 0, such as zip codes."""
    source = _without_bad_rows(path, most_bytes)
    table, _ = _table(source, set(_clean(source.dialect.header)))

    def all_match(column: pa.ChunkedArray, pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())

    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if types.is_string(column.type)  # of several columns of one name, others may have types
        and all_match(column, r"^\d+$")
        and pc.any(pc.match_substring_regex(column, r"^0\d")).as_py()
    ]


@dataclass(frozen=True)
class _Readable:
    """A CSV file to be read: its path, or its bytes without the `refused` rows."""

    content: Path | bytes
    block_bytes: int
    dialect: "_Dialect"
    refused: Sequence[BadRecord] = ()

    def row_in_file(self, number: int) -> int:
        """Return the row number in the file of a row that is read."""
        for bad in self.refused:
            number += bad.position <= number
        return number


def check_width(columns: int) -> None:
    """Refuse a table of very many columns: each takes some 60 us and 5 kB, however few its rows."""
    if columns > MOST_COLUMNS:
        raise InvalidForm(f"a file has at most {MOST_COLUMNS:,} columns, not {columns:,}")


def _without_bad_rows(path: Path, most_bytes: int) -> _Readable:
    """Leave out rows that are too long or not UTF-8, which Arrow would refuse with all others."""
    content: Path | bytes = path
    if is_gzip(path):
        with open_text(path) as file:
            content = file.read()
    size = len(content) if isinstance(content, bytes) else path.stat().st_size
    dialect = _dialect(content, most_bytes)
    check_width(len(dialect.header))
    # Arrow reads only rows that fit into a block.
    block_bytes = max(_BLOCK_BYTES, min(size, most_bytes) + 2)
    if size <= most_bytes and _is_utf8(content):
        return _Readable(content, block_bytes, dialect)
    refused, readable = list[BadRecord](), bytearray()
    with _opened(content) as file:
        for number, (row, whole) in enumerate(_rows(file, most_bytes)):
            reason = f"the row is longer than the limit record_bytes = {most_bytes:,}"
            if whole:
                reason = _not_utf8(row)
            if not reason:
                readable += row
            elif number == 0:
                raise InvalidForm(f"the header is longer than record_bytes = {most_bytes:,}")
            else:
                beginning = row[:_BEGINNING].decode(errors="replace")
                refused.append(BadRecord({"beginning": beginning}, reason, number))
    return _Readable(bytes(readable) if refused else content, block_bytes, dialect, refused)


def _is_utf8(content: Path | bytes) -> bool:
    decoder = getincrementaldecoder("utf-8")()
    try:
        with _opened(content) as file:
            while block := file.read(_BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _not_utf8(row: bytes) -> str:
    """Return why a row is refused, or nothing."""
    try:
        row.decode()
    except UnicodeDecodeError as error:
        return f"the row is not UTF-8: byte {error.start + 1}; save the file as UTF-8"
    return ""


def _opened(content: Path | bytes) -> BinaryIO:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


class _Dialect(NamedTuple):
    """The separator of cells, the sign before decimals, and the header as written."""

    separator: str = ","
    decimal: str = "."
    header: Sequence[str] = ()


def _dialect(content: Path | bytes, most_bytes: int) -> _Dialect:
    """Return the dialect of a file: the separator that the header has most often.

    Where the separator leaves the comma free, it may be the decimal sign.
    """
    with _opened(content) as file:
        rows = _rows(file, most_bytes)
        first = next(rows, (b"", True))[0]
        sample = b"".join(row for row, _ in islice(rows, _SAMPLED_ROWS))
    try:
        line = first.decode().removeprefix("\ufeff").strip()
    except UnicodeDecodeError:
        encoding = "UTF-16" if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "WINDOWS-1252"
        raise InvalidForm(
            "the header is not UTF-8; save the file as UTF-8, or convert it, such as with "
            f"iconv -f {encoding} -t UTF-8"
        ) from None
    bare = re.sub('"[^"]*"', "", line)
    separator = max(_SEPARATORS, key=bare.count)
    header = _cells(line, separator)
    if separator == ",":
        return _Dialect(separator, ".", header)
    cells = re.split(r"[\r\n" + re.escape(separator) + "]", sample.decode(errors="replace"))
    commas = sum(bool(_DECIMAL_COMMA.fullmatch(cell.strip('" '))) for cell in cells)
    points = sum(bool(_DECIMAL_POINT.fullmatch(cell.strip('" '))) for cell in cells)
    return _Dialect(separator, "," if commas > points else ".", header)


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv_text.reader(line.splitlines(keepends=True), delimiter=separator), [])
    except csv_text.Error as error:
        raise InvalidForm(f"the header cannot be read: {error}") from None


def _clean(names: Sequence[str]) -> list[str]:
    """Return the names of a header without spaces around them, all different and none empty.

    >>> _clean(["", " a", "a"])
    ['column_1', 'a', 'a_2']
    """
    seen, cleaned = Counter[str](), list[str]()
    for number, name in enumerate(names, start=1):
        stripped = name.strip() or f"column_{number}"
        seen[stripped] += 1
        while seen[stripped] > 1:
            stripped = f"{name.strip()}_{seen[name.strip()]}"
            seen[stripped] += 1
        cleaned.append(stripped)
    return cleaned


def _rows(file: BinaryIO, most_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the rows of a CSV file; a row ends with the line that closes all its quotes.

    A row that is too long is cut, and marked as not whole.
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


def _table(source: _Readable, texts: AbstractSet[str]) -> tuple[pa.Table, list[BadRecord]]:
    """Read a table; the columns `texts` are read as text, without a guess of their types."""
    broken, dialect = list(source.refused), source.dialect
    pairs = zip(_clean(dialect.header), dialect.header, strict=True)
    kinds = {name: pa.string() for clean, name in pairs if clean in texts}

    def skip(row: csv.InvalidRow) -> str:
        reason = f"the row has {row.actual_columns} cells, the header {row.expected_columns}"
        broken.append(BadRecord({"text": row.text}, reason, source.row_in_file(row.number - 1)))
        return "skip"

    content = source.content
    table = csv.read_csv(
        # Not the path itself, since Arrow decompresses files by their suffixes, without a bound.
        pa.OSFile(str(content)) if isinstance(content, Path) else pa.BufferReader(content),
        # Threads would not know the row numbers.
        csv.ReadOptions(use_threads=False, block_size=source.block_bytes),
        csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=skip
        ),
        csv.ConvertOptions(
            column_types=kinds,
            null_values=[""],
            strings_can_be_null=True,
            decimal_point=dialect.decimal,
        ),
    )
    return table.rename_columns(_clean(table.column_names)), broken


def _numeric(table: pa.Table) -> Iterator[str]:
    """Yield the text columns that hold numbers in all but a few cells."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_string(column.type):
            words = column.drop_null().filter(pc.invert(pc.is_in(column.drop_null(), _NOTHING)))
            numbers = pc.sum(pc.match_substring_regex(words, _NUMBER)).as_py() or 0
            if numbers and numbers >= _SHARE * len(words):
                yield name


def _measure(text: str) -> object:
    """Read a cell of a column of numbers."""
    if text in MISSING:
        return None
    value = number(text)
    if isinstance(value, str):
        raise InvalidForm(f"{shown(text)} is not a number, unlike nearly all others of its column")
    return value


def _renumbered(records: Iterable[T | BadRecord], skipped: set[int]) -> Iterator[T | BadRecord]:
    """Yield records; the positions of bad ones become rows of the file, counting skipped rows."""
    rows = (row for row in count(1) if row not in skipped)
    for record, row in zip(records, rows, strict=False):
        yield replace(record, position=row) if isinstance(record, BadRecord) else record


def number(text: str) -> object:
    """Return a number for text that is one, and other text unchanged.

    >>> number("17"), number("1e-3"), number("soon")
    (17, 0.001, 'soon')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def boolean(text: str) -> object:
    """Return a boolean for `true` and `false`, and other text unchanged.

    >>> boolean("True"), boolean("1")
    (True, '1')
    """
    return {"true": True, "false": False}.get(text.lower(), text)


def array(text: str) -> object:
    """Return a list for text that is a JSON array, and other text unchanged.

    >>> array('["drama", "comedy"]'), array("[REC]")
    (['drama', 'comedy'], '[REC]')
    """
    try:
        return read_json(text) if text.startswith("[") else text
    except InvalidForm:
        return text


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table; times and lists are written as text that `read_csv` understands."""
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
