"""Preference and exact ranks of many owners, against the scorer of each."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.rank.bulk.plain import expected_rows, owner, read_back, request, rows

from tidings import Event, Subscription
from tidings.rank.bulk.methods import PreferenceMethod
from tidings.rank.bulk.protocol import Owner
from tidings.score.exact import Exact
from tidings.score.graph import Graph
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed

CONDITIONS = [
    "a = 1",
    "a = 1 and b >= 1",
    "a >= 1 and b = 1",
    "b >= 0",
    "c = 1",
    "a = 2 or c = 1",
    "a = 1 and b = 1 and c = 1",
]
SCORERS: list[Any] = [
    "exact",
    "preference",
    {"name": "preference", "aggregate": "mean"},
    {"name": "preference", "aggregate": "min"},
    {"name": "preference", "aggregate": "sum", "weights": {"s0": 0.5, "s11": 3.0}},
]
EVENTS = [
    Event(f"e{a}{b}{c}", {"a": a, "b": b, "c": c}, 0)
    for a in (1, 2)
    for b in (0, 1)
    for c in (0, 1)
]
tenths = st.none() | st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0])
wanted = st.lists(st.tuples(st.sampled_from(CONDITIONS), tenths, tenths), max_size=5)
drawn_owners = st.lists(st.tuples(st.sampled_from(SCORERS), wanted), min_size=1, max_size=3)


def owners_of(drawn: Sequence[tuple[Any, Sequence[tuple[str, Any, Any]]]]) -> list[Owner]:
    owners = []
    for place, (scorer, texts) in enumerate(drawn):
        own = {
            10 * place + n: Subscription(
                f"s{10 * place + n}", "u", where, prefrank=prefrank, score=score
            )
            for n, (where, prefrank, score) in enumerate(texts)
        }
        first = 10 * place
        prefers = [(f"s{first}", f"s{first + 1}"), (f"s{first + 1}", f"s{first + 2}")]
        owners.append(owner(2 * place, scorer, own, prefers))
    return owners


def check(method: PreferenceMethod, owners: Sequence[Owner]) -> None:
    numbered = {
        number: subscription
        for owner in owners
        for number, subscription in owner.subscriptions.items()
    }
    matches = method.rank(request(EVENTS, numbered, partial=False))
    for place, event in enumerate(EVENTS):
        assert rows(matches, place) == expected_rows(owners, event)


@given(drawn_owners)
def test_ranks_are_those_of_the_scorer(drawn: Any) -> None:
    owners, method = owners_of(drawn), PreferenceMethod()
    method.update(owners)
    check(method, owners)


@given(drawn_owners)
def test_a_method_that_was_written_and_read_ranks_alike(drawn: Any) -> None:
    owners, method = owners_of(drawn), PreferenceMethod()
    method.update(owners)
    check(read_back(method, owners), owners)


@given(drawn_owners, drawn_owners)
def test_an_update_replaces_all_that_was_written(before: Any, after: Any) -> None:
    method, old, new = PreferenceMethod(), owners_of(before), owners_of(after)
    method.update(old)
    method.remove([number for each in old for number in each.subscriptions])
    method.update(new)
    method.update(new[:1])
    check(method, new)


def test_the_most_specific_subscription_decides_whatever_its_prefrank() -> None:
    """PREF 3.2: drama at .7 and drama by Burton at .9 (Addison) or .5 (Carson)."""
    event = Event("e", {"genre": "drama", "director": "Burton"}, 0)
    both = "genre = 'drama' and director = 'Burton'"
    wanted = {
        0: Subscription("a1", "addison", "genre = 'drama'", prefrank=0.7),
        1: Subscription("a2", "addison", both, prefrank=0.9),
        2: Subscription("c1", "carson", "genre = 'drama'", prefrank=0.7),
        3: Subscription("c2", "carson", both, prefrank=0.5),
    }
    method = PreferenceMethod()
    method.update(
        [
            owner(0, "preference", {0: wanted[0], 1: wanted[1]}),
            owner(1, "preference", {2: wanted[2], 3: wanted[3]}),
        ]
    )
    matches = method.rank(request([event], wanted, partial=False))
    assert rows(matches, 0) == [(0, 0.9, [0, 1]), (1, 0.5, [2, 3])]


def test_the_exact_scorer_ignores_covers() -> None:
    wanted = {
        0: Subscription("wide", "u", "a = 1", score=5),
        1: Subscription("narrow", "u", "a = 1 and b = 0", score=2),
        2: Subscription("plain", "u", "a = 1 and c = 0"),
    }
    method = PreferenceMethod()
    method.update([owner(0, "exact", wanted)])
    assert rows(method.rank(request(EVENTS[:1], wanted, partial=False)), 0) == [(0, 5.0, [0, 1, 2])]
    method.remove([0])
    assert rows(method.rank(request(EVENTS[:1], wanted, partial=False)), 0) == [(0, 2.0, [1, 2])]


def test_preference_and_exact_scorers_are_supported() -> None:
    method = PreferenceMethod()
    assert all(method.supports(scorer) for scorer in (Preference("min"), Preference(), Exact()))
    assert not any(method.supports(scorer) for scorer in (Relaxed(), Graph()))
