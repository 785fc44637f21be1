"""Features of events: numbers that sort as their ids do, distances and LSH bands."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import distances
from tidings.diversify.dispersion import MaxMin
from tidings.diversify.distance import Jaccard
from tidings.diversify.divrank import DivRank
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.feed.columnar.event_features import FeatureCache, FeatureTable
from tidings.feed.columnar.event_table import EventTable
from tidings.model.records import Event

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
    assert (hashed.bands[slots] == MaxDivRelLsh().bands(events)).all()
    assert hashed.hashes is None


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
