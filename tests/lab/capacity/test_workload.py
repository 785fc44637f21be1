"""The workload of the calibration has as many matches as it promises, each of another owner."""

import pytest

from tidings import Event, Policy
from tidings.errors import InvalidForm
from tidings.lab.capacity.workload import CapacityWorkload


def test_events_have_the_promised_matches_of_different_subscribers() -> None:
    workload = CapacityWorkload(3_000, 600, 12.0, Policy())
    interests = [*workload.interests()]
    rows = workload.events(0, 400).to_pylist()
    events = [
        Event(row["id"], {"category": row["category"], "price": row["price"]}, number)
        for number, row in enumerate(rows)
    ]
    owners = [
        [interest.subscriber for interest in interests if interest.matches(event)]
        for event in events
    ]
    assert sum(map(len, owners)) / len(events) == pytest.approx(12.0, rel=0.1)
    assert all(len({*owner}) == len(owner) for owner in owners)


def test_the_same_seed_makes_the_same_workload() -> None:
    one, two = (CapacityWorkload(90, 30, 3.0, Policy()) for _ in range(2))
    assert [*one.interests()] == [*two.interests()]
    assert one.events(5, 10) == two.events(5, 10)
    assert one.events(5, 10)["id"][0].as_py() == "e5"


def test_more_matches_than_subscribers_are_refused() -> None:
    with pytest.raises(InvalidForm, match="40 matches per event need at least 120 subscriptions"):
        CapacityWorkload(1_000, 100, 40.0, Policy())
