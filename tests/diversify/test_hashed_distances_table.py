"""A table of events that come and go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diversify.small import WIDE

from tidings.diversify import EventHashes
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.protocol import Distance
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event

KNOWN = [Overlap(), Jaccard(), Overlap({"a": 0.1, "b": 0.7, "c": 3.0, "d": 0.0})]


def distances_hold(table: EventHashes, there: dict[int, Event], distance: Distance) -> None:
    slots = np.array(sorted(there), np.int64)
    expected = [
        [distance.between(there[i], there[j]) for j in sorted(there)] for i in sorted(there)
    ]
    assert table.matrix(slots).tolist() == expected
    for slot, row in zip(slots.tolist(), expected, strict=True):
        assert table.row(slot, slots).tolist() == row


@pytest.mark.parametrize("of_process", [False, True])
@pytest.mark.parametrize("distance", KNOWN, ids=["overlap", "jaccard", "weighted"])
@settings(max_examples=40)
@given(steps=st.lists(WIDE | st.integers(0, 30), max_size=40))
def test_distances_are_right_after_any_additions_and_removals(
    distance: Distance, steps: list[object], *, of_process: bool
) -> None:
    """A dict is an arrival; a number selects the event that leaves."""
    table, there = EventHashes(distance, of_process=of_process), dict[int, Event]()
    for number, step in enumerate(steps):
        if isinstance(step, dict):
            event = Event(f"e{number}", step, 0)
            slot = table.add(event)
            assert slot not in there
            there[slot] = event
        elif there:
            gone = sorted(there)[step % len(there)]  # type: ignore[operator]
            table.remove(gone)
            del there[gone]
        assert len(table) == len(there)
    distances_hold(table, there, distance)


@pytest.mark.parametrize("distance", KNOWN, ids=["overlap", "jaccard", "weighted"])
def test_many_events_are_added_at_once(distance: Distance) -> None:
    events = [Event(f"e{i}", {"a": i % 3, "b": [i % 2, 7], f"c{i % 5}": "x"}, 0) for i in range(50)]
    table = EventHashes(distance)
    there = dict(zip(table.add_many(events[:20]), events, strict=False))
    for slot in list(there)[::2]:
        table.remove(slot)
        del there[slot]
    there |= dict(zip(table.add_many(events[20:]), events[20:], strict=True))
    assert max(there) < table.capacity
    distances_hold(table, there, distance)


def test_memory_stays_bounded_over_a_long_stream() -> None:
    table, slots = EventHashes(Overlap()), []
    for number in range(2000):
        slots.append(table.add(Event(f"e{number}", dict.fromkeys("abcdefgh", number), 0)))
        if len(slots) > 10:
            table.remove(slots.pop(0))
    assert table.capacity <= 16
    assert len(table._pools[0]) <= 4 * 8 * 11


@pytest.mark.parametrize("slot", [0, 3, 99])
def test_removing_a_free_slot_is_refused(slot: int) -> None:
    table = EventHashes(Jaccard())
    table.remove(table.add(Event("e", {"a": 1}, 0)))
    with pytest.raises(TidingsError, match=f"slot {slot} is free"):
        table.remove(slot)


def test_user_defined_distances_are_refused() -> None:
    class Other(Jaccard):
        name = "other"

    with pytest.raises(InvalidPolicy, match="overlap and jaccard, not other"):
        EventHashes(Other())


def test_attributes_that_are_gone_are_forgotten() -> None:
    """Names of attributes may come and go without end; masks stay while few are in use."""
    table, there = EventHashes(Overlap()), dict[int, Event]()
    for number in range(600):
        event = Event(f"e{number}", {f"a{number}": 1, f"a{number // 2}": 2, "b": number % 3}, 0)
        there[table.add(event)] = event
        if len(there) > 20:
            oldest = min(there, key=lambda slot: int(there[slot].id[1:]))
            table.remove(oldest)
            del there[oldest]
    assert 0 < table.rows.masks.shape[1] <= 4
    distances_hold(table, there, Overlap())


def test_rows_of_very_many_attributes_are_merged() -> None:
    table = EventHashes(Overlap())
    events = [Event(f"e{i}", {f"a{i * 30 + j}": 1 for j in range(40)}, 0) for i in range(20)]
    there = dict(zip(table.add_many(events), events, strict=True))
    assert table.rows.masks.shape[1] == 0
    distances_hold(table, there, Overlap())
