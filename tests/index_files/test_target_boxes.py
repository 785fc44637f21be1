"""Boxes from the columns of an index file give the answers of a scan, also without dropped ones."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rank.test_target_index import events, subscriptions, whole

from tidings import Event, Exact, Relaxed, Subscription
from tidings.index_files import target_boxes
from tidings.index_files.mapped_matcher import build_base
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.rank.matcher import Matcher


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build boxes for the first event, and always find them faster."""
    monkeypatch.setattr(target_boxes, "ASKED", 1)
    times = iter(range(1, 10**9))
    monkeypatch.setattr(target_boxes, "least_seconds", lambda _: next(times))


def owned(some: list[Subscription]) -> list[Subscription]:
    """Return subscriptions with different ids, of three subscribers."""
    different = {one.id: one for one in some}.values()
    return [replace(one, subscriber="abc"[int(one.id[1:]) % 3]) for one in different]


def rows_of(matcher: OverlayMatcher, asked: list[Event], k: int, scorer: Any) -> list[Any]:
    tops = matcher.top_columns(asked, k, scorer)
    ids, scores = iter(tops.subscriptions.to_pylist()), iter(tops.scores.tolist())
    return [[(next(ids), next(scores)) for _ in range(count)] for count in tops.counts.tolist()]


@settings(max_examples=60)
@given(
    some=st.lists(subscriptions(), min_size=1, max_size=12).map(owned),
    gone=st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    asked=st.lists(events | whole, min_size=1, max_size=5),
    k=st.integers(1, 5),
    scorer=st.sampled_from([Exact(), Relaxed()]),
    early=st.booleans(),
)
def test_the_best_are_those_of_a_scan(some, gone, asked, k, scorer, early):
    matcher = OverlayMatcher(build_base(bundle_subscribers((), some)))
    if not early:  # boxes are there when subscribers leave
        scan = Matcher((), some, "scan")
        expected = [scan.top(event, k, scorer) for event in asked]
        assert rows_of(matcher, asked, k, scorer) == expected
    for name in gone:
        matcher.apply([SubscriberBundle(name)])
    scan = Matcher((), [one for one in some if one.subscriber not in gone], "scan")
    expected = [scan.top(event, k, scorer) for event in asked]
    assert rows_of(matcher, asked, k, scorer) == expected


def ranges(count: int) -> list[Subscription]:
    return [
        Subscription(f"s{n:03d}", "u", f"a >= {n % 7} and b = {n % 5}", score=float(n % 3))
        for n in range(count)
    ]


ASKED = [Event("e", {"a": n % 7, "b": n % 5}, published_at=0) for n in range(20)]


def test_boxes_answer_and_others_do_not_need_them():
    some = ranges(50)
    base = build_base(bundle_subscribers((), some)).matcher
    assert base.best_numbers(ASKED, 3, Exact()) is not None
    listed = [*ASKED, Event("e", {"a": [1, 2]}, published_at=0)]
    assert base.best_numbers(listed, 3, Exact()) is None
    mixed = [*some, Subscription("t", "u", "c = 'x'")]
    assert build_base(bundle_subscribers((), mixed)).matcher.best_numbers(ASKED, 3, Exact()) is None


def test_slower_boxes_are_not_used(monkeypatch: pytest.MonkeyPatch):
    times = iter(range(10**9, 0, -1))
    monkeypatch.setattr(target_boxes, "least_seconds", lambda _: next(times))
    base = build_base(bundle_subscribers((), ranges(50))).matcher
    assert base.best_numbers(ASKED, 3, Exact()) is None
    assert base.best_numbers(ASKED, 3, Exact()) is None


def test_weights_and_several_ranges_of_one_attribute():
    some = [
        Subscription("s0", "u", any=[["a >= 1", 0.5], ["b <= 2", 0.25]]),
        Subscription("s1", "u", any=[["a >= 2", 0.5], ["b <= 3", 0.75]]),
    ]
    base = build_base(bundle_subscribers((), some)).matcher
    answers = base.best_numbers([Event("e", {"a": 5, "b": 3}, published_at=0)], 5, Relaxed())
    assert answers is not None
    assert answers.scores[0, : answers.counts[0]].tolist() == [1.25, 0.5]
    twice = Subscription("s2", "u", any=[["a >= 1", 0.5], ["a <= 3", 0.25]])
    scan = Matcher((), [*some, twice], "scan")
    matcher = OverlayMatcher(build_base(bundle_subscribers((), [*some, twice])))
    assert rows_of(matcher, ASKED, 3, Relaxed()) == [
        scan.top(event, 3, Relaxed()) for event in ASKED
    ]
