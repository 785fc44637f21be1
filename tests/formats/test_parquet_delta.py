"""Delta-encoded pages: honest ones are read, and forged numbers of values are refused."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tidings.errors import InvalidForm
from tidings.formats.columnar_files import open_parquet
from tidings.model.limits import Limits

ROWS = 1_000
ENCODINGS = {
    "numbers": "DELTA_BINARY_PACKED",
    "lengths": "DELTA_LENGTH_BYTE_ARRAY",
    "prefixes": "DELTA_BYTE_ARRAY",
}
HONEST = bytes.fromhex("8001 04 e807")
"""Blocks of 128 values in 4 miniblocks; 1,000 values."""
FORGED_COUNT = bytes.fromhex("8001 04 ffffffff07")
LARGE_BLOCKS = bytes.fromhex("8080808008 04 e807 00 00 ffffffff")
FORGED_MINIBLOCKS = bytes.fromhex("8080808008 80808040 01")


def encoded(path: Path, missing: bool = False, **options: Any) -> pa.Table:
    """Write a table whose columns have all delta encodings, and return it."""
    rows = [None if missing and row % 3 == 0 else row for row in range(ROWS)]
    texts = [None if row is None else f"text {row:05}" * (row % 7) for row in rows]
    lists = [[row, row] if row else None for row in rows]
    columns = {"numbers": pa.array(rows, pa.int32()), "lengths": texts, "prefixes": texts}
    table = pa.table({**columns, "lists": lists})
    encodings = {**ENCODINGS, "lists.list.element": "DELTA_BINARY_PACKED"}
    parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings, **options)
    return table


def read(path: Path) -> pa.Table:
    opened = open_parquet(path, Limits.trusted())
    return pa.Table.from_batches(opened.batches(), opened.schema)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("missing", [False, True])
def test_honest_pages_are_read(
    tmp_path: Path, compression: str, version: str, missing: bool
) -> None:
    path = tmp_path / "a.parquet"
    options = {"compression": compression, "data_page_version": version, "data_page_size": 2_000}
    table = encoded(path, missing, **options)
    assert read(path).equals(table)


def test_pages_of_missing_values_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"texts": pa.nulls(ROWS, pa.string()), "numbers": pa.nulls(ROWS, pa.int64())})
    encodings = {"texts": "DELTA_BYTE_ARRAY", "numbers": "DELTA_BINARY_PACKED"}
    parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings)
    assert read(path).equals(table)


def forge(path: Path, column: str, occurrence: int, forged: bytes) -> None:
    """Overwrite a header of encoded differences in the pages of a column."""
    metadata = parquet.read_metadata(path).row_group(0)
    names = [metadata.column(number).path_in_schema for number in range(metadata.num_columns)]
    start = metadata.column(names.index(column)).data_page_offset
    content = bytearray(path.read_bytes())
    for _ in range(occurrence):
        start = content.index(HONEST, start + 1)
    content[start : start + len(forged)] = forged
    path.write_bytes(content)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    ("column", "occurrence"), [("numbers", 1), ("lengths", 1), ("prefixes", 1), ("prefixes", 2)]
)
def test_a_forged_number_of_values_is_refused(
    tmp_path: Path, version: str, column: str, occurrence: int
) -> None:
    path = tmp_path / "a.parquet"
    encoded(path, compression="none", data_page_version=version)
    forge(path, column, occurrence, FORGED_COUNT)
    with pytest.raises(InvalidForm, match=rf"column {column} claims 2,147,483,647 values, but"):
        read(path)


def test_a_forged_number_of_miniblocks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    encoded(path, compression="none")
    forge(path, "numbers", 1, FORGED_MINIBLOCKS)
    with pytest.raises(InvalidForm, match=r"column numbers has 134,217,728 miniblocks"):
        read(path)


def test_a_page_that_ends_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    encoded(path, compression="none")
    forge(path, "prefixes", 1, LARGE_BLOCKS)
    with pytest.raises(InvalidForm, match="a page of column prefixes ends early"):
        read(path)
