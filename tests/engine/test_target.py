"""The direction "target": for one event the k best subscriptions, in all four scorers."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Engine, Event, Subscriber, Subscription, TidingsError

Weights = dict[str, float]
Form = tuple[Weights, bool, float, float]
"""Attributes that shall be 1 with their weights, whether these are given, a prefrank, a score."""

weights = st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.0, 0.2, 0.4, 0.8]), min_size=1)
tenths = st.sampled_from([0.2, 0.5, 0.5, 0.9])
forms = st.dictionaries(
    st.sampled_from(["s1", "s2", "s3", "s10", "s20"]),
    st.tuples(weights, st.booleans(), tenths, st.sampled_from([1.0, 7.5])),
)
events = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0, 1, 1]))


def subscription(name: str, form: Form) -> Subscription:
    wanted, weighted, prefrank, score = form
    parts = [[f"{attribute} = 1", weight] for attribute, weight in wanted.items()]
    if weighted:
        return Subscription(name, "u", any=parts, prefrank=prefrank, score=score)
    where = " and ".join(str(text) for text, _ in parts)
    return Subscription(name, "u", where, prefrank=prefrank, score=score)


def held(form: Form, event: dict[str, int]) -> list[float]:
    """The weights of the predicates that hold; without `any` they are 1."""
    wanted, weighted, _, _ = form
    return [w if weighted else 1.0 for name, w in wanted.items() if event.get(name) == 1]


def exact(form: Form, event: dict[str, int]) -> float | None:
    return form[3] if len(held(form, event)) == len(form[0]) else None


def preference(form: Form, event: dict[str, int]) -> float | None:
    return form[2] if len(held(form, event)) == len(form[0]) else None


def relaxed(form: Form, event: dict[str, int]) -> float | None:
    return round(sum(held(form, event)), 12) if held(form, event) else None


def graph(form: Form, event: dict[str, int]) -> float | None:
    nodes = held(form, event)
    edges = [max(pair) / min(pair) for pair in combinations(nodes, 2) if min(pair) > 0]
    edge = sum(edges) / len(edges) if edges else 0.0
    node = sum(nodes) / len(nodes) if nodes else 0.0
    return round(0.5 * edge + 0.5 * node, 12) or None


@pytest.mark.parametrize("score", [exact, preference, relaxed, graph])
@given(forms=forms, event=events, k=st.integers(1, 6))
def test_target_is_the_best_by_brute_force_and_ties_by_id(
    score: Callable[[Form, dict[str, int]], float | None],
    forms: dict[str, Form],
    event: dict[str, int],
    k: int,
) -> None:
    engine = Engine()
    for name, form in forms.items():
        engine.add(subscription(name, form))
    scores = {name: score(form, event) for name, form in forms.items()}
    found = sorted((-value, name) for name, value in scores.items() if value is not None)
    expected = [(name, -minus) for minus, name in found[:k]]
    assert engine.target(Event("e", event, 0), k, score.__name__) == expected


def test_derived_prefranks_count_and_direct_ones_go_first() -> None:
    """s1 over s2 over s3 gives 1, 2/3 and 1/3; s2 says 0.1 itself."""
    engine = Engine()
    engine.subscribe(Subscriber("u", prefers=[("s1", "s2"), ("s2", "s3")]))
    for name, prefrank in [("s1", None), ("s2", 0.1), ("s3", None)]:
        engine.add(Subscription(name, "u", "a = 1", prefrank=prefrank))
    found = engine.target({"id": "e", "published_at": 0, "attributes": {"a": 1}}, 9, "preference")
    assert found == [("s1", 1.0), ("s3", pytest.approx(1 / 3)), ("s2", 0.1)]


def test_to_target_publishes_nothing() -> None:
    engine = Engine()
    engine.subscribe(Subscriber("u"))
    engine.add(Subscription("s", "u", "a = 1"))
    event = Event("e", {"a": 1}, published_at=0)
    before = engine.snapshot()
    assert engine.target(event) == [("s", 1.0)]
    assert engine.snapshot() == before
    assert [delivery.event for delivery in engine.publish(event)] == ["e"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k is a whole number of at least 1, not 0"),
        ({"scorer": "best"}, "unknown scorer 'best'"),
        ({"event": {"id": "e", "published_at": 0}}, "field 'attributes' is missing"),
    ],
)
def test_a_bad_question_is_refused(arguments: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"event": Event("e", {}, 0)} | arguments
    with pytest.raises(TidingsError, match=message):
        Engine().target(**asked)


@given(forms=forms, event=events, k=st.integers(1, 3), others=st.integers(0, 4))
@pytest.mark.parametrize("few", [0, 5_000])
def test_others_are_explained_by_what_they_lack(
    few: int, forms: dict[str, Form], event: dict[str, int], k: int, others: int
) -> None:
    engine = Engine()
    engine.add_many([subscription(name, form) for name, form in forms.items()])
    whole = Event("e", event, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidings.engine.explain._FEW", few)
        placements = engine.explain_targets(whole, k, "exact", others)
    best = placements[: min(k, len(engine.target(whole, k)))]
    assert [(each.subscription, each.score) for each in best] == engine.target(whole, k)
    rest = placements[len(best) :]
    alone = {name: engine.explain_target(name, whole, k, "exact") for name in forms}
    assert rest == [alone[each.subscription] for each in rest]
    if few:
        lacking = {name: len(each.reason.fails) for name, each in alone.items()}
        order = sorted(forms, key=lambda name: (alone[name].position or 99, lacking[name], name))
        assert [placement.subscription for placement in placements] == order[: len(best) + others]
