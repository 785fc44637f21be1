"""What is pruned before the shuffle could not have won; nothing else is."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Event, Policy, Subscriber, Subscription
from tidings.index_files.mapped_matcher import build_base
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.spark.match_stage.bucketize import addressed
from tidings.spark.match_stage.period_pruning import Period, pruned
from tidings.spark.state_stage.bucket import Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick

PERIODS: list[dict[str, Any]] = [
    {"window": {"name": "periodic", "length": "10s"}},
    {"window": {"name": "periodic", "length": "7s", "origin": 3, "wait": True}},
    {
        "window": {"name": "periodic", "length": "30s"},
        "decay": {"name": "exponential", "rate": 0.1},
    },
]
OTHERS: list[dict[str, Any]] = [
    {"window": {"name": "periodic", "length": 5}},
    {"window": {"name": "periodic", "length": "10s"}, "diversify": "divrank"},
    {"window": {"name": "sliding", "length": "10s"}},
    {"window": "continuous"},
    {"window": {"name": "history", "length": 5}},
    {"window": {"name": "jumping", "length": "10s", "step": "5s"}},
]


def member(name: str, k: int, form: dict[str, Any]) -> SubscriberBundle:
    ranks = [Subscription(f"{name}{n}", name, f"n = {n}", prefrank=n / 4) for n in range(4)]
    return SubscriberBundle(name, Subscriber(name, Policy(k=k, **form)), ranks)


def stream(seed: int, count: int = 60) -> list[Event]:
    chance = Random(seed)
    times = sorted(chance.randrange(60) for _ in range(count))
    return [Event(f"e{n}", {"n": chance.randrange(4)}, at) for n, at in enumerate(times)]


def delivered(
    served: OverlayMatcher, batches: list[list[Event]], lateness_us: int, prune: bool
) -> Any:
    """Run batches through one bucket: what each subscriber gets, in order."""
    people = {name: Subscriber(name, served.policy(name) or Policy()) for name in "pqr"}
    bucket = Bucket(people)
    bucket._terms = Terms(lateness_us)
    found = []
    for events in batches:
        parcels = list(addressed(served, events, 1, prune=prune).parcels.values())
        ticks = [Tick(max(event.published_us for event in events), 0)]
        found += bucket.run(parcels, ticks).to_pylist()
    found += bucket.run([], [Tick(10**9, 0)]).to_pylist()
    kept = ("subscriber", "event", "rank", "position", "matched", "sequence")
    return [tuple(row[name] for name in kept) for row in found if row["kind"] == "delivery"]


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 8_000_000]))
def test_what_is_delivered_stays_the_same(seed: int, k: int, lateness_us: int) -> None:
    served = OverlayMatcher(
        build_base([member(name, k, form) for name, form in zip("pqr", PERIODS, strict=True)])
    )
    chance, events = Random(seed), stream(seed)
    if chance.random() < 0.5:
        chance.shuffle(events)
    cuts = sorted(chance.sample(range(1, 60), 3))
    batches = [events[a:b] for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]
    plain, fewer = (delivered(served, batches, lateness_us, prune) for prune in (False, True))
    assert sorted(fewer) == sorted(plain)


@pytest.mark.parametrize("form", PERIODS)
def test_much_is_pruned_of_who_matches_everything(form: dict[str, Any]) -> None:
    served, events = OverlayMatcher(build_base([member("p", 2, form)])), stream(7, 400)
    wanted = served.wanted(events)
    kept = pruned(served, events, wanted)
    assert len(wanted.subscribers) == 400
    assert len(kept.subscribers) < 100
    assert len(kept.matched) == len(kept.subscribers)
    assert np.all(np.diff(kept.starts) >= 0)


@pytest.mark.parametrize("form", OTHERS)
def test_other_policies_get_everything(form: dict[str, Any]) -> None:
    served, events = OverlayMatcher(build_base([member("p", 1, form)])), stream(7)
    assert Period.of(served.policy("p")).k == 0
    assert len(pruned(served, events, served.wanted(events)).subscribers) == 60


def test_young_members_are_pruned_as_well() -> None:
    young = [member("p", 1, PERIODS[0]), member("q", 1, OTHERS[3])]
    served, events = OverlayMatcher(build_base([member("o", 1, PERIODS[0])]), young), stream(3)
    kept = pruned(served, events, served.wanted(events))
    counts = np.bincount(kept.subscribers, minlength=3)
    assert counts[0] < 30
    assert max(counts[1:].tolist()) == 60
    assert min(counts[1:].tolist()) < 30
