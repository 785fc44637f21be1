"""The original OpIndex, and claims about construction."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.scan import Scan
from tidings.lab.papers.tks_figure_7_9 import (
    LISTS,
    MODIFIED,
    ORIGINAL,
    Construction,
    PivotOpIndex,
    graphs,
    overhead_is_the_graph,
    relations_by_size,
    relations_explode,
    takes_twice_as_long,
    updates_take_longer,
)
from tidings.model.records import Event, Subscription

TEXTS = st.sampled_from(["a", "ab", "b", "ba"])
TUPLES = st.tuples(
    st.sampled_from("xyz"), st.sampled_from(["= '{}'", "like '{}%'", "like '%{}'"]), TEXTS
)
CONDITIONS = st.lists(
    st.lists(TUPLES, min_size=1, max_size=4).map(
        lambda parts: " and ".join(f"{name} {how.format(text)}" for name, how, text in parts)
    ),
    max_size=8,
)
EVENTS = st.dictionaries(
    st.sampled_from("xyz"), TEXTS | st.lists(TEXTS, min_size=1, max_size=2), max_size=3
)


@given(CONDITIONS, EVENTS, st.dictionaries(st.sampled_from("xyz"), st.integers(0, 3)))
def test_it_finds_what_a_scan_finds(conditions, attributes, frequencies) -> None:
    drawn = [Subscription(f"s{n}", "a", where=where) for n, where in enumerate(conditions)]
    index, event = PivotOpIndex(Counter(frequencies)), Event("e", attributes, 0)
    for one in drawn:
        index.add(one)
    assert index.matching(event) == [
        subscription.id for subscription in Scan(drawn).matching(event)
    ]


def test_every_subscriber_has_a_graph() -> None:
    parts = [("x = 'a'", 0.5), ("y = 'b'", 0.25), ("z = 'c'", 1.0)]
    drawn = [Subscription(f"s{n}", f"u{n % 2}", any=parts) for n in range(4)]
    assert [len(graph.edges) for graph in graphs(drawn)] == [3, 3]  # equal relations count once


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [
        (takes_twice_as_long, (1.0, 2.0), (1.0, 9.0)),
        (overhead_is_the_graph, (1.1, 2.0), (1.9, 2.0)),
    ],
)
def test_claims_follow_from_times(claim, good, bad) -> None:
    def built(lists: float, whole: float) -> dict[int, Construction]:
        return {100: Construction(10, 40, {ORIGINAL: 1.0, LISTS: lists, MODIFIED: whole})}

    assert claim(built(*good)).holds
    assert not claim(built(*bad)).holds


def test_quadratic_relations_do_not_explode() -> None:
    built = {1: Construction(10, 40, {})}
    assert relations_explode(built, {2: 4, 3: 8, 4: 16, 8: 256}).holds
    quadratic = relations_explode(built, {d: d * (d - 1) / 2 for d in (2, 3, 8, 32)})
    assert not quadratic.holds
    assert quadratic.ours.startswith("1 of 2 tuples, 496 of 32;")
    assert not relations_explode(built, {2: 1}).holds  # a catalogue with two attributes


def test_relations_are_counted_by_the_size_of_subscriptions() -> None:
    parts = [("x = 'a'", 0.5), ("y = 'b'", 0.25), ("z = 'c'", 1.0), ("z = 'd'", 0.7)]
    drawn = [Subscription(f"s{n}", "u", any=parts[:n]) for n in (2, 4, 4)]
    assert relations_by_size(drawn) == {2: 1, 4: 6}


def test_the_time_of_an_update_may_grow() -> None:
    def built(*ms: float) -> dict[int, Construction]:
        return {10**n: Construction(1, 1, {MODIFIED: each}) for n, each in enumerate(ms, start=1)}

    assert updates_take_longer(built(10.0, 150.0)).holds
    assert not updates_take_longer(built(10.0, 105.0)).holds
