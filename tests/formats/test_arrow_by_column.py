"""Events read by whole columns are those that are read cell by cell, and so are the refusals."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.formats.arrow import read_events
from tidings.formats.arrow_by_column import quick_events
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event

TIMES = [0, 1, -1, 1_500_000, 253_402_300_799, -62_135_596_800, 2**62, -(2**62)]
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
    unit = draw(st.sampled_from(["s", "us"]))
    names = draw(st.lists(st.sampled_from([*KINDS]), unique=True, max_size=4))
    made = {
        "id": pa.array(draw(st.lists(ids, **many)), pa.string()),
        "published_at": pa.array(draw(st.lists(times, **many)), pa.timestamp(unit)),
    }
    numbers = st.none() | st.integers(0 if right else -1, 3)
    if draw(st.booleans()):
        kind = draw(st.sampled_from([pa.int64(), pa.int32(), pa.float64()]))
        made["sequence"] = pa.array(draw(st.lists(numbers, **many)), kind)
    return pa.table(made | {name: column(*KINDS[name]) for name in names})


def one_by_one(table: pa.Table) -> list[Event | BadRecord]:
    return list(read_events(table, lambda _, value: value))


def seen(record: Event | BadRecord) -> Any:
    if isinstance(record, BadRecord):
        return repr(record)
    kinds = {name: repr(value) for name, value in record.attributes.items()}
    return (record, kinds, [*kinds], record.tokens, record.published_us, repr(record.published_at))


@given(tables())
def test_whole_columns_give_what_cells_give(table):
    assert list(map(seen, read_events(table))) == list(map(seen, one_by_one(table)))


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
        ("published_at", [0, 1, 2]),
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
    bad = [each for each in read_events(table) if isinstance(each, BadRecord)]
    assert [each.position for each in bad] == [4101]


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
