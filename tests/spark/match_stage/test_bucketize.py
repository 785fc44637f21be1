"""Match batches hold every match once, in the bucket of its subscriber."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index_files.test_overlay_matcher import groups, scan
from tests.rank.bulk.test_ranker import EVENTS

from tidings import Event, Policy, Subscriber, Subscription
from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.index_files.mapped_matcher import build_base
from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.bucketize import match_by_bucket
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.stage import bucket_of
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
