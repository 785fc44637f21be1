"""Events as columns have the ids, times and numbers of the events that they become."""

from typing import Any

import numpy as np
import pytest

from tidings.model.event_columns import (
    UNNUMBERED,
    AttributeColumns,
    ColumnEvents,
    ColumnsBuilder,
    NumberEntries,
    TextEntries,
    attach,
    attached,
    contents_of,
    detach,
    ids_of,
    sequences_of,
    times_of,
)
from tidings.model.records import Event

EVENTS = [
    Event("e1", {"g": "a", "n": 1.5}, 0, sequence=4),
    Event("e2", {}, 1),
    Event("e3", {"n": 2.0}, 2, sequence=6),
]


@pytest.fixture
def columns() -> ColumnEvents:
    return ColumnEvents(
        ["e1", "e2", "e3"],
        np.array([0, 1_000_000, 2_000_000]),
        np.array([4, UNNUMBERED, 6]),
        ["g", "n"],
        [
            TextEntries(np.array([0]), np.array([0], np.int32), np.array([0], np.int32), ["a"]),
            NumberEntries(np.array([0, 2]), np.array([1, 1], np.int32), np.array([1.5, 2.0])),
        ],
        lambda: EVENTS,
    )


def test_columns_are_those_of_the_events(columns: ColumnEvents) -> None:
    for events in (columns, columns[1:], columns[:0]):
        objects = [*events]
        assert ids_of(events) == ids_of(objects)
        assert times_of(events).tolist() == times_of(objects).tolist()
        assert sequences_of(events).tolist() == sequences_of(objects).tolist()
        assert contents_of(events) == contents_of(objects)


def test_slices_have_their_own_entries(columns: ColumnEvents) -> None:
    last = columns[2:]
    assert isinstance(last, ColumnEvents)
    texts, numbers = last.entries
    assert len(texts.event) == 0
    assert isinstance(numbers, NumberEntries)
    assert (numbers.event.tolist(), numbers.value.tolist()) == ([0], [2.0])
    assert [*last] == EVENTS[2:]
    assert columns[0] == EVENTS[0]
    assert columns[::2] == EVENTS[::2]


def test_objects_are_made_once_and_only_if_one_is_asked_for() -> None:
    calls = []

    def build() -> list[Event]:
        calls.append(1)
        return EVENTS

    none = np.zeros(3, np.int64)
    events = ColumnEvents(["e1", "e2", "e3"], none, none, [], [], build)
    assert len(events[1:]) == 2
    assert not calls
    assert [events[0], *events[1:]] == EVENTS
    assert len(calls) == 1


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
