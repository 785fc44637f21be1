"""Rows of Arrow tables: objects or bad records, one by one or by a quick reader of batches."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm
from tidings.formats import arrow_by_row
from tidings.formats.arrow_by_row import (
    BATCH_ROWS,
    Quick,
    Reading,
    attribute_columns,
    check_columns,
    check_nested,
    check_policies,
    check_times,
    decoded_bytes,
    read_rows,
)
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED, Limits

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(
    table: pa.Table | pa.RecordBatch, quick: Quick[Any] | None = None, limits: Limits = TRUSTED
) -> list[Any]:
    """Read a table as dicts; a row with the cell x = 13 is refused."""

    def build(row: dict[str, Any]) -> dict[str, Any]:
        if row.get("x") == 13:
            raise InvalidForm("13 brings bad luck")
        return row

    return [*read_rows(table, Reading(attribute_columns(table.schema), build, quick, limits))]


def test_null_cells_are_left_out() -> None:
    table = pa.table({"x": [1, None], "name": [None, "b"]})
    assert rows_of(table) == [{"x": 1}, {"name": "b"}]


def test_a_refused_row_shows_its_cells_the_reason_and_its_number() -> None:
    first, bad, last = rows_of(pa.table({"x": [1, 13, 2], "name": ["a", "b", None]}))
    assert (first, last) == ({"x": 1, "name": "a"}, {"x": 2})
    assert bad == BadRecord({"x": 13, "name": "b"}, "13 brings bad luck", 2)


def test_positions_count_through_chunks_and_batches() -> None:
    cells = [0] * (BATCH_ROWS + 5)
    cells[3] = cells[-1] = 13
    table = pa.concat_tables([pa.table({"x": cells}), pa.table({"x": [13]})])
    bad = [row.position for row in rows_of(table) if isinstance(row, BadRecord)]
    assert bad == [4, BATCH_ROWS + 5, BATCH_ROWS + 6]


def test_large_batches_are_split_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_by_row, "BATCH_BYTES", 40)
    sizes: list[int] = []

    def quick(batch: pa.RecordBatch) -> list[Any]:
        sizes.append(batch.num_rows)
        return list(batch.column(0).to_pylist())

    cells = pa.array([*"abcdefghijklmnopqrst"], pa.large_string())
    assert rows_of(pa.table({"x": cells}), quick) == [*"abcdefghijklmnopqrst"]
    assert sum(sizes) == 20
    assert max(sizes) < 10


@pytest.mark.parametrize("kind", ["string", "view", "dictionary"])
def test_a_row_counts_its_own_bytes_whatever_it_shares_buffers_with(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice of such a column has the whole buffer, which is above the limit of one record."""
    monkeypatch.setattr(arrow_by_row, "BATCH_BYTES", 1_000_000)
    texts = [f"{number:04d}" * 4_500 for number in range(1_000)]  # 18 kB each, 18 MB in all
    cells = pa.array(texts, pa.string_view() if kind == "view" else pa.string())
    if kind == "dictionary":
        cells = cells.dictionary_encode()
    assert not any(isinstance(row, BadRecord) for row in rows_of(pa.table({"x": cells})))


def test_a_quick_reader_is_not_asked_about_batches_above_the_limits() -> None:
    def quick(_: pa.RecordBatch) -> list[Any]:
        return ["quick"]

    table = pa.table({"x": [[1, 2, 3]]})
    assert rows_of(table, quick) == ["quick"]
    (bad,) = rows_of(table, quick, Limits(list_values=2))
    assert bad.reason == "the row: the size of a list is 3, above the limit list_values = 2"
    (bad,) = rows_of(pa.table({"x": [1], "y": [2]}), quick, Limits(attributes=1))
    assert bad.reason == "the row: its attributes is 2, above the limit attributes = 1"


@pytest.mark.parametrize("outcome", ["fails", "declines"])
def test_rows_are_read_one_by_one_if_the_quick_reader_fails(outcome: str) -> None:
    def quick(_: pa.RecordBatch) -> list[Any] | None:
        if outcome == "fails":
            raise ValueError("some row is bad")
        return None

    assert rows_of(pa.table({"x": [1]}), quick) == [{"x": 1}]


