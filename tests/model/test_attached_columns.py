"""Columns that are attached to events: taken in runs, and detached."""

from typing import Any

import numpy as np

from tidings.model.attached_columns import (
    AttributeColumns,
    ColumnsBuilder,
    attach,
    attached,
    detach,
)
from tidings.model.records import Event

ROWS: list[dict[str, Any]] = [{"a": "x", "n": 1.0}, {}, {"n": 2.0, "b": "y", "a": "y"}, {"b": "x"}]


def columns_of(rows: list[dict[str, Any]]) -> AttributeColumns:
    builder = ColumnsBuilder()
    for name in ("a", "b", "n"):
        places = np.array([row for row, values in enumerate(rows) if name in values], np.int64)
        values = [row[name] for row in rows if name in row]
        names = np.repeat(builder.names([name]), len(places))
        if name == "n":
            builder.add_numbers(places, names, np.array(values))
        else:
            builder.add_texts(places, names, values, np.arange(len(values)))
    return builder.columns(len(rows))


def rows_of(columns: AttributeColumns) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(columns.size)]
    for row, name, text in zip(columns.text_rows, columns.text_names, columns.text, strict=True):
        rows[row][columns.names[name]] = columns.texts[text]
    numbers = zip(columns.number_rows, columns.number_names, columns.numbers, strict=True)
    for row, name, number in numbers:
        rows[row][columns.names[name]] = float(number)
    return rows


def events_of(rows: list[dict[str, Any]]) -> list[Event]:
    events = [Event(f"e{number}", row, 0) for number, row in enumerate(rows)]
    attach(columns_of(rows), events)
    return events


def test_columns_hold_every_value_by_event() -> None:
    columns = columns_of(ROWS)
    assert rows_of(columns) == ROWS
    assert rows_of(columns.take(np.array([3, 0, 2]))) == [ROWS[3], ROWS[0], ROWS[2]]
    assert columns.take(np.arange(4)) is columns
    assert rows_of(columns_of([])) == []


def test_runs_of_events_keep_their_order() -> None:
    first, second = events_of(ROWS), events_of(ROWS[::-1])
    mixed = [*first[2:], *second[:2], first[0]]
    runs = attached(mixed)
    assert runs is not None
    assert [row for run in runs for row in rows_of(run)] == [event.attributes for event in mixed]


def test_events_without_columns_have_none() -> None:
    events = events_of(ROWS)
    assert attached([]) is None
    assert attached([*events, Event("e", {}, 0)]) is None
    assert attached([events[0].numbered(7)]) is not None  # a copy has the same attributes
    assert attached([events[0].showing(["a"], hidden=["a"])]) is None
    detach([*events, Event("e", {}, 0)])
    assert attached(events) is None
    assert events == [Event(f"e{number}", row, 0) for number, row in enumerate(ROWS)]
