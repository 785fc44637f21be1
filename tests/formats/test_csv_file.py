"""CSV files as tables: the type of each column, bad rows by number, and tables written as text."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm
from tidings.formats.arrow_by_row import Cells
from tidings.formats.csv_file import CellReaders, array, number, read_csv, write_csv
from tidings.formats.files import read_events
from tidings.formats.layout import Layout
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import TRUSTED, Limits

Row = dict[str, Any]


def rows_of(
    path: Path, cell_readers: CellReaders | None = None, most_bytes: int = 16_000_000
) -> list[Row | BadRecord]:
    """Read a file as dicts without missing cells; a cell that its reader refuses is a bad row."""

    def read(table: pa.Table, cells: Cells) -> Iterator[Row | BadRecord]:
        def build(row: Row) -> Row:
            values = {name: cells.read(name, value) for name, value in row.items()}
            return {name: value for name, value in values.items() if value is not None}

        for position, row in enumerate(table.to_pylist(), start=1):
            yield attempt(build, row, position, dict)

    return list(read_csv(path, cell_readers or {}, read, most_bytes))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-2", ""], [1, -2, None]),
        (["1", "2.5"], [1.0, 2.5]),
        (["true", "false"], [True, False]),
        (["20:15", "08:00"], ["20:15", "08:00"]),
        (["soon", "3"], ["soon", "3"]),
        (["[1, 2]", '"[""a""]"'], [[1, 2], ["a"]]),
        (["[REC]", "[1"], ["[REC]", "[1"]),
        (["NULL", "None"], ["NULL", "None"]),
    ],
)
def test_a_column_has_the_type_that_fits_all_its_cells(
    tmp_path: Path, cells: list[str], values: list[Any]
) -> None:
    quoted = [f'"{cell}"' if cell.startswith("[1,") else cell for cell in cells]
    path = written(tmp_path, "id,x", *(f"{n},{cell}" for n, cell in enumerate(quoted)))
    assert [row.get("x") for row in rows_of(path) if isinstance(row, dict)] == values


def test_a_date_is_no_text(tmp_path: Path) -> None:
    (row,) = rows_of(written(tmp_path, "at", "2004-02-13T10:00:00Z"))
    assert isinstance(row, dict)
    assert row["at"] == datetime(2004, 2, 13, 10, tzinfo=UTC)


def test_a_cell_reader_reads_the_text_of_each_cell(tmp_path: Path) -> None:
    path = written(tmp_path, "id,x", "007,1", "8,2", ",3")
    rows = rows_of(path, {"id": lambda text: f"<{text}>"})
    assert rows == [{"id": "<007>", "x": 1}, {"id": "<8>", "x": 2}, {"x": 3}]


def test_a_cell_that_its_reader_refuses_makes_only_its_row_bad(tmp_path: Path) -> None:
    first, bad, last = rows_of(written(tmp_path, "x", "1", "high", "3"), {"x": float})
    assert (first, last) == ({"x": 1.0}, {"x": 3.0})
    assert isinstance(bad, BadRecord)
    assert (bad.record, bad.position) == ({"x": "high"}, 2)


@pytest.mark.parametrize(
    ("numbers", "others", "is_numeric"), [(9, 1, True), (8, 1, False), (18, 2, True), (0, 1, False)]
)
def test_nine_tenths_of_the_cells_make_a_column_of_numbers(
    tmp_path: Path, numbers: int, others: int, is_numeric: bool
) -> None:
    rows = rows_of(written(tmp_path, "x", *["1.5"] * numbers, *["odd"] * others))
    *good, last = rows
    assert isinstance(last, BadRecord) == is_numeric
    assert good[:numbers] == [{"x": 1.5 if is_numeric else "1.5"}] * numbers


@pytest.mark.parametrize("word", ["NA", "N/A", "n/a", "NULL", "null", "None", "-"])
def test_words_for_a_missing_value_are_missing_beside_any_number(tmp_path: Path, word: str) -> None:
    rows = rows_of(written(tmp_path, "id,x", "1,5", f"2,{word}", f"3,{word}"))
    assert rows == [{"id": 1, "x": 5}, {"id": 2}, {"id": 3}]


def test_rows_that_do_not_fit_the_header_come_first_with_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b", "1,2,3", "4,5", "6", "7,bad", "8,9")
    short, long, *rest = rows_of(path, {"b": int})
    assert short == BadRecord({"text": "1,2,3"}, "the row has 3 cells, the header 2", 1)
    assert long == BadRecord({"text": "6"}, "the row has 1 cells, the header 2", 3)
    assert rest[0] == {"a": 4, "b": 5}
    assert isinstance(rest[1], BadRecord)
    assert rest[1].position == 4
    assert rest[2] == {"a": 8, "b": 9}


def test_a_row_may_span_lines_within_quotes(tmp_path: Path) -> None:
    assert rows_of(written(tmp_path, "a,b", '"x', 'y",2')) == [{"a": "x\ny", "b": 2}]


def test_a_row_that_is_too_long_is_left_out_and_keeps_its_number(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b", "1,2", f'"{"x" * 50}', f'{"y" * 50}",3', "4", "5,no", "6,7")
    found = rows_of(path, {"b": int}, most_bytes=40)
    long = found[0]
    assert isinstance(long, BadRecord)
    assert long.reason == "the row is longer than the limit record_bytes = 40"
    assert long.position == 2
    assert [bad.position for bad in found if isinstance(bad, BadRecord)] == [2, 3, 4]
    assert [row for row in found if isinstance(row, dict)] == [{"a": 1, "b": 2}, {"a": 6, "b": 7}]


def test_a_row_as_long_as_the_limit_is_read(tmp_path: Path) -> None:
    long, row = rows_of(written(tmp_path, "a,b", f"{'x' * 38},2", f"{'x' * 41},2"), most_bytes=40)
    assert isinstance(long, BadRecord)
    assert (long.position, row) == (2, {"a": "x" * 38, "b": 2})


def test_a_header_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a" * 60, "1")
    with pytest.raises(InvalidForm, match="the header is longer than record_bytes = 40"):
        rows_of(path, most_bytes=40)


def test_rows_that_are_no_utf8_are_bad_and_the_others_are_read(tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,title\n1,Am\xe9lie\n2,Ran\n3,\xff,more\n4\n5,Alien\n")
    *bad, ran, alien = rows_of(path)
    reason = "the row is not UTF-8: byte {}; save the file as UTF-8"
    assert [(each.position, each.reason) for each in bad if isinstance(each, BadRecord)] == [
        (1, reason.format(5)),
        (3, reason.format(3)),
        (4, "the row has 1 cells, the header 2"),
    ]
    assert [ran, alien] == [{"id": 2, "title": "Ran"}, {"id": 5, "title": "Alien"}]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [("17", 17), ("-3", -3), ("1e-3", 0.001), (".5", 0.5), ("soon", "soon"), ("", "")],
)
def test_text_that_is_a_number_becomes_one(text: str, value: object) -> None:
    assert number(text) == value
    assert type(number(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [('["a", 2]', ["a", 2]), ("[]", []), ("[REC]", "[REC]"), (" []", " []"), ("{}", "{}")],
)
def test_text_that_is_a_json_array_becomes_a_list(text: str, value: object) -> None:
    assert array(text) == value


def test_times_and_lists_are_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    table = pa.table(
        {
            "id": ["a", None],
            "at": pa.array([1_500_000, None], pa.timestamp("us", "UTC")),
            "tags": [["é", 'say "x"'], None],
            "n": [1, None],
        }
    )
    write_csv(table, path)
    assert path.read_text() == (
        '"id","at","tags","n"\n'
        '"a","1970-01-01T00:00:01.500000Z","[""é"", ""say \\""x\\""""]",1\n'
        ",,,\n"
    )


