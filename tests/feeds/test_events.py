"""The table of events: slots, the order of ids at one time, and room that is found again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feeds.events import UNNUMBERED, EventTable, Ids
from tidings.model import Event


def nothing(_: Ids) -> None:
    """Mark no slot as used."""


def event(name: str, at: float = 0, sequence: int | None = None) -> Event:
    return Event(name, {"n": name}, published_at=at, sequence=sequence)


def test_an_event_has_one_slot() -> None:
    table = EventTable()
    first, second = event("a", 1, 7), event("b", 2)
    slots = [table.slot(each, nothing) for each in (first, second, first)]
    assert slots[0] == slots[2] != slots[1]
    assert table.event(slots[0]) is first
    assert table.slot_of("b") == slots[1]
    assert table.us[slots].tolist() == [1_000_000, 2_000_000, 1_000_000]
    assert table.sequence[slots].tolist() == [7, UNNUMBERED, 7]
    assert len(table) == 2


@given(st.lists(st.text("abc", min_size=1, max_size=4), unique=True, max_size=80))
def test_ties_go_as_the_ids_do_whatever_the_order_of_arrival(ids: list[str]) -> None:
    table = EventTable()
    slots = {name: table.slot(event(name), nothing) for name in ids}
    assert sorted(ids) == sorted(ids, key=lambda name: table.tie[slots[name]])
    assert len({int(table.tie[slot]) for slot in slots.values()}) == len(ids)


def test_ties_find_room_where_ids_come_ever_closer() -> None:
    """Each id lies between the two before it; there are more of them than bits in a number."""
    table, low, high = EventTable(), "a", "b"
    ids = [low, high]
    for number in range(100):
        low, high = (low + "m", high) if number % 2 else (low, low + "z" + high[-1:])
        ids += [each for each in (low, high) if each not in ids]
    slots = {name: table.slot(event(name), lambda alive: alive.fill(1)) for name in ids}
    assert sorted(ids) == sorted(ids, key=lambda name: table.tie[slots[name]])


def test_slots_that_nobody_uses_are_given_again() -> None:
    table = EventTable()
    kept = table.slot(event("kept"), nothing)
    table.young[:] = False

    def mark(alive: Ids) -> None:
        alive[kept] = 1

    for number in range(1000):
        slot = table.slot(event(f"e{number}", at=number), mark)
        assert slot != kept
        table.young[slot] = False
    assert len(table.objects) < 200
    assert table.event(kept).id == "kept"
    assert table.generation > 0


def test_a_slot_is_kept_until_its_event_was_offered() -> None:
    table = EventTable()
    slots = [table.slot(event(f"e{number}"), nothing) for number in range(500)]
    assert len(set(slots)) == 500
    table.young[:] = False
    again = [table.slot(event(f"f{number}"), nothing) for number in range(500)]
    assert len(table.objects) <= 2048
    assert len(set(again)) == 500
    alive = np.array([table.objects[slot] is not None for slot in again])
    assert alive.all()
