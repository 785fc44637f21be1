"""Columnar files that expand: bombs are refused with little memory, honest files are read."""

import os
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from tidings.errors import InvalidForm
from tidings.formats.event_source import read_file
from tidings.formats.files import read_events
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits
from tidings.model.records import Event

MEMORY = 1 << 30
CPU_S = 10
LONG = "x" * 10_000_000


def bomb_dictionary(path: Path) -> None:
    """Write one string of 10 MB that 400 rows repeat: 4 GB in 2 kB."""
    codes = pa.array([0] * 400, pa.int32())
    text = pa.DictionaryArray.from_arrays(codes, pa.array([LONG]))
    table = pa.table({"id": [f"e{row}" for row in range(400)], "published_at": [0] * 400})
    parquet.write_table(table.append_column("text", text), path, compression="zstd")


def bomb_dictionary_in_lists(path: Path) -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int32()), pa.array([LONG]))
    texts = pa.ListArray.from_arrays(pa.array([0, 400]), codes)
    table = pa.table({"id": ["e1"], "published_at": [0], "texts": texts})
    parquet.write_table(table, path, compression="zstd")


def bomb_list(path: Path) -> None:
    """Write one list of 40 million equal values; the limit is 32 million."""
    values = pa.repeat(pa.scalar(7, pa.int8()), 40_000_000)
    numbers = pa.ListArray.from_arrays(pa.array([0, len(values)]), values)
    table = pa.table({"id": ["e1"], "published_at": [0], "numbers": numbers})
    parquet.write_table(table, path, compression="zstd")


def bomb_pages(path: Path) -> None:
    """Write 40 strings of 10 MB each, all different, whose pages compress to almost nothing."""
    texts = [LONG + str(row) for row in range(40)]
    table = pa.table({"id": [f"e{row}" for row in range(40)], "published_at": [0] * 40})
    parquet.write_table(
        table.append_column("text", pa.array(texts)), path, compression="zstd", use_dictionary=False
    )


def bomb_prefixes(path: Path) -> None:
    """Write 500 strings that share a prefix of 1 MB."""
    texts = pa.array([LONG[:1_000_000] + str(row) for row in range(500)])
    table = pa.table({"id": [f"e{row}" for row in range(500)], "published_at": [0] * 500})
    parquet.write_table(
        table.append_column("text", texts),
        path,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    )


def bomb_buffers(path: Path) -> None:
    """Write columns of 600 MB of zeros, compressed."""
    rows = 50_000_000
    numbers = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(bytes(8 * rows))])
    ends = pa.py_buffer(bytes(4 * (rows + 1)))
    ids = pa.Array.from_buffers(pa.string(), rows, [None, ends, pa.py_buffer(b"")])
    table = pa.table({"id": ids, "published_at": numbers})
    feather.write_feather(table, path, compression="zstd", chunksize=rows)


def bomb_arrow_dictionary(path: Path) -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int32()), pa.array([LONG]))
    table = pa.table({"id": codes, "published_at": [0] * 400})
    feather.write_feather(table, path, compression="zstd")


def bomb_views(path: Path) -> None:
    """Write 400 views of one string."""
    view = struct.pack("<i4sii", len(LONG), LONG[:4].encode(), 0, 0)
    buffers = [None, pa.py_buffer(view * 400), pa.py_buffer(LONG.encode())]
    views = pa.Array.from_buffers(pa.string_view(), 400, buffers)
    names = [f"e{row}" for row in range(400)]
    table = pa.table({"id": names, "published_at": [0] * 400, "text": views})
    feather.write_feather(table, path, compression="zstd")


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a dictionary": (".parquet", bomb_dictionary),
    "a dictionary in lists": (".parquet", bomb_dictionary_in_lists),
    "a list": (".parquet", bomb_list),
    "pages": (".parquet", bomb_pages),
    "prefixes": (".parquet", bomb_prefixes),
    "buffers": (".arrow", bomb_buffers),
    "an Arrow dictionary": (".arrow", bomb_arrow_dictionary),
    "views": (".arrow", bomb_views),
}