@given(
    columns=st.lists(
        st.tuples(
            st.none() | st.sampled_from(["drama", "x,y", 'say "x"', "two\nlines", "é"]),
            st.none() | st.integers(-3, 3),
            st.none() | st.booleans(),
            st.none() | st.lists(st.sampled_from(["a", 'b"', "ü"]), max_size=2),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_written_table_is_read_back(columns: list[tuple[Any, ...]]) -> None:
    names = ("text", "whole", "flag", "list")
    kinds = (pa.string(), pa.int64(), pa.bool_(), pa.list_(pa.string()))
    cells = zip(*columns, strict=True)
    arrays = [pa.array(each, kind) for each, kind in zip(cells, kinds, strict=True)]
    table = pa.table([pa.array(["id"] * len(columns)), *arrays], names=["id", *names])
    expected = [
        {"id": "id"} | {name: v for name, v in zip(names, row, strict=True) if v is not None}
        for row in columns
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_csv(table, path)
        assert rows_of(path) == expected


CELLS = [
    *("", "1", "-2", "1.5", "1e3", "007", " 7", "NA", "-", "null", "nan", "inf", "1,234"),
    *("x", "drama", "ä", "true", "[1, 2]", '["a", null]', "[REC]", "a|b", "2013-01-01"),
    *("2013-01-01 05:15", "2013-01-01T05:15:00Z", "05:15", "01/02/2013", '"', "two\nlines"),
]
LAYOUTS = [
    Layout(generate=("id", "published_at")),
    Layout({"id": "a", "published_at": "b"}),
    Layout({"published_at": "b"}, generate=("id",), types={"b": "string", "c": "time"}),
    Layout({"id": "b"}, generate=("published_at",), types={"id": "number", "c": "boolean"}),
    Layout({"published_at": "c"}, generate=("id",), types={"published_at": "epoch-s"}),
    Layout({"published_at": "c"}, generate=("id",), types={"published_at": "%d/%m/%Y"}),
    Layout({"sequence": "a"}, generate=("id", "published_at"), lists={"b": "|"}),
    Layout({"id": "a"}, ("c",), {"c": "|"}, {"c": "number"}, ("published_at",)),
]


@given(
    st.lists(st.lists(st.sampled_from(CELLS), min_size=3, max_size=3), max_size=12),
    st.sampled_from(LAYOUTS),
    st.sampled_from([TRUSTED, Limits(attributes=2), Limits.public()]),
)
def test_a_file_is_read_by_column_as_it_is_by_row(
    rows: list[list[str]], layout: Layout, limits: Limits
) -> None:
    def read() -> list[str]:
        try:
            return list(map(repr, read_events(path, limits=limits, layout=layout)))
        except InvalidForm as error:
            return [str(error)]

    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["a", "b", "c"], *rows])
        by_column = read()
        with patch("tidings.formats.arrow.quick_events", return_value=None):
            assert by_column == read()
