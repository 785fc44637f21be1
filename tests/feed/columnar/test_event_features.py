"""What is noted of events: numbers in the order of their ids, distances and bands."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import distances
from tidings.diversify.dispersion import MaxMin
from tidings.diversify.distance import Jaccard
from tidings.diversify.divrank import DivRank
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.feed.columnar.event_features import AllTraits, Traits
from tidings.feed.columnar.event_table import EventTable
from tidings.model.records import Event

names = st.lists(st.text("abz", min_size=1, max_size=3), unique=True, max_size=30)


def noted(traits: Traits, table: EventTable, events: list[Event]) -> np.ndarray:
    slots = np.array([table.slot(each, lambda _: None) for each in events], np.int32)
    traits.note(table, slots)
    return slots


@given(names)
def test_numbers_sort_as_ids_do_whatever_their_times(ids: list[str]) -> None:
    traits, table = Traits(DivRank(), measured=True), EventTable()
    slots = noted(traits, table, [Event(name, {}, n // 3) for n, name in enumerate(ids)])
    by_number = [ids[n] for n in np.argsort(traits.names[slots])]
    assert by_number == sorted(ids)


def test_numbers_last_for_ever() -> None:
    """Ids that only grow, in slots that are given again, never run out of numbers."""
    traits, table = Traits(DivRank(), measured=True), EventTable()
    last = -1
    for number in range(300):
        event = Event(f"e{number:06d}", {"a": number % 7}, number)
        [slot] = noted(traits, table, [event])
        assert slot == last or last < 0 or traits.names[slot] > traits.names[last]
        if number == 10:
            traits.names[slot] = (1 << 61) - 5
        table.young[slot], last = False, slot
    assert traits.names.max() < 1 << 60
    assert len(traits.names) == len(table.us) <= 128
    assert len(traits._ids) <= len(traits.names)
    assert traits.crowd is not None
    assert len(traits.crowd) == len(traits._ids)


def test_distances_and_bands_are_those_of_the_events() -> None:
    events = [Event(f"e{n}", {"a": n % 2, "b": n % 3}, n) for n in range(100)]
    measured, hashed = Traits(DivRank(), measured=True), Traits(MaxDivRelLsh(), measured=False)
    table = EventTable()
    slots = noted(measured, table, events)
    assert measured.crowd is not None
    found = measured.crowd.matrix(measured.members[slots])
    assert (found == distances(events, DivRank().distance)).all()
    hashed.note(table, slots)
    assert (hashed.bands[slots] == MaxDivRelLsh().bands(events)).all()
    assert hashed.crowd is None


def test_what_nobody_needs_any_more_is_forgotten() -> None:
    every = AllTraits()
    kept = every.of(DivRank(), measured=True)
    for seed in range(50):
        every.of(MaxDivRelLsh(seed=seed), measured=False)
    assert [*every._made.values()] == [kept]


def test_who_needs_the_same_of_events_shares_it() -> None:
    every = AllTraits()
    assert every.of(DivRank(), measured=True) is every.of(MaxMin(sigma=0.2), measured=True)
    jaccard = DivRank(distance=Jaccard())
    hashing, seeded = MaxDivRelLsh(), MaxDivRelLsh(seed=5)
    kinds = [
        every.of(DivRank(), measured=True),
        every.of(DivRank(), measured=False),
        every.of(jaccard, measured=True),
        every.of(hashing, measured=False),
        every.of(seeded, measured=False),
    ]
    assert len({id(each) for each in kinds}) == len(kinds)
    assert every.of(MaxDivRelLsh(), measured=False) is kinds[3]
