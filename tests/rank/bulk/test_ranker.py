"""Bulk ranks are those of each subscriber's own scorer, whatever changes in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Event, Policy, Subscriber, Subscription
from tidings.errors import TidingsError
from tidings.rank.matcher import Matcher
from tidings.score.relaxed import Relaxed
from tidings.testing import workload

CONDITIONS = [
    "a = 1",
    "a = 1 and b = 1",
    "a = 1 and b = 1 and c = 1",
    "b >= 1",
    "b >= 1 and c = 1",
    "b >= 2 and b <= 2",
    "c = 1",
    "a = 2 or b = 2",
    "a = 1 and b >= 1 or a = 1 and c = 0 or c = 1",
    "b in (0, 2)",
]
WEIGHTED = [
    [["a = 1", 0.4], ["b >= 1", 0.7]],
    [["b >= 1", 0.2], ["c = 1", 0.1], ["a = 2", 0.3]],
    [["a = 1", 0.0], ["c = 1", 0.6]],
    [["a = 1", 0.5, "inactive"], ["c = 0", 0.5]],
    [["a = 1", 0.3], ["a = 1", 0.9], ["b = 2", 0.9]],
]
SCORERS = [
    "preference",
    {"name": "preference", "aggregate": "mean"},
    {"name": "preference", "aggregate": "min"},
    {"name": "preference", "aggregate": "sum", "weights": {"s1": 0.5, "s2": 3.0}},
    "exact",
    "relaxed",
    {"name": "relaxed", "aggregate": "max"},
    Relaxed(aggregate=lambda weights: 2 * sum(weights)),
    {"name": "graph", "lambda": 0.4},
    {"name": "graph", "lambda": 1.0},
    {"name": "graph", "aggregate": "sum", "threshold": 3},
]
EVENTS = [
    Event(f"e{a}{b}{c}", {"a": a, "b": b, "c": c}, published_at=0)
    for a in (1, [1, 2], 3)
    for b in (0, 1, 2)
    for c in (0, 1)
] + [
    Event("unsure", {"a": 1, "b": 2}, published_at=0, probabilities={"a": 0.25}),
    Event("sparse", {"c": 1}, published_at=0),
    Event("silent", {"z": 1}, published_at=0),
]

subscribers = st.builds(
    Subscriber,
    st.sampled_from(["ann", "bob", "cy"]),
    st.builds(Policy, scorer=st.sampled_from(SCORERS)),
    prefers=st.sampled_from([(), (("s1", "s2"), ("s2", "s3"))]),
)
tenths = st.integers(0, 10).map(lambda n: n / 10)
keys = st.integers(0, 7).map("s{}".format)
owner_names = st.sampled_from(["ann", "bob", "cy", "unknown"])
plain_subscriptions = st.builds(
    Subscription,
    keys,
    owner_names,
    st.sampled_from(CONDITIONS),
    prefrank=st.none() | tenths,
    score=st.none() | tenths,
)
weighted_subscriptions = st.builds(Subscription, keys, owner_names, any=st.sampled_from(WEIGHTED))
changes = st.lists(
    st.one_of(
        plain_subscriptions,
        plain_subscriptions,
        weighted_subscriptions,
        subscribers,
        keys,
        st.just("ann"),
    ),
    max_size=20,
)


def apply(matcher: Matcher, change: Subscription | Subscriber | str) -> None:
    """Make a change if it can be made: what exists is replaced, or removed by name."""
    if isinstance(change, Subscriber):
        matcher.subscribe(change)
    elif isinstance(change, Subscription):
        if change.id in matcher.subscriptions:
            matcher.remove(change.id)
        matcher.add(change)
    elif change in matcher.subscriptions:
        matcher.remove(change)
    elif change in matcher.subscribers:
        matcher.unsubscribe(change)


@given(steps=changes, before=st.integers(0, 10))
def test_every_scorer_ranks_as_it_does_alone(steps, before):
    plain, compiled = Matcher(index="scan"), Matcher(index="access")
    for number, step in enumerate(steps):
        for matcher in (plain, compiled):
            apply(matcher, step)
        if number == before:
            assert compiled.matches(EVENTS[0]) == plain.matches(EVENTS[0])
    for event in EVENTS:
        assert compiled.matches(event) == plain.matches(event)


@given(steps=changes, cut=st.integers(0, len(EVENTS)))
def test_any_split_into_batches_gives_the_same(steps, cut):
    matcher = Matcher(index="access")
    for step in steps:
        apply(matcher, step)
    together = matcher.match_many(EVENTS)
    first, second = matcher.match_many(EVENTS[:cut]), matcher.match_many(EVENTS[cut:])
    halves = [first.rows(e) for e in range(cut)]
    halves += [second.rows(e) for e in range(len(EVENTS) - cut)]
    for event, half in enumerate(halves):
        assert in_order(together.rows(event)) == in_order(half)


def in_order(matches):
    return sorted((owner, rank, sorted(matched)) for owner, rank, matched in matches)


@pytest.mark.parametrize("seed", range(6))
def test_a_stream_of_films_is_ranked_alike(seed):
    work = workload(seed=seed, events=40, subscribers=30)
    plain = Matcher(work.subscribers, work.subscriptions, "scan")
    compiled = Matcher(work.subscribers, work.subscriptions, "access")
    for event in work.events:
        assert compiled.matches(event) == plain.matches(event)


def test_an_empty_matcher_has_no_matches():
    matches = Matcher(index="access").match_many(EVENTS)
    assert matches.starts.tolist() == [0] * (len(EVENTS) + 1)
    assert matches.matched_starts.tolist() == [0]


def test_an_index_that_does_not_match_in_bulk_is_named():
    with pytest.raises(TidingsError, match="'scan' does not match in bulk"):
        Matcher(index="scan").match_many(EVENTS)


def test_two_predicates_may_have_an_edge_each_way():
    subscriber = Subscriber("ann", Policy(scorer={"name": "graph", "lambda": 1.0}))
    wanted = [
        Subscription("s1", "ann", any=[["a = 1", 0.4], ["b >= 1", 0.7]]),
        Subscription("s2", "ann", "a = 1 and b >= 1"),
    ]
    event = Event("e", {"a": 1, "b": 1}, published_at=0)
    scan, access = (Matcher([subscriber], wanted, index=name) for name in ("scan", "access"))
    assert access.matches(event) == scan.matches(event)
    assert access.matches(event)[0].score == 1.375
