"""What every store checks: cells of the types that a class names, counts, ids and lists."""

import logging
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import StoreError
from tidings.store.protocol import (
    FOREVER,
    StagingTable,
    check_count,
    check_id,
    check_iterable,
    damage_error,
    read_row,
    read_rows,
)


class Cells(NamedTuple):
    """A row with a cell of each kind."""

    name: str
    number: int
    share: float
    until: int | None
    form: dict[str, int]
    anything: Any


ROW = ("a", 1, 0.5, None, {"x": 1}, object())


def test_a_row_becomes_an_object() -> None:
    assert read_row(Cells, ROW) == Cells(*ROW)
    assert read_row(Cells, iter(ROW)).name == "a"
    assert read_row(Cells, (*ROW[:3], 7, *ROW[4:])).until == 7


@pytest.mark.parametrize(
    ("place", "cell", "message"),
    [
        (0, 7, "name is 7"),
        (0, None, "name is None"),
        (0, b"a", "name is b'a'"),
        (1, "1", "number is '1'"),
        (1, 1.0, "number is 1.0"),
        (2, 1, "share is 1"),
        (3, "", "until is ''"),
        (4, [1], r"form is \[1\]"),
    ],
)
def test_a_cell_of_another_type_is_refused(place: int, cell: object, message: str) -> None:
    row = [*ROW]
    row[place] = cell
    with pytest.raises(TypeError, match=f"^{message}$"):
        read_row(Cells, row)


@pytest.mark.parametrize("row", [(), ROW[:-1], (*ROW, 1)])
def test_a_row_has_as_many_cells_as_the_class(row: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        read_row(Cells, row)


def test_a_damaged_row_is_logged_and_does_not_hide_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def read(row: Any) -> float:
        return float(1 / row[0])

    with caplog.at_level(logging.WARNING):
        found = read_rows(read, [(2,), (0,), (), ("x",), (4,)])
    assert found == [0.5, 0.25]
    assert len(caplog.records) == 3
    assert all(
        record.getMessage().startswith("skipping a damaged row of a store: ")
        for record in caplog.records
    )
    assert "ZeroDivisionError" in caplog.records[0].getMessage()


def test_an_error_that_is_no_damage_is_raised() -> None:
    def read(row: Any) -> float:
        raise RuntimeError("it is closed")

    with pytest.raises(RuntimeError, match="it is closed"):
        read_rows(read, [(1,)])


def test_damage_is_named_with_the_store() -> None:
    assert str(damage_error("tidings.db", TypeError("name is 7"))) == (
        "tidings.db: it is damaged, is not a Tidings store, or cannot hold these values "
        "(TypeError: name is 7)"
    )


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1])
def test_counts_are_those_that_a_database_holds(value: int) -> None:
    assert check_count("limit", value) == value


@pytest.mark.parametrize(
    ("value", "low", "message"),
    [
        (-1, 0, "limit is a whole number of at least 0, not -1"),
        (0, 1, "limit is a whole number of at least 1, not 0"),
        (True, 0, "limit is a whole number of at least 0, not True"),
        (1.0, 0, "limit is a whole number of at least 0, not 1.0"),
        ("1", 0, "limit is a whole number of at least 0, not '1'"),
        (None, 0, "limit is a whole number of at least 0, not None"),
        (FOREVER + 1, 0, f"limit is at most {FOREVER}, not {FOREVER + 1}"),
    ],
)
def test_other_counts_are_refused(value: object, low: int, message: str) -> None:
    with pytest.raises(StoreError) as error:
        check_count("limit", value, low)
    assert str(error.value) == message


@pytest.mark.parametrize("values", [[], (), {1}, {"a": 1}, iter([1]), range(3)])
def test_any_iterable_is_a_list_of_records(values: Any) -> None:
    assert check_iterable("deliveries", values) is values


@pytest.mark.parametrize("values", ["abc", b"abc", 7, None])
def test_text_is_no_list_of_records(values: Any) -> None:
    with pytest.raises(StoreError) as error:
        check_iterable("deliveries", values)
    assert str(error.value) == f"deliveries must be a list or another iterable, not {values!r}"


@given(st.text(min_size=1, max_size=400))
def test_an_id_has_at_most_a_thousand_bytes(value: str) -> None:
    size = len(value.encode(errors="replace"))
    if size <= 1_000:
        assert check_id("the id", value) == value
    else:
        with pytest.raises(StoreError, match=r"^the id is at most 1000 bytes long, not"):
            check_id("the id", value)


@pytest.mark.parametrize(("value", "fits"), [("x" * 1_000, True), ("x" * 1_001, False)])
def test_the_longest_id_has_a_thousand_bytes(value: str, fits: bool) -> None:
    if fits:
        assert check_id("the id", value) == value
    else:
        with pytest.raises(StoreError) as error:
            check_id("the id", value)
        assert str(error.value) == f"the id is at most 1000 bytes long, not '{'x' * 40}'..."


@pytest.mark.parametrize("value", ["", None, 7, "\ud800"])
def test_an_id_is_text(value: object) -> None:
    with pytest.raises(StoreError, match=r"^the id is "):
        check_id("the id", value)


def test_a_staging_table_is_defined_in_any_dialect() -> None:
    table = StagingTable("staged", {"id": "TEXT", "n": "BIGINT"})
    assert table.definition == "CREATE TEMPORARY TABLE IF NOT EXISTS staged (id TEXT, n BIGINT)"
    assert hash(table) == hash(StagingTable("staged", {}))
