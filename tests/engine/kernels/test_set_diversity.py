"""Distances to the last deliveries of a subscriber, against lists of deliveries."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify.distance import Overlap
from tidings.diversify.hashed_distances import EventHashes
from tidings.engine.kernels.set_diversity import DeliveryRings, measure_deliveries
from tidings.model.records import Event

EVENTS = [
    Event("a", {"x": 1, "y": 1}, 0),
    Event("b", {"x": 1, "y": 2}, 0),
    Event("c", {"x": 2, "z": 1}, 0),
    Event("d", {}, 0),
]
WEIGHTS = {"x": 2.0, "y": 0.5, "z": 0.25}


class Measured:
    """Rings of two subscribers, and the events by slot."""

    def __init__(self, width: int, weights: dict[str, float]) -> None:
        self.distance = Overlap(weights)
        self.hashes = EventHashes(self.distance)
        self.slots = self.hashes.add_many(EVENTS)
        self.rings = DeliveryRings(np.full((2, width), -1, np.int32), np.zeros(2, np.int64))
        self.references = np.zeros(self.hashes.capacity, np.int64)
        self.by_subscriber = np.zeros((2, 2))

    @property
    def sums(self):
        return self.by_subscriber.sum(axis=0)

    def deliver(self, *pairs: tuple[int, int]) -> None:
        subscribers = np.array([subscriber for subscriber, _ in pairs], np.int64)
        events = np.array([self.slots[event] for _, event in pairs], np.int64)
        measure_deliveries(
            self.hashes.rows, subscribers, events, self.rings, self.references, self.by_subscriber
        )


def test_each_delivery_is_compared_with_the_last_ones_of_its_subscriber():
    """a-b are 1/2 apart, a-c and b-c 1; subscriber 1 has only one delivery."""
    measured = Measured(2, {})
    measured.deliver((0, 0), (1, 2), (0, 1), (0, 2))
    assert measured.sums.tolist() == [2.5, 3.0]
    assert measured.rings.counts.tolist() == [3, 1]


def test_a_full_ring_forgets_its_oldest_delivery():
    measured = Measured(2, {})
    measured.deliver((0, 0), (0, 1), (0, 2))
    assert measured.rings.ring[0].tolist() == [measured.slots[2], measured.slots[1]]
    references = measured.references[measured.slots]
    assert references.tolist() == [0, 1, 1, 0]


def test_weights_count():
    measured = Measured(2, WEIGHTS)
    measured.deliver((0, 0), (0, 1))
    assert measured.sums.tolist() == [0.5 / 2.5, 1.0]


def test_no_deliveries_change_nothing():
    measured = Measured(2, {})
    measured.deliver()
    assert measured.sums.tolist() == [0.0, 0.0]
    assert not measured.references.any()


@pytest.mark.parametrize("weights", [{}, WEIGHTS], ids=["plain", "weighted"])
@given(
    st.integers(1, 3),
    st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=6), max_size=3),
)
def test_sums_and_references_are_those_of_lists(weights, width, batches):
    measured = Measured(width, weights)
    sent: list[list[int]] = [[], []]
    total, count = Fraction(0), 0
    for batch in batches:
        measured.deliver(*batch)
        for subscriber, event in batch:
            for other in sent[subscriber][-width:]:
                total += Fraction(measured.distance.between(EVENTS[event], EVENTS[other]))
                count += 1
            sent[subscriber].append(event)
    assert measured.sums.tolist() == [pytest.approx(float(total)), count]
    held = Counter(event for events in sent for event in events[-width:])
    assert measured.references[measured.slots].tolist() == [held[event] for event in range(4)]
    assert measured.rings.counts.tolist() == [len(events) for events in sent]
