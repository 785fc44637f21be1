"""Parcels hold every match of some events once, for the bucket of its subscriber."""

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
from tidings.spark.match_stage.bucketize import addressed
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.stage import bucket_of
from tidings.testing import workload

Found = set[tuple[str, str, float, tuple[str, ...]]]


def opened(parcel: Parcel) -> list[tuple[str, str, float, tuple[str, ...]]]:
    """Read the matches of a parcel: event, subscriber, rank, subscriptions."""
    found = []
    for number, event in enumerate(parcel.events):
        for subscriber, rank, matched in parcel.matches.of(number):
            ids = tuple(parcel.subscriptions[each] for each in matched)
            found.append((event, parcel.subscribers[subscriber], rank, ids))
    return found


def expected(matcher: Matcher, events: list[Event]) -> Found:
    return {
        (event.id, each.subscriber, each.score, each.matched)
        for event in events
        for each in matcher.matches(event)
    }


@given(groups, groups, st.integers(1, 4))
def test_parcels_have_all_matches_in_the_buckets_of_their_subscribers(first, later, buckets):
    server = OverlayMatcher(build_base(first), later)
    sent = addressed(server, EVENTS, buckets).parcels
    found = [(b, each) for b, p in sent.items() for each in opened(Parcel.unpack(p.pack()))]
    assert all(bucket_of(name, buckets) == bucket for bucket, (_, name, _, _) in found)
    present = {each.name: each for each in [*first, *later]}
    matches = [each for _, each in found]
    assert len(set(matches)) == len(matches)
    assert set(matches) == expected(scan(present), EVENTS)
    for parcel in sent.values():
        order = [[event.id for event in EVENTS].index(each) for each in parcel.events]
        assert order == sorted(order)
        assert all(np.diff(parcel.matches.starts) > 0)


def test_events_have_their_times_and_numbers():
    member = SubscriberBundle("ann", Subscriber("ann"), [Subscription("s", "ann", "a = 1")])
    events = [
        Event("e1", {"a": 1}, published_at=3, sequence=9),
        Event("e2", {"a": 2}, published_at=4, sequence=10),
        Event("e3", {"a": 1}, published_at=2),
    ]
    parcel = addressed(in_memory_matcher([member]), events, 1).parcels[0]
    assert parcel.events == ["e1", "e3"]
    assert parcel.us.tolist() == [3_000_000, 2_000_000]
    assert parcel.sequence.tolist() == [9, UNNUMBERED]
    assert parcel.forms == ["", ""]


@pytest.mark.parametrize(
    "policy", [Policy(diversify="maxmin"), Policy(window={"name": "history", "length": 3})]
)
def test_forms_go_to_who_compares_events(policy):
    plain = SubscriberBundle("ann", Subscriber("ann"), [Subscription("s1", "ann", "a = 1")])
    other = SubscriberBundle("bob", Subscriber("bob", policy), [Subscription("s2", "bob", "b = 1")])
    events = [Event("e1", {"a": 1}, 0), Event("e2", {"b": 1}, 0), Event("e3", {"a": 1, "b": 1}, 0)]
    parcel = addressed(OverlayMatcher(build_base([plain, other])), events, 1).parcels[0]
    assert parcel.forms[0] == ""
    assert [json.loads(form) for form in parcel.forms[1:]] == [e.to_dict() for e in events[1:]]


def test_a_workload_with_every_policy_is_addressed():
    work = workload(seed=9, events=50, subscribers=40)
    server = OverlayMatcher(build_base(bundle_subscribers(work.subscribers, work.subscriptions)))
    sent = addressed(server, work.events, 8).parcels
    matches = [each for parcel in sent.values() for each in opened(Parcel.unpack(parcel.pack()))]
    matcher = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert sorted(matches) == sorted(expected(matcher, work.events))


def test_nothing_is_sent_where_nothing_matches():
    assert addressed(in_memory_matcher([]), EVENTS, 3) == ({}, [], [])
    assert addressed(in_memory_matcher([]), [], 3) == ({}, [], [])
