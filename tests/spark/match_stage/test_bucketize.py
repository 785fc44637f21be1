"""Match batches hold every match once, in the bucket of its subscriber."""

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index_files.test_overlay_matcher import groups, scan
from tests.rank.bulk.test_ranker import EVENTS

from tidings import Event, Policy, Subscriber, Subscription
from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.index_files.mapped_matcher import build_base
from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.bucketize import (
    PrunablePeriod,
    mark_beaten,
    match_by_bucket,
    prune_periods,
)
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.watermark import Tick
from tidings.testing import workload

MatchSet = set[tuple[str, str, float, tuple[str, ...]]]


def written_out(batch: MatchBatch) -> list[tuple[str, str, float, tuple[str, ...]]]:
    """Return the matches of a batch: event, subscriber, rank, subscriptions."""
    rows = []
    for number, event in enumerate(batch.events):
        for subscriber, rank, matched in batch.matches.rows(number):
            ids = tuple(batch.subscriptions[each] for each in matched)
            rows.append((event, batch.subscribers[subscriber], rank, ids))
    return rows


def expected(matcher: Matcher, events: list[Event]) -> MatchSet:
    return {
        (event.id, match.subscriber, match.score, match.matched)
        for event in events
        for match in matcher.matches(event)
    }


@given(groups, groups, st.integers(1, 4))
def test_batches_have_all_matches_in_the_buckets_of_their_subscribers(first, later, buckets):
    batches = match_by_bucket(OverlayMatcher(build_base(first), later), EVENTS, buckets).batches
    addressed = [
        (bucket, match)
        for bucket, batch in batches.items()
        for match in written_out(MatchBatch.unpack(batch.pack()))
    ]
    assert all(bucket_of(name, buckets) == bucket for bucket, (_, name, _, _) in addressed)
    present = {each.name: each for each in [*first, *later]}
    matches = [match for _, match in addressed]
    assert len(set(matches)) == len(matches)
    assert set(matches) == expected(scan(present), EVENTS)
    for batch in batches.values():
        order = [[event.id for event in EVENTS].index(id) for id in batch.events]
        assert order == sorted(order)
        assert all(np.diff(batch.matches.starts) > 0)


def test_events_have_their_times_and_sequence_numbers():
    member = SubscriberBundle("ann", Subscriber("ann"), [Subscription("s", "ann", "a = 1")])
    events = [
        Event("e1", {"a": 1}, published_at=3, sequence=9),
        Event("e2", {"a": 2}, published_at=4, sequence=10),
        Event("e3", {"a": 1}, published_at=2),
    ]
    batch = match_by_bucket(in_memory_matcher([member]), events, 1).batches[0]
    assert batch.events == ["e1", "e3"]
    assert batch.us.tolist() == [3_000_000, 2_000_000]
    assert batch.sequence.tolist() == [9, UNNUMBERED]
    assert batch.forms == ["", ""]


@pytest.mark.parametrize(
    "policy", [Policy(diversify="maxmin"), Policy(window={"name": "history", "length": 3})]
)
def test_forms_are_sent_to_subscribers_that_compare_events(policy):
    plain = SubscriberBundle("ann", Subscriber("ann"), [Subscription("s1", "ann", "a = 1")])
    other = SubscriberBundle("bob", Subscriber("bob", policy), [Subscription("s2", "bob", "b = 1")])
    events = [Event("e1", {"a": 1}, 0), Event("e2", {"b": 1}, 0), Event("e3", {"a": 1, "b": 1}, 0)]
    batch = match_by_bucket(OverlayMatcher(build_base([plain, other])), events, 1).batches[0]
    assert batch.forms[0] == ""
    assert [json.loads(form) for form in batch.forms[1:]] == [e.to_dict() for e in events[1:]]


def test_a_workload_with_every_policy_is_split_whole():
    work = workload(seed=9, events=50, subscribers=40)
    compiled = OverlayMatcher(build_base(bundle_subscribers(work.subscribers, work.subscriptions)))
    batches = match_by_bucket(compiled, work.events, 8).batches
    matches = [
        match
        for batch in batches.values()
        for match in written_out(MatchBatch.unpack(batch.pack()))
    ]
    matcher = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert sorted(matches) == sorted(expected(matcher, work.events))