def test_an_exhausted_memory_is_not_the_fault_of_a_row() -> None:
    def quick(_: pa.RecordBatch) -> list[Any]:
        raise MemoryError

    with pytest.raises(MemoryError):
        rows_of(pa.table({"x": [1]}), quick)


@pytest.mark.parametrize(
    ("kind", "ticks", "us"),
    [
        (pa.timestamp("s"), 3, 3_000_000),
        (pa.timestamp("ms", "Europe/Rome"), 3, 3_000),
        (pa.timestamp("us"), -1, -1),
        (pa.timestamp("ns"), 1_999, 1),
        (pa.timestamp("ns"), -1, -1),
        (pa.date32(), 2, 172_800_000_000),
        (pa.date64(), 86_400_000, 86_400_000_000),
    ],
)
def test_ticks_of_any_unit_are_whole_microseconds(kind: pa.DataType, ticks: int, us: int) -> None:
    integer = pa.int32() if kind == pa.date32() else pa.int64()
    cells = pa.array([ticks], integer).cast(kind)
    ((name, value),) = rows_of(pa.table({"at": cells}))[0].items()
    elapsed = value - EPOCH
    assert name == "at"
    assert (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds == us


def test_a_time_outside_the_calendar_stays_ticks_in_its_bad_record() -> None:
    (bad,) = rows_of(pa.table({"at": pa.array([2**62], pa.timestamp("s"))}))
    assert bad.record == {"at": 2**62}
    assert bad.reason == f"the time {2**62} is outside the years 1 to 9999"


def test_text_that_is_no_utf8_is_shown_with_replacement_characters() -> None:
    broken = pa.array([b"good", b"b\xffd"], pa.binary()).view(pa.string())
    good, bad = rows_of(pa.table({"x": [1, 2], "name": broken}))
    assert good == {"x": 1, "name": "good"}
    assert (bad.record, bad.position) == ({"x": 2, "name": "b\ufffdd"}, 2)


def test_a_map_unfolds_into_attributes() -> None:
    cells = pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int64()))
    assert rows_of(pa.table({"x": [5, 6], "more": cells})) == [{"x": 5, "a": 1}, {"x": 6}]


@pytest.mark.parametrize("name", ["id", "published_at", "sequence", "x"])
def test_a_key_that_names_another_column_is_refused(name: str) -> None:
    cells = pa.array([[(name, 1)]], pa.map_(pa.string(), pa.int64()))
    (bad,) = rows_of(pa.table({"x": [5], "more": cells}))
    assert bad.reason == f"column more: the key {name} is also another column or key"
    assert bad.record == {"x": 5, "more": {name: 1}}


VALUES = st.none() | st.sampled_from(["", "a", "ü", "a text of more than twelve bytes"])


@given(st.lists(VALUES, max_size=5), st.integers(0, 5), st.integers(0, 5))
def test_every_encoding_of_texts_reads_alike(
    cells: list[str | None], start: int, length: int
) -> None:
    expected = [{} if cell is None else {"t": cell} for cell in cells[start : start + length]]
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ):
        batch = pa.record_batch({"t": pa.array(cells, kind)}).slice(start, length)
        assert rows_of(batch) == expected


@given(st.lists(st.none() | st.lists(VALUES, max_size=3), max_size=4), st.integers(0, 4))
def test_every_kind_of_list_reads_alike(cells: list[list[Any] | None], start: int) -> None:
    present = [
        None if cell is None else [each for each in cell if each is not None] for cell in cells
    ]
    expected = [{} if cell is None else {"t": cell} for cell in present[start:]]
    for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        batch = pa.record_batch({"t": pa.array(cells, kind(pa.string()))}).slice(start)
        assert rows_of(batch) == expected


