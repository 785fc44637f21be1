"""Ranks by Python functions: every scorer, its failures, and changes of its owner."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rank.bulk.plain import expected_rows, owner, request, rows

from tidings import Event, Subscription
from tidings.rank.bulk.methods import PythonMethod, Unprepared
from tidings.rank.bulk.protocol import Unranked
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

CONDITIONS = ["a = 1", "a = 1 and b >= 1", "b >= 1 or c = 1", "c = 1 and b = 0"]
SCORERS: dict[bool, list[Any]] = {
    False: ["exact", "preference", {"name": "preference", "aggregate": "mean"}],
    True: ["relaxed", "graph", Relaxed(lambda weights: 2 * sum(weights))],
}
EVENTS = [
    Event(f"e{a}{b}{c}", {"a": a, "b": b, "c": c}, 0)
    for a in (0, 1)
    for b in (0, 1)
    for c in (0, 1)
]
BOTH = Event("both", {"a": 1, "b": 1}, 0)
chosen = st.lists(st.lists(st.sampled_from(CONDITIONS), max_size=3), min_size=1, max_size=3)


def numbered(texts: Sequence[str], first: int = 0) -> dict[int, Subscription]:
    return {
        first + n: Subscription(f"s{first + n}", "u", where, score=n)
        for n, where in enumerate(texts)
    }


def failing(weights: Sequence[float]) -> float:
    if len(weights) > 1:
        raise ValueError("two are too many")
    return 1.0


@given(chosen, st.booleans(), st.data())
def test_ranks_are_those_of_the_scorer(
    drawn: list[list[str]], partial: bool, data: st.DataObject
) -> None:
    owners = [
        owner(3 * place, data.draw(st.sampled_from(SCORERS[partial])), numbered(texts, 10 * place))
        for place, texts in enumerate(drawn)
    ]
    method = PythonMethod(partial=partial)
    method.update(owners)
    wanted = {
        number: subscription
        for owner in owners
        for number, subscription in owner.subscriptions.items()
    }
    matches = method.rank(request(EVENTS, wanted, partial=partial))
    for place, event in enumerate(EVENTS):
        assert rows(matches, place) == expected_rows(owners, event)


def test_scorers_are_taken_by_the_hits_they_need() -> None:
    whole, partial = PythonMethod(partial=False), PythonMethod(partial=True)
    assert (whole.supports(Exact()), partial.supports(Exact())) == (True, False)
    assert (whole.supports(Relaxed("min")), partial.supports(Relaxed("min"))) == (False, True)


def test_removed_subscriptions_are_not_hits() -> None:
    wanted = numbered(["a = 1", "b = 1"])
    method = PythonMethod(partial=False)
    method.update([owner(0, "exact", wanted)])
    assert method.nbytes == 32
    method.remove([1, 77])
    assert rows(method.rank(request([BOTH], wanted, partial=False)), 0) == [(0, 0.0, [0])]
    method.remove([0])
    assert rows(method.rank(request([BOTH], wanted, partial=False)), 0) == []
    assert method.nbytes == 0


def test_an_owner_whose_scorer_fails_gets_no_ranks_until_its_next_update() -> None:
    wanted = {0: Subscription("s0", "u", "a = 1 and b = 1"), 1: Subscription("s1", "u", "a = 1")}
    failed, fine = owner(0, Relaxed(failing), {0: wanted[0]}), owner(1, "relaxed", {1: wanted[1]})
    method = PythonMethod(partial=True)
    method.update([failed, fine])
    one = Event("one", {"a": 1}, 0)
    matches = method.rank(request([one, BOTH, one], wanted, partial=True))
    assert [len(rows(matches, place)) for place in range(3)] == [2, 1, 1]
    assert str(method.failed[0]) == "two are too many"
    method.update([failed])
    assert not method.failed
    assert len(rows(method.rank(request([one], wanted, partial=True)), 0)) == 2


def test_failures_that_are_collected_leave_the_owner_in_place() -> None:
    wanted = {0: Subscription("s0", "u", "a = 1 and b = 1")}
    method = PythonMethod(partial=True)
    method.update([owner(7, Relaxed(failing), wanted)])
    unranked: list[Unranked] = []
    one = Event("one", {"a": 1}, 0)
    matches = method.rank(request([BOTH, one], wanted, partial=True, unranked=unranked))
    assert [rows(matches, place) for place in range(2)] == [[], [(7, 1.0, [0])]]
    assert [(each.event, each.owner) for each in unranked] == [(0, 7)]
    assert "two are too many" in unranked[0].reason
    assert not method.failed


@pytest.mark.parametrize("rank", [-1.0, float("nan"), float("inf")])
def test_a_rank_that_cannot_be_compared_is_a_failure(rank: float) -> None:
    wanted = {0: Subscription("s0", "u", "a = 1")}
    method = PythonMethod(partial=True)
    method.update([owner(0, Relaxed(lambda _weights: rank), wanted)])
    assert rows(method.rank(request([BOTH], wanted, partial=True)), 0) == []
    assert "a rank between 0 and" in str(method.failed[0])


def test_a_scorer_that_cannot_be_prepared_fails_only_for_matches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidings.score.graph.MOST_PAIRS", 0)
    wanted = numbered(["a = 1 and b = 1"])
    method = PythonMethod(partial=True)
    method.update([owner(0, "graph", wanted)])
    method.rank(request([Event("silent", {"z": 1}, 0)], wanted, partial=True))
    assert not method.failed
    method.rank(request([BOTH], wanted, partial=True))
    assert "1 pairs of this subscriber; at most 0 are allowed" in str(method.failed[0])


def test_an_unprepared_scorer_raises_the_error_of_its_preparation() -> None:
    stand_in = Unprepared(ValueError("not ready"))
    with pytest.raises(ValueError, match="not ready"):
        stand_in.rank(BOTH, [])
    with pytest.raises(ValueError, match="not ready"):
        stand_in.score(BOTH, Subscription("s", "u", "a = 1"))


def test_a_forgotten_owner_leaves_no_failure_behind() -> None:
    wanted = {0: Subscription("s0", "u", "a = 1 and b = 1")}
    method = PythonMethod(partial=True)
    method.update([owner(0, Relaxed(failing), wanted)])
    method.rank(request([BOTH], wanted, partial=True))
    method.remove([0])
    method.forget(0)
    assert not method.failed
    assert rows(method.rank(request([BOTH], wanted, partial=True)), 0) == []
