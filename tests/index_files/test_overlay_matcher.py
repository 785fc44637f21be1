"""A base and the changes after it answer as a scan over all of them does."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rank.bulk.test_ranker import CONDITIONS, EVENTS, SCORERS, WEIGHTED

from tidings import Policy, Subscriber, Subscription
from tidings.errors import TidingsError
from tidings.index_files.base_files import new_part, read_base, write_mapped_files
from tidings.index_files.mapped_matcher import BaseIndex, build_base
from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.index_files.subscriber_table import OverlaidStrings
from tidings.model.records import Event
from tidings.rank.matcher import Matcher
from tidings.score import SCORERS as REGISTERED
from tidings.score.exact import Exact
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed
from tidings.testing import workload

NamedMatch = tuple[str, float, tuple[str, ...]]
WRITTEN = [scorer for scorer in SCORERS if not isinstance(scorer, Relaxed)]
tenths = st.integers(0, 10).map(lambda n: n / 10)


@st.composite
def bundle(draw: st.DrawFn, name: str) -> SubscriberBundle:
    """Draw a bundle, of which everything may be missing; its ids begin with its name."""
    scorer = draw(st.sampled_from(WRITTEN))
    prefers = draw(st.sampled_from([(), ((f"{name}1", f"{name}2"),)]))
    subscriber = draw(st.none() | st.just(Subscriber(name, Policy(scorer=scorer), prefers)))
    numbers = draw(st.lists(st.integers(0, 11), unique=True, max_size=4))
    subscriptions = tuple(draw(subscription(name, f"{name}{n}")) for n in numbers)
    return SubscriberBundle(name, subscriber, subscriptions)


@st.composite
def subscription(draw: st.DrawFn, owner: str, key: str) -> Subscription:
    if draw(st.booleans()):
        return Subscription(key, owner, any=draw(st.sampled_from(WEIGHTED)))
    where = draw(st.sampled_from(CONDITIONS))
    rank, score = draw(st.none() | tenths), draw(st.none() | tenths)
    return Subscription(key, owner, where, prefrank=rank, score=score)


groups = st.lists(st.sampled_from(["ann", "bob", "cy", "dee"]), unique=True).flatmap(
    lambda names: st.tuples(*(bundle(name) for name in sorted(names))).map(list)
)


def mapped(base: BaseIndex) -> BaseIndex:
    """Return a base after it was written and mapped."""
    with TemporaryDirectory() as folder:
        write_mapped_files(Path(folder), new_part(1, 0), base)
        return read_base(Path(folder), new_part(1, 0))


def scan(bundles: dict[str, SubscriberBundle]) -> Matcher:
    """Return a plain matcher of bundles."""
    subscribers = [bundle.subscriber for bundle in bundles.values() if bundle.subscriber]
    subscriptions = [
        subscription for bundle in bundles.values() for subscription in bundle.subscriptions
    ]
    return Matcher(subscribers, subscriptions, index="scan")


def matches_by_name(matcher: OverlayMatcher, events: list[Event]) -> list[list[NamedMatch]]:
    """Return the matches of each event with names and ids for numbers."""
    matches = matcher.match_many(events)

    def text(strings: OverlaidStrings, number: int) -> str:
        return str(strings.take(np.array([number]))[0])

    return [
        sorted(
            (
                text(matcher.names, owner),
                rank,
                tuple(text(matcher.ids, number) for number in matched),
            )
            for owner, rank, matched in matches.rows(position)
        )
        for position in range(len(events))
    ]


def expected(matcher: Matcher, events: list[Event]) -> list[list[NamedMatch]]:
    """Return the matches of each event by a plain matcher."""
    return [
        [(match.subscriber, match.score, match.matched) for match in matcher.matches(event)]
        for event in events
    ]


def check(overlay: OverlayMatcher, present: dict[str, SubscriberBundle]) -> None:
    matcher = scan(present)
    assert matches_by_name(overlay, EVENTS) == expected(matcher, EVENTS)
    for scorer in (Exact(), Relaxed()):
        for k in (1, 3, 50):
            tops = overlay.top_many(EVENTS, k, scorer)
            assert tops == [matcher.top(event, k, scorer) for event in EVENTS]
    for name in ("ann", "bob", "cy", "dee", "unknown"):
        subscriber = present[name].subscriber if name in present else None
        assert overlay.policy(name) == (subscriber.policy if subscriber else None)


@given(groups, st.lists(groups, max_size=3))
def test_a_base_and_its_changes_answer_as_a_scan_does(first, later):
    present = {bundle.name: bundle for bundle in first}
    overlay = OverlayMatcher(mapped(build_base(first)))
    check(overlay, present)
    for changed in later:
        overlay.apply(changed)
        present |= {bundle.name: bundle for bundle in changed}
        check(overlay, present)


def test_every_scorer_of_the_library_is_drawn():
    assert {Policy(scorer=scorer).scorer.name for scorer in WRITTEN} == set(REGISTERED)


def test_a_workload_with_every_policy_is_matched_from_a_file():
    work = workload(seed=3, events=80, subscribers=60)
    overlay = OverlayMatcher(
        mapped(build_base(bundle_subscribers(work.subscribers, work.subscriptions)))
    )
    matcher = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert matches_by_name(overlay, work.events) == expected(matcher, work.events)


def test_without_a_base_every_scorer_ranks_subscriptions():
    work = workload(seed=4, events=10)
    overlay = in_memory_matcher(bundle_subscribers(work.subscribers, work.subscriptions))
    matcher = Matcher(work.subscribers, work.subscriptions, index="scan")
    for scorer in (Preference(), Relaxed("max"), Exact(), Relaxed()):
        tops = overlay.top_many(work.events, 4, scorer)
        assert tops == [matcher.top(event, 4, scorer) for event in work.events]


def test_a_base_refuses_a_scorer_that_no_index_supports():
    work = workload(seed=4, events=1)
    overlay = OverlayMatcher(build_base(bundle_subscribers(work.subscribers, work.subscriptions)))
    with pytest.raises(TidingsError, match="ranked by 'exact' or 'relaxed'"):
        overlay.top_many(work.events, 4, Preference())


def test_flags_follow_the_present_policies():
    bundles = [
        SubscriberBundle(name, Subscriber(name, Policy(k=k)))
        for name, k in [("ann", 1), ("bob", 2)]
    ]
    overlay = OverlayMatcher(
        mapped(
            build_base([*bundles, SubscriberBundle("cy", None, [Subscription("s", "cy", "a = 1")])])
        )
    )

    def flagged() -> dict[str, bool]:
        flags = overlay.flags(lambda policy: policy.k == 2)
        names = overlay.names.take(np.arange(len(flags))).to_pylist()
        return {name: bool(flag) for name, flag in zip(names, flags, strict=True) if flag}

    assert flagged() == {"bob": True}
    overlay.apply(
        [SubscriberBundle("bob"), SubscriberBundle("ann", Subscriber("ann", Policy(k=2)))]
    )
    assert flagged() == {"ann": True}
    assert len(overlay.hashes) == len(overlay.flags(lambda policy: True))


def test_a_later_bundle_replaces_an_uncompiled_one():
    policy = Policy(scorer={"name": "relaxed", "aggregate": "max"})
    ann = SubscriberBundle("ann", Subscriber("ann", policy), [Subscription("s", "ann", "a = 1")])
    event = Event("e", {"a": 1}, published_at=0)
    for changed, matches in (((), 1), ([SubscriberBundle("ann")], 0)):
        overlay = OverlayMatcher(build_base([ann]), changed)
        assert len(overlay.match_many([event]).subscribers) == matches
