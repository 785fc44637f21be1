"""The model: each cost and each demand has the effect that its formula states."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Continuous, History, Jumping, Periodic, Policy, Sliding
from tidings.errors import InvalidForm
from tidings.lab.capacity.model import (
    Calibration,
    Costs,
    Demand,
    buckets_reached,
    event_seconds,
    events_per_second,
    held_at_most,
    make_plan,
    read_calibration,
    read_costs,
    state_bytes,
    trigger_seconds,
)

COSTS = Costs(
    trigger_s=0.5,
    event_us=30,
    bucket_us=3,
    match_us=10,
    growth_us=1,
    state_byte_us=0.01,
    build_us=50,
    index_bytes=160,
    subscriber_bytes=40,
    held_bytes=20,
    event_bytes=50,
    overlap=0.8,
)
DEMAND = Demand(400_000, 50_000, 100.0, 20.0, Policy(window=Sliding(100)), trigger_s=10.0)


def test_a_trigger_adds_up() -> None:
    reached = buckets_reached(20, 10)
    assert reached == pytest.approx(10 * (1 - 0.9**20))
    seconds = (30 + 3 * reached + 20 * (10 + 1 * 2)) / 1e6
    assert event_seconds(COSTS, DEMAND.subscriptions, 20, reached) == pytest.approx(seconds)
    # Ten buckets remember 32,768 ids each. The matches of an event in one bucket share it.
    stored = 50_000 * (40 + 100 * 20 + 100 * reached / 20 * 50) + 10 * 32_768 * 24
    assert state_bytes(COSTS, DEMAND) == pytest.approx(stored)
    expected = 0.5 + 1_000 * seconds + stored * 0.01 / 1e6
    assert trigger_seconds(COSTS, DEMAND) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("window", "held"),
    [
        (Continuous(), 0),
        (Sliding(100), 100),
        (Sliding("1h"), 7_200),
        (Jumping(50, 10), 50),
        (Periodic("30m"), 3_600),
        (Periodic(at=["08:00"], zone="UTC"), 2 * 86_400),
        (History(30), 30),
    ],
)
def test_windows_hold_their_length_or_what_arrives_meanwhile(window: object, held: float) -> None:
    assert held_at_most(window, 2.0) == held


def test_a_plan_covers_its_demand() -> None:
    plan = make_plan(Calibration(COSTS), DEMAND)
    assert plan.breaks_first.events_per_s >= DEMAND.events_per_s
    assert plan.buckets % plan.parts == 0
    assert plan.buckets >= DEMAND.subscribers / 5_000
    assert plan.memory_bytes > plan.index_bytes + plan.state_bytes
    assert plan.to_dict()["breaks_first"]["events_per_s"] == plan.breaks_first.events_per_s


@given(st.floats(1, 1e5), st.floats(1, 1e3), st.integers(10**4, 10**8), st.integers(1, 8))
def test_more_of_anything_never_takes_fewer_cores(
    events: float, matches: float, subscriptions: int, factor: int
) -> None:
    demand = replace(DEMAND, events_per_s=events, matches=matches, subscriptions=subscriptions)
    cores = make_plan(Calibration(COSTS), demand).cores
    for larger in (
        replace(demand, events_per_s=events * factor),
        replace(demand, matches=matches * factor),
        replace(demand, subscriptions=subscriptions * factor),
        replace(demand, subscribers=demand.subscribers * factor),
    ):
        assert make_plan(Calibration(COSTS), larger).cores >= cores
    most = events_per_second(COSTS, demand, cores)
    assert most >= demand.events_per_s


def test_a_plan_says_how_far_other_costs_lead_elsewhere() -> None:
    dearer = Calibration(COSTS, (replace(COSTS, match_us=30), COSTS))
    demand = replace(DEMAND, events_per_s=50_000)
    plan = make_plan(dearer, demand)
    assert plan.fewest_cores == plan.cores < plan.most_cores
    assert plan.most_cores == make_plan(Calibration(dearer.others[0]), demand).cores
    assert read_calibration(dearer.to_dict()) == dearer
    with pytest.raises(InvalidForm, match="others must be a list of costs, not 3"):
        read_calibration(COSTS.to_dict() | {"others": 3})


def test_costs_survive_their_form_and_others_are_refused() -> None:
    assert read_costs(COSTS.to_dict()) == COSTS
    assert read_calibration(COSTS.to_dict()) == Calibration(COSTS)
    later = ("bucket_us", "event_bytes")
    first = {name: cost for name, cost in COSTS.to_dict().items() if name not in later}
    assert read_costs(first) == replace(COSTS, bucket_us=0, event_bytes=0)
    with pytest.raises(InvalidForm, match="a calibration has the fields"):
        read_costs({"trigger_s": 1})
    with pytest.raises(InvalidForm, match="match_us must be a number between 0 and "):
        read_costs(COSTS.to_dict() | {"match_us": "fast"})


@pytest.mark.parametrize("name", ["subscriptions", "events_per_s", "matches", "trigger_s"])
def test_nothing_to_plan_for_is_refused(name: str) -> None:
    nothing: dict[str, Any] = {name: 0}
    with pytest.raises(InvalidForm, match=f"{name} must be a number between 1e-09"):
        replace(DEMAND, **nothing)
