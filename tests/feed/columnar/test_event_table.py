"""The event table: slots, the order of ids at one time, and slots that are reused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.array_types import Int32s
from tidings.diversify import distances
from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank, MaxMin
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.errors import StateError
from tidings.feed.columnar.event_table import EventTable, FeatureCache, FeatureTable
from tidings.model.event_columns import UNNUMBERED
from tidings.model.records import Event


def nothing(_: Int32s) -> None:
    """Mark no slot as used."""


def event(name: str, at: float = 0, sequence: int | None = None) -> Event:
    return Event(name, {"n": name}, published_at=at, sequence=sequence)


def test_an_event_has_one_slot() -> None:
    table = EventTable()
    first, second = event("a", 1, 7), event("b", 2)
    slots = [table.slot(e, nothing) for e in (first, second, first)]
    assert slots[0] == slots[2] != slots[1]
    assert table.event(slots[0]) is first
    assert table.slot_of("b") == slots[1]
    assert table.us[slots].tolist() == [1_000_000, 2_000_000, 1_000_000]
    assert table.sequence[slots].tolist() == [7, UNNUMBERED, 7]
    assert len(table) == 2


@given(st.lists(st.text("abc", min_size=1, max_size=4), unique=True, max_size=80))
def test_the_id_order_does_not_depend_on_the_order_of_arrival(ids: list[str]) -> None:
    table = EventTable()
    slots = {name: table.slot(event(name), nothing) for name in ids}
    assert sorted(ids) == sorted(ids, key=lambda name: table.id_order[slots[name]])
    assert len({int(table.id_order[slot]) for slot in slots.values()}) == len(ids)


def test_the_id_order_is_renumbered_when_a_gap_is_used_up() -> None:
    """Each id lies between the two before it; there are more of them than bits in a number."""
    table, low, high = EventTable(), "a", "b"
    ids = [low, high]
    for number in range(100):
        low, high = (low + "m", high) if number % 2 else (low, low + "z" + high[-1:])
        ids += [name for name in (low, high) if name not in ids]
    slots = {name: table.slot(event(name), lambda alive: alive.fill(1)) for name in ids}
    assert sorted(ids) == sorted(ids, key=lambda name: table.id_order[slots[name]])


def test_unused_slots_are_reused() -> None:
    table = EventTable()
    kept = table.slot(event("kept"), nothing)
    table.pending[:] = False

    def mark(alive: Int32s) -> None:
        alive[kept] = 1

    for number in range(1000):
        slot = table.slot(event(f"e{number}", at=number), mark)
        assert slot != kept
        table.pending[slot] = False
    assert len(table.objects) < 200
    assert table.event(kept).id == "kept"
    assert table.generation > 0


def test_a_slot_is_kept_until_its_event_has_been_offered() -> None:
    table = EventTable()
    slots = [table.slot(event(f"e{number}"), nothing) for number in range(500)]
    assert len(set(slots)) == 500
    table.pending[:] = False
    again = [table.slot(event(f"f{number}"), nothing) for number in range(500)]
    assert len(table.objects) <= 2048
    assert len(set(again)) == 500
    alive = np.array([table.objects[slot] is not None for slot in again])
    assert alive.all()


small = st.text("abc", min_size=1, max_size=3)
published = st.lists(st.tuples(st.integers(0, 3), small), unique_by=lambda row: row[1])


@given(published, st.integers(1, 7))
def test_many_events_at_once_are_like_one_by_one(rows: list[tuple[int, str]], size: int) -> None:
    """Also if the events of one time are split over calls, or some are in the table already."""
    alone, together = EventTable(), EventTable()
    stream = sorted(rows, key=lambda row: row[0])
    for us, name in stream:
        alone.slot(Event(name, {}, us / 1e6, us), nothing)
    slots: dict[str, int] = {}
    for first in range(0, len(stream), size):
        batch = stream[max(0, first - 2) : first + size]
        ids, times = [name for _, name in batch], np.array([us for us, _ in batch])
        slots |= zip(ids, together.slots(ids, times, times, nothing).tolist(), strict=True)
    assert len(set(slots.values())) == len(together) == len(alone) == len(stream)
    for name, slot in slots.items():
        assert together.id(slot) == name
        other = alone.slot_of(name)
        assert (together.us[slot], together.sequence[slot]) == (alone.us[other],) * 2
    for time in range(4):
        same = [name for us, name in stream if us == time]
        assert sorted(same) == sorted(same, key=lambda name: together.id_order[slots[name]])
        assert len({int(together.id_order[slots[name]]) for name in same}) == len(same)


def test_many_events_reuse_slots() -> None:
    table = EventTable()
    for turn in range(20):
        ids, us = [f"{turn}-{n}" for n in range(60)], np.arange(60) + 60 * turn
        slots = table.slots(ids, us, us, nothing)
        assert [table.id(slot) for slot in slots.tolist()] == ids
        table.pending[:] = False
    assert len(table.ids) <= 256


def test_an_event_may_be_known_by_its_id_only() -> None:
    table, one = EventTable(), np.ones(1, np.int64)
    [slot] = table.slots(["a"], one, one, nothing).tolist()
    with pytest.raises(StateError, match="only the id of event a is known"):
        table.event(slot)
    whole = event("a", 1e-6, 1)
    assert table.slot(whole, nothing) == slot
    assert table.event(slot) is whole
    [other] = table.slots(["b"], one, one, nothing).tolist()
    table.describe(other, table.form(slot).replace('"a"', '"b"'))
    assert table.event(other) == Event("b", {"n": "b"}, 1e-6, 1)
    with pytest.raises(LookupError, match="holds no event"):
        table.id(63)


def test_content_is_dropped_with_its_event_and_a_form_leaves_it_out() -> None:
    table, kept = EventTable(), list[int]()

    def mark(alive: Int32s) -> None:
        alive[kept] = 1

    for number in range(1000):
        event = Event(f"e{number}", {"n": number}, number, content={"n": number})
        slot = table.slot(event, mark)
        kept = [*kept[-3:], slot]
        table.pending[:] = False
        assert table.contents[slot] == event.content_json
        assert "content" not in json.loads(table.form(slot))
    assert len(table.contents) <= len(table.ids) <= 128
    table.describe(slot, table.form(slot))
    table.objects[slot] = None
    assert table.event(slot) == event.carrying(None)
    assert table.whole_event(slot) == event


def test_an_id_that_is_published_again_has_its_new_time_and_content() -> None:
    table, held = EventTable(), list[int]()

    def mark(alive: Int32s) -> None:
        alive[held] = 1

    first = table.slot(Event("e", {}, 1, content={"n": 1}), mark)
    table.pending[:] = False
    held = [first]
    assert table.slot(Event("e", {}, 2, content={"n": 2}), mark) == first
    assert table.contents[first] == '{"n":1}'  # a window holds the first one
    held = []
    second = table.slot(Event("e", {}, 3, content={"n": 3}), mark)
    assert (table.us[second], table.contents[second]) == (3_000_000, '{"n":3}')
    assert len(table) == 1


names = st.lists(st.text("abz", min_size=1, max_size=3), unique=True, max_size=30)


def added(features: FeatureTable, table: EventTable, events: list[Event]) -> np.ndarray:
    slots = np.array([table.slot(event, lambda _: None) for event in events], np.int32)
    features.add(table, slots.tolist())
    return slots


@given(names)
def test_numbers_sort_as_ids_do_whatever_their_times(ids: list[str]) -> None:
    features, table = FeatureTable(DivRank(), measured=True), EventTable()
    slots = added(features, table, [Event(name, {}, n // 3) for n, name in enumerate(ids)])
    by_number = [ids[n] for n in np.argsort(features.id_order[slots])]
    assert by_number == sorted(ids)


def test_numbers_never_run_out() -> None:
    """Even if ids only grow, in slots that are reused."""
    features, table = FeatureTable(DivRank(), measured=True), EventTable()
    last = -1
    for number in range(300):
        event = Event(f"e{number:06d}", {"a": number % 7}, number)
        [slot] = added(features, table, [event])
        assert slot == last or last < 0 or features.id_order[slot] > features.id_order[last]
        if number == 10:
            features.id_order[slot] = (1 << 61) - 5
        table.pending[slot], last = False, slot
    assert features.id_order.max() < 1 << 60
    assert len(features.id_order) == len(table.us) <= 128
    assert len(features._ids) <= len(features.id_order)
    assert features.hashes is not None
    assert len(features.hashes) == len(features._ids)


def test_distances_and_bands_are_those_of_the_events() -> None:
    events = [Event(f"e{n}", {"a": n % 2, "b": n % 3}, n) for n in range(100)]
    measured, hashed = (
        FeatureTable(DivRank(), measured=True),
        FeatureTable(MaxDivRelLsh(), measured=False),
    )
    table = EventTable()
    slots = added(measured, table, events)
    assert measured.hashes is not None
    matrix = measured.hashes.matrix(measured._rows[slots])
    assert (matrix == distances(events, DivRank().distance)).all()
    hashed.add(table, slots.tolist())
    assert (hashed.bands(slots) == MaxDivRelLsh().bands(events)).all()
    assert hashed.hashes is None


def test_bands_are_kept_only_for_events_in_windows() -> None:
    """Other windows over the table may hold many more events."""
    lsh, table = MaxDivRelLsh(tables=3, rows=1), EventTable()
    features = FeatureTable(lsh, measured=False)
    window = _Window()
    features.holders.add(window)
    for number in range(1000):
        event = Event(f"e{number:04}", {"a": number}, number)
        slot = table.slot(event, lambda alive: alive.fill(1))
        features.add(table, [slot])
        table.offered(np.array([slot], np.int32))
        window.slots = [*window.slots[-9:], slot]
        expected = lsh.bands([table.event(held) for held in window.slots])
        assert (features.bands(np.array(window.slots)) == expected).all()
    assert len(table) == 1000
    assert len(features._bands) == 64
    assert len(features._ids) <= 64


class _Window:
    """A window that holds some slots."""

    def __init__(self) -> None:
        self.slots = list[int]()

    def mark_slots(self, alive: Int32s) -> None:
        alive[self.slots] = 1


def test_unused_tables_are_forgotten() -> None:
    cache = FeatureCache()
    kept = cache.table(DivRank(), measured=True)
    for seed in range(50):
        cache.table(MaxDivRelLsh(seed=seed), measured=False)
    assert [*cache._tables.values()] == [kept]


def test_equal_needs_share_a_table() -> None:
    cache = FeatureCache()
    assert cache.table(DivRank(), measured=True) is cache.table(MaxMin(sigma=0.2), measured=True)
    jaccard = DivRank(distance=Jaccard())
    hashing, seeded = MaxDivRelLsh(), MaxDivRelLsh(seed=5)
    kinds = [
        cache.table(DivRank(), measured=True),
        cache.table(DivRank(), measured=False),
        cache.table(jaccard, measured=True),
        cache.table(hashing, measured=False),
        cache.table(seeded, measured=False),
    ]
    assert len({id(kind) for kind in kinds}) == len(kinds)
    assert cache.table(MaxDivRelLsh(), measured=False) is kinds[3]
