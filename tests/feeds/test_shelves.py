"""Windows in pools: distances taken once, rows that are found again, and codes that run out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import distances
from tidings.diversify.divrank import DivRank
from tidings.feeds.events import EventTable
from tidings.feeds.shelves import WIDEST, Shelves
from tidings.feeds.traits import Traits
from tidings.kernels.window_diverse import code_all, put, spell
from tidings.model import Event

PART = DivRank()
attributes = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)


def known(events: list[Event]) -> tuple[EventTable, Traits]:
    """Events in slots 0, 1, 2..., and what is noted of them."""
    table, traits = EventTable(), Traits(PART, measured=True)
    slots = [table.slot(each, lambda _: None) for each in events]
    traits.note(table, np.array(slots, np.int32))
    return table, traits


def enter(shelves: Shelves, grade: int, seat: int, slots: list[int]) -> None:
    for number, slot in enumerate(slots, start=1):
        place = put(shelves.pools[grade], seat, number - 2, (slot, 0.5, -1, 2 * number))
        shelves.measure(grade, seat, place)


def spelled(shelves: Shelves, grade: int, seat: int, count: int) -> np.ndarray:
    matrix = np.empty((count, count))
    places = np.arange(count)
    spell(shelves.pools[grade], seat, shelves.codes, places, matrix)
    return matrix


@given(st.lists(attributes, min_size=1, max_size=8))
def test_kept_distances_are_those_of_the_events_also_in_a_wider_row(
    values: list[dict[str, int]],
) -> None:
    events = [Event(f"e{n}", each, n) for n, each in enumerate(values)]
    table, traits = known(events)
    shelves = Shelves(100, traits, kept=True)
    seat = shelves.take(0)
    enter(shelves, 0, seat, [table.slot_of(each.id) for each in events])
    expected = distances(events, PART.distance)
    assert (spelled(shelves, 0, seat, len(events)) == expected).all()
    there = shelves.move(0, seat, 1)
    assert (spelled(shelves, 1, there, len(events)) == expected).all()
    assert shelves.pools[0][0].size == 0


@pytest.mark.parametrize("before", [250, 65_530])
def test_distances_stay_the_same_when_their_codes_run_out(before: int) -> None:
    events = [Event(f"e{n}", {"a": n % 2, "b": n % 3, "c": n % 5}, n) for n in range(8)]
    table, traits = known(events)
    shelves = Shelves(100, traits, kept=True)
    slots, expected = [table.slot_of(each.id) for each in events], distances(events, PART.distance)
    first, second = shelves.take(0), shelves.take(0)
    enter(shelves, 0, first, slots)
    shelves._make_room(before)
    code_all(shelves.codes, np.arange(1, before - int(shelves.codes[2][0])) / 70_001)
    enter(shelves, 0, second, slots[::-1])
    assert (spelled(shelves, 0, first, 8) == expected).all()
    assert (spelled(shelves, 0, second, 8) == expected[::-1, ::-1]).all()
    assert shelves.pools[0][4].itemsize == (2 if before < 1000 else 4)


def test_rows_are_as_wide_as_their_grade_and_are_given_again() -> None:
    shelves = Shelves(100, known([])[1], kept=True)
    assert [shelves.width(grade) for grade in range(-1, 5)] == [0, 8, 16, 32, 64, 100]
    assert [shelves.grade(places) for places in (1, 8, 9, 65, 100)] == [0, 0, 1, 4, 4]
    seats = [shelves.take(1) for _ in range(20)]
    assert sorted(seats) == list(range(20))
    shelves.give_back(1, 7)
    assert shelves.take(1) == 7
    for seat in seats:
        shelves.give_back(1, seat)
    assert shelves.nbytes == 0
    assert shelves.take(1) == 0


def test_wide_windows_keep_no_distances() -> None:
    shelves = Shelves(1 << 20, known([])[1], kept=True)
    wide = shelves.grade(WIDEST)
    assert shelves.keeps(wide)
    assert not shelves.keeps(wide + 1)
    shelves.take(wide + 1)
    assert shelves.pools[wide + 1][4].size == 0
