"""Graph ranks of many owners, against the graph scorer of each."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rank.bulk.plain import expected_rows, owner, read_back, request, rows

from tidings import Event, Subscription
from tidings.errors import TidingsError
from tidings.rank.bulk.methods import GraphMethod
from tidings.rank.bulk.protocol import Owner
from tidings.score.graph import Graph
from tidings.score.relaxed import Relaxed

PREDICATES = ["a = 1", "b = 1", "c = 1", "b >= 0"]
SCORERS: list[Any] = [
    "graph",
    {"name": "graph", "lambda": 0.0},
    {"name": "graph", "lambda": 1.0},
    {"name": "graph", "lambda": 0.3, "aggregate": "sum"},
    {"name": "graph", "threshold": 2},
]
EVENTS = [
    Event(f"e{a}{b}{c}", {"a": a, "b": b, "c": c}, 0)
    for a in (0, 1)
    for b in (0, 1)
    for c in (0, 1)
]
parts = st.tuples(
    st.sampled_from(PREDICATES),
    st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.9]),
    st.sampled_from(["active", "active", "active", "inactive", "dead"]),
)
wanted = st.lists(st.lists(parts, min_size=1, max_size=4), max_size=3)
drawn_owners = st.lists(st.tuples(st.sampled_from(SCORERS), wanted), min_size=1, max_size=3)


def owners_of(drawn: Sequence[tuple[Any, Sequence[Sequence[Any]]]]) -> list[Owner]:
    return [
        owner(
            2 * place,
            scorer,
            {
                70 * place + n: Subscription(f"s{70 * place + n}", "u", any=[*map(list, group)])
                for n, group in enumerate(groups)
            },
        )
        for place, (scorer, groups) in enumerate(drawn)
    ]


def check(method: GraphMethod, owners: Sequence[Owner]) -> None:
    numbered = {
        number: subscription
        for owner in owners
        for number, subscription in owner.subscriptions.items()
    }
    matches = method.rank(request(EVENTS, numbered, partial=True))
    for place, event in enumerate(EVENTS):
        assert rows(matches, place) == expected_rows(owners, event)


@given(drawn_owners)
def test_ranks_are_those_of_the_scorer(drawn: Any) -> None:
    owners, method = owners_of(drawn), GraphMethod()
    method.update(owners)
    check(method, owners)


@given(drawn_owners)
def test_a_method_that_was_written_and_read_ranks_alike(drawn: Any) -> None:
    owners, method = owners_of(drawn), GraphMethod()
    method.update(owners)
    check(read_back(method, owners), owners)


@given(drawn_owners, drawn_owners)
def test_a_graph_is_replaced_as_a_whole(before: Any, after: Any) -> None:
    method, old, new = GraphMethod(), owners_of(before), owners_of(after)
    method.update(old)
    check(method, old)
    method.remove([number for each in old for number in each.subscriptions])
    for each in old:
        method.forget(each.number)
    method.update(new)
    check(method, new)


def test_edges_and_predicates_that_hold_share_the_score() -> None:
    """Of 0.8 over 0.4 the edge weighs 2, and the mean of the preferences is 0.6."""
    wanted = {4: Subscription("s", "u", any=[["a = 1", 0.8], ["b = 1", 0.4]])}
    method = GraphMethod()
    method.update([owner(1, {"name": "graph", "lambda": 0.25}, wanted)])
    matches = method.rank(request([EVENTS[0], EVENTS[2], EVENTS[6]], wanted, partial=True))
    assert [rows(matches, place) for place in range(3)] == [
        [],
        [(1, 0.3, [4])],
        [(1, 0.95, [4])],
    ]


@pytest.mark.parametrize(("threshold", "ranks"), [(2, [0.75]), (3, [])])
def test_a_graph_with_fewer_active_predicates_than_the_threshold_has_no_rank(
    threshold: int, ranks: list[float]
) -> None:
    parts = [["a = 1", 0.5], ["b = 1", 0.5], ["c = 1", 0.5, "inactive"]]
    wanted = {0: Subscription("s", "u", any=parts)}
    method = GraphMethod()
    method.update([owner(0, {"name": "graph", "threshold": threshold}, wanted)])
    matches = method.rank(request([EVENTS[6]], wanted, partial=True))
    assert [rank for _, rank, _ in rows(matches, 0)] == ranks


def test_a_score_of_zero_is_no_match() -> None:
    wanted = {0: Subscription("s", "u", any=[["a = 1", 0.8], ["b = 1", 0.4]])}
    method = GraphMethod()
    method.update([owner(0, {"name": "graph", "lambda": 1.0}, wanted)])
    matches = method.rank(request([EVENTS[4], EVENTS[6]], wanted, partial=True))
    assert [rows(matches, place) for place in range(2)] == [[], [(0, 2.0, [0])]]


def test_epochs_that_run_out_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.rank.bulk.methods.EPOCHS", len(EVENTS) + 3)
    owners = owners_of([("graph", [[("a = 1", 0.8, "active"), ("b = 1", 0.4, "active")]])])
    method = GraphMethod()
    method.update(owners)
    for _ in range(4):
        check(method, owners)


def test_a_graph_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.score.graph.MOST_PAIRS", 2)
    wanted = {0: Subscription("s", "u", "a = 1 and b = 1 and c = 1")}
    with pytest.raises(TidingsError, match="3 pairs of this subscriber; at most 2 are allowed"):
        GraphMethod().update([owner(0, "graph", wanted)])


def test_only_the_graph_scorer_is_supported() -> None:
    assert GraphMethod().supports(Graph(aggregate="sum"))
    assert not GraphMethod().supports(Relaxed())
