"""Events as columns have the ids, times and numbers of the events that they become."""

import numpy as np
import pytest

from tidings.model.event_columns import (
    UNNUMBERED,
    ColumnEvents,
    NumberEntries,
    TextEntries,
    contents_of,
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
