"""The preferential subscription graph: PrefRank sets, status bits, walks and ranks."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.papers.cover_graph.drawn import EVENTS, SUBSCRIBERS, histories, replayed

from tidings.index.papers.cover_graph import PreferentialGraph
from tidings.model.conditions.implication import strictly_covers
from tidings.model.records import Event, Subscription
from tidings.score.preference import AGGREGATES, Preference
from tidings.testing import workload

STER = "cinema = 'ster' and genre = 'drama' and time > 21"
LATE = "genre = 'drama' and time > 21"
ODEON = "cinema = 'odeon' and genre = 'drama' and time > 21"


def event(**attributes: Any) -> Event:
    return Event("e", attributes, 0)


def figure_9() -> PreferentialGraph:
    return PreferentialGraph(
        [
            Subscription("c1", "carson", STER, prefrank=0.9),
            Subscription("c2", "carson", LATE, prefrank=0.7),
            Subscription("c3", "carson", "cinema = 'ster'", prefrank=0.5),
            Subscription("a1", "addison", STER, prefrank=0.6),
            Subscription("a4", "addison", ODEON, prefrank=0.3),
        ]
    )


def bits(graph: PreferentialGraph) -> dict[str, bool]:
    return {
        name: entry.status
        for node in graph.poset
        for entry in node.entries.values()
        for name in entry.prefranks
    }


def test_figure_9_has_four_nodes_two_of_them_roots() -> None:
    graph = figure_9()
    assert len(graph.poset) == 4
    assert len(graph.poset.roots) == 2
    assert bits(graph) == {"c1": False, "c2": True, "c3": True, "a1": False, "a4": False}


def test_figure_9_ranks_a_drama_at_ster_by_the_most_specific_subscription() -> None:
    ranks = figure_9().ranks(event(cinema="ster", genre="drama", time=21.5))
    assert ranks == {"addison": 0.6, "carson": 0.9}


def test_nothing_below_a_node_that_does_not_match_is_tested() -> None:
    graph = figure_9()
    assert graph.ranks(event(cinema="odeon", genre="drama", time=22)) == {
        "addison": 0.3,
        "carson": 0.7,
    }
    assert graph.counters()["subscriptions"] == 3, "two roots and odeon; ster has a false parent"
    graph = figure_9()
    assert graph.ranks(event(cinema="rex", genre="horror", time=22)) == {}
    assert graph.counters() == {"subscriptions": 2, "predicates": 2}


def test_a_predicate_is_tested_once_an_event() -> None:
    graph = figure_9()
    graph.matching(event(cinema="ster", genre="drama", time=22))
    assert graph.counters() == {"subscriptions": 4, "predicates": 4}


def test_the_walk_for_one_subscriber_ends_where_its_status_bit_is_zero() -> None:
    graph = PreferentialGraph(
        [
            Subscription("s1", "ann", "x > 0", prefrank=0.2),
            Subscription("s2", "bob", "x > 0", prefrank=0.3),
            Subscription("s3", "bob", "x > 0 and y > 0", prefrank=0.9),
        ]
    )
    both = event(x=1, y=1)
    assert graph.ranks(both, subscribers=["ann"]) == {"ann": 0.2}
    assert graph.counters()["subscriptions"] == 1
    assert graph.ranks(both, subscribers=["bob"]) == {"bob": 0.9}
    assert graph.counters()["subscriptions"] == 3
    assert graph.notified(both, ["bob"]) == {"bob"}
    assert graph.counters()["subscriptions"] == 4, "notification needs no deeper node"
    assert graph.ranks(both) == {"ann": 0.2, "bob": 0.9}


def test_status_bits_follow_additions_and_removals() -> None:
    graph = figure_9()
    graph.remove("c1")
    assert bits(graph) == {"c2": False, "c3": False, "a1": False, "a4": False}
    graph.add(Subscription("a5", "addison", LATE))
    assert bits(graph)["a5"]
    graph.add(Subscription("c6", "carson", ODEON))
    assert bits(graph)["c2"]
    assert not bits(graph)["c3"]


def test_entries_of_a_chain_are_linked_to_the_next_one_only() -> None:
    chain = [Subscription(f"s{n:02d}", "ann", f"x > {n}", prefrank=n / 100) for n in range(60)]
    graph = PreferentialGraph(chain[::2] + chain[1::2])
    entries = [graph._node_of[link.id].entries["ann"] for link in chain]
    assert [entry.children for entry in entries] == [[entry] for entry in entries[1:]] + [[]]
    assert graph.ranks(event(x=41)) == {"ann": 0.4}
    for link in chain[1:-1]:
        graph.remove(link.id)
    assert entries[0].children == [entries[-1]]
    assert graph.ranks(event(x=41)) == {"ann": 0.0}


def test_a_prefrank_can_be_set_later() -> None:
    graph = figure_9()
    graph.rerank("c1", 0.1)
    graph.add(Subscription("off", "carson", any=[["x = 1", 1, "inactive"]]))
    graph.rerank("off", 0.8)
    assert graph.ranks(event(cinema="ster", genre="drama", time=22))["carson"] == 0.1
    graph.remove("off")


def ranks_by_scorer(
    current: dict[str, Subscription], event: Event, scorer: Preference
) -> dict[str, float | None]:
    """Return the ranks of the plain scorer, subscriber by subscriber."""
    owned: dict[str, list[Subscription]] = defaultdict(list)
    for subscription in current.values():
        owned[subscription.subscriber].append(subscription)
    ranked = {name: scorer.prepare(own, []).rank(event, own) for name, own in owned.items()}
    return {name: rank for name, rank in sorted(ranked.items()) if rank is not None}


@pytest.mark.parametrize("aggregate", [*AGGREGATES])
@given(histories(), EVENTS, st.sets(st.sampled_from(SUBSCRIBERS)))
def test_ranks_are_those_of_the_preference_scorer(
    aggregate: str, steps: list[Subscription | str], attributes: dict[str, Any], some: set[str]
) -> None:
    graph, current = replayed(steps)
    weights = (
        {name: 0.25 * (1 + int(name[1:]) % 3) for name in current} if aggregate == "sum" else {}
    )
    asked = Event("e", attributes, 0)
    expected = ranks_by_scorer(current, asked, Preference(aggregate, weights))
    ranks = graph.ranks(asked, AGGREGATES[aggregate], weights)
    assert ranks == expected
    assert list(ranks) == sorted(ranks)
    named = graph.ranks(asked, AGGREGATES[aggregate], weights, sorted(some))
    assert named == {name: rank for name, rank in expected.items() if name in some}
    assert graph.notified(asked, some) == set(named)


@given(histories(), EVENTS)
def test_the_status_bit_says_whether_the_subscriber_is_found_below(
    steps: list[Subscription | str], attributes: dict[str, Any]
) -> None:
    graph, current = replayed(steps)
    status = bits(graph)
    active = {name: one for name, one in current.items() if all(one.conjunctions)}
    assert set(status) == set(active)
    for name, one in active.items():
        assert status[name] == any(
            other.subscriber == one.subscriber
            and strictly_covers(one.conjunctions, other.conjunctions)
            for other in active.values()
        )


@given(histories(), EVENTS)
def test_a_walk_checks_each_node_at_most_once_and_fewer_for_those_named(
    steps: list[Subscription | str], attributes: dict[str, Any]
) -> None:
    asked = Event("e", attributes, 0)
    counts = []
    for walk in (
        lambda graph: graph.notified(asked, SUBSCRIBERS[:1]),
        lambda graph: graph.matched(asked, SUBSCRIBERS[:1]),
        lambda graph: graph.matched(asked),
    ):
        graph, _ = replayed(steps)
        walk(graph)
        counts.append(graph.counters()["subscriptions"])
    assert counts == sorted(counts)
    assert counts[-1] <= len(graph.poset)
    assert counts[0] >= len(graph.poset.roots)


def test_a_stream_about_films_is_ranked_as_by_the_plain_form() -> None:
    work = workload(seed=11, events=80, subscribers=30)
    graph = PreferentialGraph(work.subscriptions)
    current = {subscription.id: subscription for subscription in work.subscriptions}
    for number, published in enumerate(work.events):
        assert graph.ranks(published) == ranks_by_scorer(current, published, Preference())
        removed = work.subscriptions[number].id
        if number % 2:
            graph.remove(removed)
            del current[removed]
    assert len(graph.poset) < len(current), "equal conditions share nodes"