def in_child(work: Callable[[], str]) -> str:
    """Return the result of `work` in a child that may take 1 GB more than this process."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open("/proc/self/statm") as statm:  # noqa: PTH123
                used = int(statm.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            pa.set_cpu_count(1)
            os.write(writable, work().encode())
        except BaseException as error:  # noqa: BLE001 - a child must end
            os.write(writable, f"{type(error).__name__}: {error}"[:1000].encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as result:
        text = result.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_becomes_a_bad_record_and_takes_little_memory(tmp_path: Path, bomb: str) -> None:
    suffix, write = BOMBS[bomb]
    path = tmp_path / f"bomb{suffix}"
    write(path)
    assert path.stat().st_size < 20_000_000

    def read() -> str:
        *_, record = read_file(path, suffix)
        assert isinstance(record, BadRecord)
        return record.reason

    reason = in_child(read)
    assert "bomb" in reason
    assert "above the limit" in reason


def honest_events(count: int) -> pa.Table:
    """Return events with long constant strings, lists, maps and nulls."""
    rows = range(count)
    return pa.table(
        {
            "id": [f"e{row}" for row in rows],
            "published_at": pa.array(rows, pa.timestamp("us", tz="UTC")),
            "source": ["https://example.org/" + "a" * 30_000] * count,
            "tags": [["b" * 5_000, str(row)] if row % 3 else None for row in rows],
            "more": pa.array(
                [[("c" * 2_000, "d" * 2_000)] for _ in rows], pa.map_(pa.string(), pa.string())
            ),
        }
    )


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 1_000}])
def test_honest_parquet_that_repeats_long_strings_is_read(tmp_path: Path, options: Any) -> None:
    table = honest_events(5_000)
    parquet.write_table(table, tmp_path / "events.parquet", **options)
    records = list(read_events(tmp_path / "events.parquet"))
    assert [record.id for record in records if isinstance(record, Event)] == [
        f"e{row}" for row in range(5_000)
    ]
    last = records[-1]
    assert isinstance(last, Event)
    assert last.attributes == {
        "source": "https://example.org/" + "a" * 30_000,
        "tags": ("b" * 5_000, "4999"),
        "c" * 2_000: "d" * 2_000,
    }


def test_honest_arrow_is_read_in_batches(tmp_path: Path) -> None:
    table = honest_events(5_000)
    feather.write_feather(table, tmp_path / "events.arrow", compression="zstd")
    records = list(read_events(tmp_path / "events.arrow"))
    assert len(records) == 5_000
    assert all(isinstance(record, Event) for record in records)


@pytest.mark.filterwarnings("ignore:Feather V1")
def test_old_feather_files_are_read(tmp_path: Path) -> None:
    table = pa.table({"id": ["e1", "e2"], "published_at": [0, 1]})
    feather.write_feather(table, tmp_path / "old.feather", version=1)
    assert [record.id for record in read_events(tmp_path / "old.feather")] == ["e1", "e2"]  # type: ignore[union-attr]


def test_a_row_above_the_limit_is_bad_and_keeps_its_position(tmp_path: Path) -> None:
    texts = pa.array(["a"] * 4_100 + ["b" * 3_000_000] + ["c"] * 10).dictionary_encode()
    names = [f"e{row}" for row in range(len(texts))]
    table = pa.table({"id": names, "published_at": [0] * len(texts), "text": texts})
    for suffix, write in ((".parquet", parquet.write_table), (".arrow", feather.write_feather)):
        path = tmp_path / f"events{suffix}"
        write(table, path)
        records = list(read_events(path, limits=Limits(record_bytes=2_000_000)))
        (bad,) = [record for record in records if isinstance(record, BadRecord)]
        assert (bad.position, len(records)) == (4_101, len(texts))
        assert "above the limit record_bytes = 2,000,000" in bad.reason


def test_nulls_of_long_fixed_size_lists_are_refused(tmp_path: Path) -> None:
    lists = pa.nulls(3, pa.list_(pa.int8(), 200_000))
    table = pa.table({"id": ["a", "b", "c"], "published_at": [0, 0, 0], "numbers": lists})
    parquet.write_table(table, tmp_path / "events.parquet")
    with pytest.raises(InvalidForm, match="lists of the fixed size 200,000, above the limit"):
        read_events(tmp_path / "events.parquet")
