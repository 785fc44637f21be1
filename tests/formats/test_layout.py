"""Layouts: ordinary columns and flat objects become the same events in every format."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from tidings import Event, Limits
from tidings.errors import InvalidForm
from tidings.formats.files import read_events
from tidings.formats.layout import Layout, flat_fields
from tidings.model.dead_letter import BadRecord

ROWS = [
    {"sku": 7, "ts": "2026-11-15T20:05:00Z", "genre": "drama|noir", "year": 2003, "old": True},
    {"sku": 8, "ts": "2026-11-15T20:06:00Z", "genre": None, "year": None, "old": False},
]
LAYOUT = Layout({"id": "sku", "published_at": "ts"}, lists={"genre": "|"})
SUFFIXES = (".jsonl", ".json", ".csv", ".parquet", ".arrow")


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        pd.DataFrame(rows).astype({"year": "Int64"}).to_csv(path, index=False)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
    return path


def events(path: Path, layout: Layout) -> list[Event]:
    return [record for record in read_events(path, layout=layout) if isinstance(record, Event)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_events(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"films{suffix}", ROWS)
    first, second = events(path, LAYOUT)
    assert (first.id, first.published_us) == ("7", 1_794_773_100_000_000)
    assert first.attributes == {"genre": ("drama", "noir"), "year": 2003, "old": True}
    assert (second.id, second.attributes) == ("8", {"old": False})
    only = Layout(LAYOUT.columns, keep=("year",), types={"year": "string"})
    assert [event.attributes for event in events(path, only)] == [{"year": "2003"}, {}]
    both = Layout({**LAYOUT.columns, "sku": "sku"}, keep=())
    kinds = (str,) if suffix == ".none" else (int, str)
    assert [type(event.attributes["sku"]) in kinds for event in events(path, both)] == [True, True]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ids_and_times_are_generated_from_the_file_and_the_row(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"films{suffix}", ROWS)
    found = events(path, Layout(generate=("id", "published_at")))
    assert [event.id for event in found] == [f"films{suffix}:000000{row}" for row in (1, 2)]
    modified = path.stat().st_mtime_ns // 1_000
    assert [event.published_us - modified for event in found] == [1, 2]
    assert found[0].attributes["sku"] == 7
    folder = Layout(generate=("id",), columns={"published_at": "ts"}, root=tmp_path.parent)
    assert events(path, folder)[0].id == f"{tmp_path.name}/films{suffix}:0000001"


def test_rows_that_do_not_fit_keep_the_numbers_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,x\n0,1\n1\n2,3\n")
    found = events(path, Layout({"published_at": "ts"}, generate=("id",)))
    assert [event.id for event in found] == ["a.csv:0000001", "a.csv:0000003"]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", "string", "007"),
        ("007", "number", 7),
        ("2.50", "number", 2.5),
        ("$1 234.50", "amount", 1234.5),
        ("-7%", "amount", -7),
        ("-7.000.000", "amount-comma", -7_000_000),
        ("Yes", "boolean", True),
        ("0", "boolean", False),
        ("2026-11-15", "time", datetime(2026, 11, 15, tzinfo=UTC)),
        ("1794773100", "epoch-s", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("1794773100000", "epoch-ms", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("1794773100000000", "epoch-us", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("1794773100000000000", "epoch-ns", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("15/11/2026 20:05", "%d/%m/%Y %H:%M", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("20261115", "%Y%m%d", datetime(2026, 11, 15, tzinfo=UTC)),
        ("15 Nov 2026 21:05:00 +0100", "rfc-822", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("15 Nov 2026 20:05:00 -0000", "rfc-822", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
        ("15.11.2026 21:05 +0100", "%d.%m.%Y %H:%M %z", datetime(2026, 11, 15, 20, 5, tzinfo=UTC)),
    ],
)
def test_a_type_says_how_to_read_a_cell(tmp_path: Path, text: str, kind: str, value: Any) -> None:
    lines, table = tmp_path / "a.jsonl", tmp_path / "a.csv"
    lines.write_text(json.dumps({"id": "e", "published_at": 0, "x": text}) + "\n")
    table.write_text(f"id,published_at,x\ne,0,{text}\n")
    layout = Layout({"id": "id"}, types={"x": kind})
    for path in (lines, table):
        (event,) = events(path, layout)
        assert event.attributes == {"x": value}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("number", "x: 'odd' is not a number"),
        ("amount", "x: 'odd' is not an amount such as 1,234.50"),
        ("boolean", "x: 'odd' is not a boolean; write true or false"),
        ("time", "x: 'odd' is not a time; write RFC 3339"),
        ("epoch-ms", "x: 'odd' is not a number"),
        ("%d/%m/%Y", "x: 'odd' is not a time of the format '%d/%m/%Y'"),
    ],
)
def test_a_cell_of_another_type_is_a_bad_record(tmp_path: Path, kind: str, reason: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,published_at,x\ne,0,odd\nf,0,\n")
    bad, good = read_events(path, layout=Layout(types={"x": kind}))
    assert isinstance(bad, BadRecord)
    assert bad.reason.startswith(reason)
    assert isinstance(good, Event)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"generate": ("sequence",)}, "generate.*'sequence'"),
        ({"generate": ("id",), "columns": {"id": "a"}}, "id is either generated or a column"),
        ({"types": {"x": "integer"}}, "types x: unknown type 'integer'; expected one of: string"),
        ({"types": {"x": "%Q"}}, "types x: '%Q' is not a time format"),
        ({"lists": {"x": ""}}, "lists x: the separator is empty"),
    ],
)
def test_a_layout_is_checked(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        Layout(**options)


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", ROWS)
    with pytest.raises(InvalidForm, match="names the column 'when', but there are: sku, ts, genre"):
        read_events(path, layout=Layout({"id": "sku", "published_at": "when"}))
    with pytest.raises(InvalidForm, match=r'columns = \{ published_at = "..." \}, or generate'):
        read_events(path, layout=Layout({"id": "sku"}))


def test_a_column_of_which_another_takes_the_name_is_left_out(tmp_path: Path) -> None:
    for suffix in (".jsonl", ".parquet"):
        rows = [{"id": "old", "sku": 7, "published_at": 0, "year": 1}]
        (event,) = events(written(tmp_path / f"a{suffix}", rows), Layout({"id": "sku"}))
        assert (event.id, event.attributes) == ("7", {"year": 1})


def test_parquet_of_pandas_has_nanoseconds_and_an_index(tmp_path: Path) -> None:
    texts = ["2026-11-15 20:05:00.000000001", "2026-11-16", "2026-11-17"]
    times = pd.to_datetime(texts, format="ISO8601")
    frame = pd.DataFrame(
        {"sku": [1, 2, 3], "ts": times.astype("datetime64[ns]"), "x": [0.5, None, 1]}
    )
    path = tmp_path / "a.parquet"
    frame[frame.sku != 2].to_parquet(path)
    assert "__index_level_0__" in parquet.read_schema(path).names
    assert parquet.read_schema(path).field("ts").type == pa.timestamp("ns")
    first, second = events(path, Layout({"id": "sku", "published_at": "ts"}))
    assert (first.published_us, first.attributes) == (1_794_773_100_000_000, {"x": 0.5})
    assert (second.id, second.attributes) == ("3", {"x": 1.0})


def test_nested_objects_get_dotted_names_up_to_a_depth(tmp_path: Path) -> None:
    record = {"a": {"b": {"c": 1}, "at": {"time": 0}}, "d": [1]}
    assert flat_fields(record) == {"a.b.c": 1, "a.at": {"time": 0}, "d": [1]}
    deep: Any = 1
    for _ in range(70):
        deep = {"a": deep}
    with pytest.raises(InvalidForm, match="nest too deeply"):
        flat_fields(deep)
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"id": 1, "published_at": 0, "x": {json.dumps(deep)}}}\n[1]\n')
    found = list(read_events(path, layout=Layout({"id": "id"})))
    assert [isinstance(record, BadRecord) for record in found] == [True, True]


def test_flat_records_keep_the_limits(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", ROWS)
    found = list(read_events(path, layout=LAYOUT, limits=Limits(attributes=1)))
    assert [isinstance(record, BadRecord) for record in found] == [True, False]
    assert isinstance(found[0], BadRecord)
    assert "attributes = 1" in found[0].reason


def test_nulls_are_missing_and_numbers_are_ids_in_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    form = {"id": 7, "published_at": 0, "attributes": {"x": None, "tags": ["a", None]}}
    path.write_text(json.dumps(form) + "\n")
    (event,) = read_events(path)
    assert isinstance(event, Event)
    assert (event.id, event.attributes) == ("7", {"tags": ("a",)})
