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
    relations_outgrow,
    takes_twice_as_long,
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
    assert index.matching(event) == [one.id for one in Scan(drawn).matching(event)]


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


def test_relations_are_compared_with_tuples() -> None:
    assert relations_outgrow({1: Construction(10, 40, {})}).holds
    assert not relations_outgrow({1: Construction(10, 15, {})}).holds