def test_nothing_is_sent_if_nothing_matches():
    assert match_by_bucket(in_memory_matcher([]), EVENTS, 3) == ({}, [], [])
    assert match_by_bucket(in_memory_matcher([]), [], 3) == ({}, [], [])


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
    matcher: OverlayMatcher, batches: list[list[Event]], lateness_us: int, prune: bool
) -> Any:
    """Run batches through one bucket; return the deliveries in order."""
    subscribers = {name: Subscriber(name, matcher.policy(name) or Policy()) for name in "pqr"}
    bucket = Bucket(ListedPolicies.of(subscribers), BucketSettings(lateness_us))
    rows = []
    for events in batches:
        matched = list(match_by_bucket(matcher, events, 1, prune=prune).batches.values())
        ticks = [Tick(max(event.published_us for event in events), 0)]
        rows += bucket.run(matched, ticks).to_pylist()
    rows += bucket.run([], [Tick(10**9, 0)]).to_pylist()
    columns = ("subscriber", "event", "rank", "position", "matched", "sequence")
    return [tuple(row[name] for name in columns) for row in rows if row["kind"] == "delivery"]


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 8_000_000]))
def test_deliveries_stay_the_same(seed: int, k: int, lateness_us: int) -> None:
    matcher = OverlayMatcher(
        build_base([member(name, k, form) for name, form in zip("pqr", PERIODS, strict=True)])
    )
    chance, events = Random(seed), stream(seed)
    if chance.random() < 0.5:
        chance.shuffle(events)
    cuts = sorted(chance.sample(range(1, 60), 3))
    batches = [events[a:b] for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]
    plain, fewer = (delivered(matcher, batches, lateness_us, prune) for prune in (False, True))
    assert sorted(fewer) == sorted(plain)


@pytest.mark.parametrize("form", PERIODS)
def test_most_matches_of_an_event_that_matches_everything_are_pruned(form: dict[str, Any]) -> None:
    matcher, events = OverlayMatcher(build_base([member("p", 2, form)])), stream(7, 400)
    matches = matcher.match_many(events)
    kept = prune_periods(matcher, events, matches)
    assert len(matches.subscribers) == 400
    assert len(kept.subscribers) < 100
    assert len(kept.matched) == len(kept.subscribers)
    assert np.all(np.diff(kept.starts) >= 0)


@pytest.mark.parametrize("form", OTHERS)
def test_other_policies_are_not_pruned(form: dict[str, Any]) -> None:
    matcher, events = OverlayMatcher(build_base([member("p", 1, form)])), stream(7)
    assert PrunablePeriod.of(matcher.policy("p")).k == 0
    assert len(prune_periods(matcher, events, matcher.match_many(events)).subscribers) == 60


def test_changed_subscribers_are_pruned_as_well() -> None:
    changed = [member("p", 1, PERIODS[0]), member("q", 1, OTHERS[3])]
    matcher, events = OverlayMatcher(build_base([member("o", 1, PERIODS[0])]), changed), stream(3)
    kept = prune_periods(matcher, events, matcher.match_many(events))
    counts = np.bincount(kept.subscribers, minlength=3)
    assert counts[0] < 30
    assert max(counts[1:].tolist()) == 60
    assert min(counts[1:].tolist()) < 30


GROUPS = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.integers(-2, 4), min_size=1, max_size=9)), max_size=4
)


@given(GROUPS)
def test_mark_beaten_agrees_with_counting(drawn: list[tuple[int, list[int]]]) -> None:
    groups = [number for number, (_, times) in enumerate(drawn) for _ in times]
    k = [size for size, times in drawn for _ in times]
    us = [time for _, times in drawn for time in times]
    beaten = np.zeros(len(us), np.bool_)
    mark_beaten(np.array(groups, np.int64), np.array(us, np.int64), np.array(k, np.int64), beaten)
    expected = [
        sum(earlier >= times[row] for earlier in times[:row]) >= size
        for size, times in drawn
        for row in range(len(times))
    ]
    assert beaten.tolist() == expected
