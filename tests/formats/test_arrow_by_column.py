"""Events read by whole columns are those that are read cell by cell, and so are the refusals."""

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.formats.arrow import read_event_columns, read_events
from tidings.formats.arrow_by_column import quick_events
from tidings.formats.arrow_by_row import AS_READ, EVENT_COLUMNS, Cells, Convert
from tidings.formats.csv_file import array, boolean, number
from tidings.model.dead_letter import BadRecord
from tidings.model.event_columns import TextEntries, attached
from tidings.model.records import Event

TIMES = [0, 1, -1, 1_500_000, 253_402_300_799, -62_135_596_800, 2**62, -(2**62)]
PUBLISHED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.timestamp("s"), TIMES),
    (pa.timestamp("us"), TIMES),
    (pa.string(), ["2013-01-01", "2013-01-01T05:15:00+01:00", "1970-01-01 00:00:01"]),
    (pa.int64(), [0, 1, -5]),
    (pa.float64(), [0.0, 0.1234567]),
    (pa.date32(), [0, 20_000]),
]
ODD_TIMES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["2013-01-01", "soon", "17", "", None]),
    (pa.float64(), [0.5, float("nan"), 1e300]),
    (pa.date32(), [0, 2**31 - 1]),
]
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "drama", "ä"]),
    "long text": (pa.large_string(), ["x"]),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
    "whole": (pa.int64(), [0, -1, 2**62]),
    "large": (pa.uint64(), [0, 2**64 - 1]),
    "real": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "single": (pa.float32(), [0.1, 1e30]),
    "flag": (pa.bool_(), [True, False]),
    "seconds": (pa.timestamp("s"), TIMES),
    "micros": (pa.timestamp("us", tz="UTC"), TIMES),
    "nanos": (pa.timestamp("ns"), [1_999, -1, 0]),
    "day": (pa.date32(), [0, 20_000]),
    "distant day": (pa.date64(), [0, 86_400_000 * 10_000_000]),
    "texts": (pa.list_(pa.string()), [[], ["a", "b"], ["a", None]]),
    "wholes": (pa.large_list(pa.int32()), [[1], [2, 2]]),
    "reals": (pa.list_(pa.float64()), [[1.5], [float("nan")]]),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        [[("k", 1)], [("text", 2)], [], [("m", 3), ("k", 4)]],
    ),
    "odd map": (pa.map_(pa.string(), pa.int64()), [[("k", 1), ("k", 2)], [("", 1)], [("n", None)]]),
    "real map": (pa.map_(pa.string(), pa.float64()), [[("r", 1.5), ("k", 2.0)], [("r", 1e999)]]),
    "text map": (
        pa.map_(pa.string(), pa.list_(pa.string())),
        [[("t", ["a"])], [("t", ["a", None])]],
    ),
    "nothing": (pa.null(), []),
}
IDS = st.sampled_from(["e1", "e2", "ü"]) | st.sampled_from(["e1", "", None])


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a table, more often one without a wrong cell than one with."""
    rows = draw(st.integers(0, 4))
    right = draw(st.booleans())
    many: dict[str, Any] = {"min_size": rows, "max_size": rows}

    def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
        cells = st.none() | st.sampled_from(values) if values else st.none()
        return pa.array(draw(st.lists(cells, **many)), kind)

    ids = st.sampled_from(["e1", "e2", "ü"]) if right else IDS
    times = st.sampled_from(TIMES[:6]) if right else st.none() | st.sampled_from(TIMES)
    published = draw(st.sampled_from(PUBLISHED if right else [*PUBLISHED, *ODD_TIMES]))
    names = draw(st.lists(st.sampled_from([*KINDS]), unique=True, max_size=4))
    made = {
        "id": pa.array(draw(st.lists(ids, **many)), pa.string()),
        "published_at": pa.array(
            draw(
                st.lists(times if published[1] is TIMES else st.sampled_from(published[1]), **many)
            ),
            published[0],
        ),
    }
    numbers = st.none() | st.integers(0 if right else -1, 3)
    if draw(st.booleans()):
        kind = draw(st.sampled_from([pa.int64(), pa.int32(), pa.float64()]))
        made["sequence"] = pa.array(draw(st.lists(numbers, **many)), kind)
    return pa.table(made | {name: column(*KINDS[name]) for name in names})


def one_by_one(table: pa.Table, cells: Cells = AS_READ) -> list[Event | BadRecord]:
    with patch("tidings.formats.arrow.quick_events", return_value=None):
        return list(read_events(table, cells))


CONVERTERS: list[Convert] = [number, array, boolean, str, lambda _: None, lambda cell: [cell, cell]]


@st.composite
def some_cells(draw: st.DrawFn) -> Cells:
    """Draw functions for some of the columns."""
    functions = st.dictionaries(
        st.sampled_from([*KINDS, *EVENT_COLUMNS]), st.sampled_from(CONVERTERS), max_size=4
    )
    others = st.none() | st.just(array)
    return Cells(draw(functions), draw(functions), draw(others))


def seen(record: Event | BadRecord) -> Any:
    if isinstance(record, BadRecord):
        return repr(record)
    kinds = {name: repr(value) for name, value in record.attributes.items()}
    return (record, kinds, [*kinds], record.tokens, record.published_us, repr(record.published_at))


@given(tables())
def test_whole_columns_give_what_cells_give(table):
    assert list(map(seen, read_events(table))) == list(map(seen, one_by_one(table)))


@given(tables(), some_cells())
def test_converted_columns_give_what_converted_cells_give(table, cells):
    assert list(map(seen, read_events(table, cells))) == list(map(seen, one_by_one(table, cells)))


@given(tables())
def test_entries_by_column_are_the_attributes_of_the_events(table):
    for batch in table.to_batches():
        columns = read_event_columns(batch)
        if columns is None:
            continue
        records = [event for event in read_events(batch) if isinstance(event, Event)]
        assert len(records) == batch.num_rows
        attributes: list[dict[str, Any]] = [{} for _ in records]
        for entries in columns.entries:
            values = (
                map(entries.texts.__getitem__, entries.text.tolist())
                if isinstance(entries, TextEntries)
                else entries.value.tolist()
            )
            for event, name, value in zip(entries.event, entries.name, values, strict=True):
                attributes[event][columns.names[name]] = value
        assert [*columns] == records
        assert [record.attributes for record in records] == attributes
        assert sum(len(part.event) for part in columns.entries) == sum(map(len, attributes))
        numbers = [-1 if record.sequence is None else record.sequence for record in records]
        assert (columns.us.tolist(), columns.sequence.tolist()) == (
            [record.published_us for record in records],
            numbers,
        )


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("a", 1.0), ("a", 2.0)]] * 2, pa.map_(pa.string(), pa.float64())),
        pa.array([[("stars", 1.0)]] * 2, pa.map_(pa.string(), pa.float64())),
        pa.array([1.0, float("nan")]),
        pa.array([True, False]),
        pa.array([b"\xff", b"a"]).view(pa.string()),
    ],
)
def test_what_may_be_wrong_is_not_read_by_column(column):
    rows = plain(2)
    rows = {name: rows[name] for name in ("id", "published_at", "stars")}
    assert read_event_columns(pa.record_batch(rows)) is not None
    assert read_event_columns(pa.record_batch(rows | {"x": column})) is None


def plain(rows: int) -> dict[str, Any]:
    return {
        "id": [f"e{number}" for number in range(rows)],
        "published_at": pa.array(range(rows), pa.timestamp("us")),
        "genre": [None if number % 3 else "drama" for number in range(rows)],
        "stars": [number / 2 for number in range(rows)],
        "tags": [["a", "b"]] * rows,
        "when": pa.array(range(rows), pa.timestamp("ms")),
    }


def test_the_common_case_is_read_by_whole_columns():
    (batch,) = pa.table(plain(5)).to_batches()
    found = quick_events(batch)
    assert found is not None
    assert list(found) == one_by_one(pa.Table.from_batches([batch]))
    assert found[0].attributes["when"] == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("id", ["a", "", "c"]),
        ("id", ["a", None, "c"]),
        ("published_at", pa.array([0, None, 1], pa.timestamp("us"))),
        ("published_at", pa.array([0, 2**62, 1], pa.timestamp("us"))),
        ("sequence", [0, -1, 2]),
        ("sequence", [0, 1 << 61, 2]),
        ("sequence", [0.0, 1.0, 2.0]),
        ("x", [0.0, float("nan"), 2.0]),
        ("x", [["a"], ["a", None], []]),
        ("", ["a", "b", "c"]),
    ],
)
def test_what_may_be_wrong_is_looked_at_row_by_row(name, column):
    table = pa.table(plain(3) | {name: column})
    assert quick_events(table.to_batches()[0]) is None
    assert list(map(seen, read_events(table))) == list(map(seen, one_by_one(table)))


def test_positions_count_through_all_batches():
    rows = 4096 + 10
    ids = [f"e{number}" for number in range(rows)]
    ids[4100] = ""
    table = pa.table(plain(rows) | {"id": ids})
    bad = [event for event in read_events(table) if isinstance(event, BadRecord)]
    assert [each.position for each in bad] == [4101]


def test_a_bad_row_does_not_make_the_rows_far_from_it_slow():
    times = ["2013-01-01"] * 1000
    times[500] = "soon"
    table = pa.table(plain(1000) | {"published_at": times})
    with patch("tidings.formats.arrow.Event", side_effect=Event) as built:
        [bad] = [event for event in read_events(table) if isinstance(event, BadRecord)]
    assert bad.position == 501
    assert built.call_count == 256


def test_attached_columns_hold_what_the_events_hold() -> None:
    table = pa.table(
        {
            "id": [f"e{n}" for n in range(4)],
            "published_at": pa.array(range(4), pa.timestamp("us")),
            "texts": pa.array(
                [[("a", "x"), ("b", "")], None, [("b", "x")], []], pa.map_(pa.string(), pa.string())
            ),
            "c": pa.array([1, None, -(2**60), 3]),
            "d": pa.array(["x", "y", None, "x"]).dictionary_encode(),
            "e": pa.array([None, 0.5, None, -0.0]),
        }
    )
    for first in range(4):
        [batch] = table.slice(first).to_batches()
        events = quick_events(batch, attaches=True)
        assert events is not None
        [columns] = attached(events) or []
        for row, event in enumerate(events):
            texts = slice(*columns.text_starts[row : row + 2])
            numbers = slice(*columns.number_starts[row : row + 2])
            values = {
                columns.names[name]: columns.texts[text]
                for name, text in zip(columns.text_names[texts], columns.text[texts], strict=True)
            } | {
                columns.names[name]: number
                for name, number in zip(
                    columns.number_names[numbers], columns.numbers[numbers], strict=True
                )
            }
            assert values == event.attributes


@pytest.mark.parametrize(
    "column", [pa.array([True]), pa.array([["x"]]), pa.array([0], pa.timestamp("us"))]
)
def test_other_values_leave_no_columns(column: pa.Array) -> None:
    columns = {"id": ["e"], "published_at": pa.array([0], pa.timestamp("us")), "a": column}
    [batch] = pa.table(columns).to_batches()
    events = quick_events(batch, attaches=True)
    assert events is not None
    assert attached(events) is None
    assert attached(quick_events(batch.drop_columns("a")) or []) is None


def test_maps_are_read_by_whole_columns_also_from_slices() -> None:
    maps = [[("a", 1), ("b", 2)], None, [("b", 3)], [], [("c", 4)]]
    table = pa.table(
        {
            "id": [f"e{n}" for n in range(5)],
            "published_at": pa.array(range(5), pa.timestamp("us")),
            "some": pa.array(maps, pa.map_(pa.string(), pa.int64())),
        }
    )
    for first in range(5):
        [batch] = table.slice(first).to_batches()
        found = quick_events(batch)
        assert found is not None
        assert [dict(event.attributes) for event in found] == [dict(m or ()) for m in maps[first:]]
