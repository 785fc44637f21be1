"""The preference graph (TKS 4.2.1): Bob's space, and a reading of semantics §3 as its judge."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidPolicy, InvalidSubscription
from tidings.model.conditions.parser import render_predicate
from tidings.model.records import Event, Subscription
from tidings.score.graph import Graph, preference_graph

Entries = list[tuple[str, float, str]]
ATT, HTC, VERIZON = "carrier = 'AT&T'", "brand = 'HTC'", "carrier = 'Verizon'"
BOB: list[list[list[Any]]] = [
    [[ATT, 0.4], [HTC, 0.3], ["storage <= 16", 0.7]],
    [[VERIZON, 0.5], ["storage <= 32", 0.2]],
    [[HTC, 0.3], ["storage <= 32", 0.6]],
]
PRODUCT = Event("p", {"carrier": "AT&T", "brand": "HTC", "storage": 32, "color": "Black"}, 0)


def subscriptions(*spaces: Any) -> list[Subscription]:
    return [Subscription(f"s{n}", "bob", any=entries) for n, entries in enumerate(spaces, 1)]


def rank(*spaces: Any, event: Event = PRODUCT, **parameters: Any) -> float | None:
    built = subscriptions(*spaces)
    return Graph(**parameters).prepare(built, []).rank(event, built)


def graph(*spaces: Any) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    scored = preference_graph(subscriptions(*spaces))
    nodes = {render_predicate(node): weight for node, weight in scored.preferences.items()}
    edges = {(render_predicate(a), render_predicate(b)): w for (a, b), w in scored.edges.items()}
    return nodes, edges


def test_the_graph_of_bob_relates_the_predicates_of_each_subscription() -> None:
    """TKS Example 4.2.1 and Fig. 4.4."""
    nodes, edges = graph(*BOB)
    assert nodes == {ATT: 0.4, HTC: 0.3, "storage <= 16": 0.7, VERIZON: 0.5, "storage <= 32": 0.6}
    assert edges == pytest.approx(
        {
            ("storage <= 16", ATT): 7 / 4,
            ("storage <= 16", HTC): 7 / 3,
            (ATT, HTC): 4 / 3,
            (VERIZON, "storage <= 32"): 5 / 2,
            ("storage <= 32", HTC): 2,
        }
    )


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, 1.05),
        ({"lambda_": 0}, 1.3 / 3),
        ({"lambda_": 1}, (4 / 3 + 2) / 2),
        ({"aggregate": "sum"}, (4 / 3 + 2) / 2 + 1.3 / 2),
    ],
)
def test_the_product_satisfies_three_predicates_and_two_edges(
    parameters: dict[str, Any], expected: float
) -> None:
    """TKS Example 4.2.1 and Fig. 4.5: nodes .4 .3 .6, edges 4/3 and 2."""
    assert rank(*BOB, **parameters) == pytest.approx(expected, abs=1e-12)


def test_without_a_satisfied_edge_the_first_term_is_zero() -> None:
    assert rank([[HTC, 0.3], ["storage <= 16", 0.7]]) == 0.15
    assert rank([[HTC, 0.3], ["storage <= 16", 0.7]], lambda_=1) is None


def test_nothing_satisfied_is_no_match() -> None:
    assert rank([[VERIZON, 1], ["storage <= 16", 0.7]]) is None
    assert Graph().prepare(subscriptions(*BOB), []).rank(PRODUCT, []) is None


def test_the_same_edge_keeps_its_largest_weight_and_each_direction_is_an_edge() -> None:
    twice = [[[ATT, 0.4], [HTC, 0.1]], [[ATT, 0.4], [HTC, 0.2]], [[HTC, 0.6], [ATT, 0.2]]]
    nodes, edges = graph(*twice)
    assert nodes == {ATT: 0.4, HTC: 0.6}
    assert edges == pytest.approx({(ATT, HTC): 4, (HTC, ATT): 3})


def test_equal_preferences_give_one_edge_of_weight_one_in_written_order() -> None:
    equal = [[ATT, 0.4], [HTC, 0.4]]
    assert graph(equal)[1] == {(ATT, HTC): 1}
    assert graph(equal, [[ATT, 0.4], [HTC, 0.2]])[1] == {(ATT, HTC): 2}


def test_a_preference_of_zero_has_no_edge_but_counts_in_the_mean() -> None:
    assert graph([[ATT, 0.4], [HTC, 0]])[1] == {}
    assert rank([[ATT, 0.4], [HTC, 0]]) == 0.1


def test_a_plain_condition_prefers_all_its_predicates_alike() -> None:
    built = Subscription("s1", "bob", where=f"{ATT} and {HTC} and storage <= 16")
    assert Graph().prepare([built], []).rank(PRODUCT, [built]) == 1


@pytest.mark.parametrize("state", ["inactive", "dead"])
def test_disabled_and_removed_predicates_are_not_in_the_graph(state: str) -> None:
    assert rank([[ATT, 0.4], [HTC, 0.3, state]]) == rank([[ATT, 0.4]])
    assert rank([[ATT, 0.4], [HTC, 0.3, state]], threshold=2) is None


@pytest.mark.parametrize(("threshold", "silent"), [(0, False), (5, False), (6, True)])
def test_a_graph_below_its_threshold_scores_nothing(threshold: int, silent: bool) -> None:
    """Bob has five different predicates."""
    assert (rank(*BOB, threshold=threshold) is None) == silent


def test_one_subscription_alone_scores_its_own_graph() -> None:
    built = subscriptions(*BOB)
    ranker = Graph().prepare(built, [])
    scored = [ranker.score(PRODUCT, subscription) for subscription in built]
    assert scored == pytest.approx([4 / 6 + 0.35 / 2, 0.1, 1 + 0.225])


ENTRIES = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5]),
    st.sampled_from(["active", "active", "active", "inactive", "dead"]),
)
SPACES = st.lists(
    st.lists(ENTRIES, min_size=1, max_size=4, unique_by=lambda entry: entry[0]),
    min_size=1,
    max_size=4,
)


def by_definition(spaces: list[Entries], true: set[str], share: float, average: bool) -> float:
    nodes: dict[str, float] = {}
    edges: dict[tuple[str, str], float] = {}
    for entries in spaces:
        active = [(name, preference) for name, preference, state in entries if state == "active"]
        for name, preference in active:
            nodes[name] = max(preference, nodes.get(name, 0))
        for pair in combinations(active, 2):
            (hi, most), (lo, least) = sorted(pair, key=lambda entry: -entry[1])
            if least > 0:
                edges[hi, lo] = max(most / least, edges.get((hi, lo), 0))
    held = [preference for name, preference in nodes.items() if name in true]
    satisfied = [weight for (hi, lo), weight in edges.items() if {hi, lo} <= true]
    terms = [
        sum(weights) / (len(weights) or 1) if average else sum(weights)
        for weights in (satisfied, held)
    ]
    return share * terms[0] + (1 - share) * terms[1]


@given(SPACES, st.sets(st.sampled_from("abcd")), st.sampled_from([0, 0.3, 1]), st.booleans())
def test_the_score_is_as_defined(
    spaces: list[Entries], true: set[str], share: float, average: bool
) -> None:
    written = [[[f"{name} = 1", *rest] for name, *rest in entries] for entries in spaces]
    event = Event("e", dict.fromkeys(true, 1), 0)
    expected = by_definition(spaces, true, share, average)
    scored = rank(*written, event=event, lambda_=share, aggregate="mean" if average else "sum")
    assert scored == (pytest.approx(expected, abs=1e-12) if expected > 0 else None)


@given(st.permutations(BOB))
def test_the_order_of_the_subscriptions_does_not_matter(spaces: list[Any]) -> None:
    assert rank(*spaces) == rank(*BOB)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"lambda_": 1.5}, "lambda is between 0 and 1, not 1.5"),
        ({"aggregate": "max"}, "aggregate is one of 'mean', 'sum', not 'max'"),
        ({"threshold": -1}, "threshold is a whole number of at least 0, not -1"),
    ],
)
def test_invalid_parameters_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        Graph(**arguments)


def test_a_graph_of_too_many_pairs_is_refused_before_it_is_built() -> None:
    many = Subscription("s", "bob", any=[[f"x = {number}", 1] for number in range(2_000)])
    with pytest.raises(InvalidSubscription, match="1,999,000 pairs of this subscriber"):
        preference_graph([many])