def test_shared_values_count_each_time_they_are_decoded() -> None:
    long = "x" * 1_000
    codes = pa.array([0, 0, None, 0], pa.int8())
    coded = pa.record_batch({"t": pa.DictionaryArray.from_arrays(codes, [long])})
    assert 3_000 <= decoded_bytes(coded) < 5_000
    view = pa.record_batch({"t": pa.array([long, "y"], pa.string_view())})
    assert 1_001 <= decoded_bytes(view) < 3_000
    assert decoded_bytes(view.slice(1)) < 1_100
    coded = coded.take(pa.array([0, 2]))
    assert decoded_bytes(coded.slice(1)) < 100
    plain = pa.record_batch({"n": pa.array([1, 2, 3], pa.int64())})
    assert decoded_bytes(plain) == 24


def test_columns_are_checked_by_name_and_type() -> None:
    schema = pa.schema({"id": pa.string(), "n": pa.int64(), "gone": pa.null()})
    check_columns(schema, ["id", "n"], ["id", "gone", "absent"])
    with pytest.raises(InvalidForm, match="there is no column where among id, n, gone"):
        check_columns(schema, ["where"], [])
    with pytest.raises(InvalidForm, match="column n holds int64; cast it to string"):
        check_columns(schema, [], ["n"])
    twice = pa.schema([("id", pa.string()), ("id", pa.string())])
    with pytest.raises(InvalidForm, match="there are several columns id; rename them"):
        check_columns(twice, [], [])


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.string(), pa.int64(), pa.float64(), pa.date32()]
)
def test_times_may_be_timestamps_text_or_numbers(kind: pa.DataType) -> None:
    check_times(pa.schema({"published_at": kind, "sequence": pa.int32()}))


@pytest.mark.parametrize(
    ("at", "sequence", "reason"),
    [
        (pa.bool_(), pa.int64(), "column published_at holds bool, not times"),
        (pa.list_(pa.int64()), pa.int64(), "column published_at holds list<.*>, not times"),
        (pa.int64(), pa.string(), "column sequence holds string; cast it to a whole number"),
    ],
)
def test_other_types_of_times_and_sequences_are_refused(
    at: pa.DataType, sequence: pa.DataType, reason: str
) -> None:
    with pytest.raises(InvalidForm, match=reason):
        check_times(pa.schema({"published_at": at, "sequence": sequence}))


def test_a_policy_is_text_or_a_struct() -> None:
    check_policies(pa.schema({"policy": pa.string()}))
    check_policies(pa.schema({"policy": pa.struct({"k": pa.int64()})}))
    with pytest.raises(InvalidForm, match="a policy is JSON text or a struct"):
        check_policies(pa.schema({"policy": pa.map_(pa.string(), pa.int64())}))


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        (pa.struct({"a": pa.list_(pa.timestamp("s"))}), True),
        (pa.dictionary(pa.int8(), pa.string()), True),
        (pa.list_(pa.int64(), 3), True),
        (pa.binary(), False),
        (pa.list_view(pa.int64()), False),
        (pa.list_(pa.struct({"a": pa.binary()})), False),
        (pa.dictionary(pa.int8(), pa.int64()), False),
        (pa.time32("s"), False),
    ],
)
def test_forms_are_made_of_plain_values_times_lists_and_structs(
    kind: pa.DataType, good: bool
) -> None:
    if good:
        check_nested(pa.schema({"form": kind}))
    else:
        with pytest.raises(InvalidForm, match=r"column form holds .*; a form is made of text"):
            check_nested(pa.schema({"form": kind}))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.binary(), "column c holds binary; an attribute is a number, string, boolean or time"),
        (pa.list_(pa.list_(pa.int64())), "column c holds list"),
        (pa.struct({"a": pa.int64()}), "column c holds struct"),
        (pa.map_(pa.int64(), pa.int64()), "column c is a map with keys of int64; keys are strings"),
        (pa.map_(pa.string(), pa.list_view(pa.int64())), "column c is a map of views of lists"),
    ],
)
def test_a_column_that_no_attribute_can_have_is_refused(kind: pa.DataType, reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        attribute_columns(pa.schema({"c": kind}))
