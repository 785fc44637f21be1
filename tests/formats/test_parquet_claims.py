"""Page headers, parsed from the bytes of Parquet files, add up to what was written."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tidings.errors import InvalidForm
from tidings.formats.parquet_claims import RowGroup, read_row_groups

ROWS = 1_000


def claims(path: Path) -> list[RowGroup]:
    with path.open("rb") as file:
        return list(read_row_groups(file, path.stat().st_size))


def written(path: Path, **options: Any) -> Path:
    lists = pa.array([[row, row] for row in range(ROWS)])
    texts = pa.array([f"text {row % 7}" for row in range(ROWS)])
    table = pa.table({"lists": lists, "texts": texts, "numbers": list(range(ROWS))})
    parquet.write_table(table, path, **options)
    return path


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_values_and_sizes_are_those_of_the_metadata(
    tmp_path: Path, version: str, compression: str
) -> None:
    path = written(
        tmp_path / "a.parquet",
        row_group_size=400,
        data_page_version=version,
        compression=compression,
        data_page_size=500,
    )
    groups = claims(path)
    assert [group.rows for group in groups] == [400, 400, 200]
    metadata = parquet.read_metadata(path)
    for number, group in enumerate(groups):
        for column, chunk in enumerate(group.chunks):
            expected = metadata.row_group(number).column(column)
            assert chunk.leaf.path == expected.path_in_schema
            assert chunk.values == expected.num_values
            assert chunk.leaf.repeated == ("lists" in chunk.leaf.path)
            assert chunk.leaf.is_binary == (chunk.leaf.path == "texts")
            assert chunk.size <= expected.total_uncompressed_size
            assert (chunk.dictionary_size > 0) == expected.has_dictionary_page


def test_shared_prefixes_are_noticed(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.parquet",
        use_dictionary=False,
        column_encoding={"texts": "DELTA_BYTE_ARRAY"},
    )
    (group,) = claims(path)
    prefixed = {chunk.leaf.path: chunk.shares_prefixes for chunk in group.chunks}
    assert prefixed == {"lists.list.element": False, "texts": True, "numbers": False}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff\xff\xff\x7fPAR1", b"x" * 100])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(InvalidForm, match="the file is damaged"):
        claims(path)
