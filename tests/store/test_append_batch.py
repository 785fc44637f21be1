"""Appending a batch: columns are checked as objects are, and become the same rows."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.appender import delivery
from tests.store.people import deliveries

from tidings import DeadLetter, Delivery, Event
from tidings.errors import StoreError
from tidings.formats.arrow import DELIVERIES, deliveries_to_table
from tidings.store import open_store
from tidings.store.append_batch import BatchAppend

LONG = "x" * 1001
poison = st.builds(
    delivery, st.sampled_from(["a", "", LONG]), st.sampled_from(["e1", "", "ä" * 501])
)
LATE, DEAD = [Event("e0", {}, 0)], [DeadLetter({"id": 1}, "no good")]


@given(st.lists(st.one_of(deliveries, poison), max_size=6))
def test_objects_and_columns_are_checked_alike(batch: list[Delivery]) -> None:
    expected = BatchAppend.of("q", 3, batch, late=LATE, dead=DEAD)
    columns = BatchAppend.of_columns("q", 3, deliveries_to_table(batch), late=LATE, dead=DEAD)
    assert columns == BatchAppend(**{**vars(expected), "rows": columns.rows})
    assert list(columns.rows) == list(expected.rows)


def test_columns_read_back_as_objects(address: str) -> None:
    batch = [delivery("a", f"e{n}", n, n + 1) for n in range(3)] + [delivery("b", "e1")]
    with open_store(address) as store:
        table = deliveries_to_table(batch)
        assert store.notifications.append_columns("q", 0, table).delivered == 4
        assert store.notifications.append_columns("q", 0, table).skipped
        assert store.notifications.append_columns("q", 1, table).repeated == 4
        assert store.notifications.after("a") == batch[:3]
        assert store.notifications.after("b") == batch[3:]


def test_columns_may_have_another_order_and_width() -> None:
    table = deliveries_to_table([delivery("a", "e1")])
    wide = table.select(table.column_names[::-1]).append_column("more", pa.array([1]))
    narrow = wide.set_column(
        wide.column_names.index("position"), "position", pa.array([1], pa.int32())
    )
    assert BatchAppend.of_columns("q", 0, narrow, late=(), dead=()).rows == [
        tuple(row) for row in BatchAppend.of_columns("q", 0, table, late=(), dead=()).rows
    ]


@pytest.mark.parametrize("name", [name for name in DELIVERIES.names if name != "content"])
def test_a_missing_column_is_named(name: str) -> None:
    table = deliveries_to_table([]).drop_columns([name])
    with pytest.raises(StoreError, match=f"deliveries need a column {name}"):
        BatchAppend.of_columns("q", 0, table, late=(), dead=())


@pytest.mark.parametrize(
    ("name", "cells", "says"),
    [
        ("rank", [None], "the column rank of deliveries has nulls"),
        (
            "rank",
            ["good"],
            "deliveries must have the columns of tidings.formats.arrow.DELIVERIES: Failed to parse",
        ),
    ],
)
def test_a_wrong_column_is_refused(name: str, cells: list[Any], says: str) -> None:
    table = deliveries_to_table([delivery("a", "e1")])
    table = table.set_column(table.column_names.index(name), name, pa.array(cells))
    with pytest.raises(StoreError, match=says):
        BatchAppend.of_columns("q", 0, table, late=(), dead=())


def test_columns_of_earlier_releases_have_no_content() -> None:
    table = deliveries_to_table([delivery("a", "e1", 2)])
    old = table.drop_columns(["content"])
    rows = [BatchAppend.of_columns("q", 0, each, late=(), dead=()).rows for each in (table, old)]
    assert rows[0] == rows[1]
