"""The cover graph equals its definition after any additions and removals."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.papers.cover_graph.definition import Names, edges_by_scan, nodes_by_scan
from tests.index.papers.cover_graph.drawn import (
    ancestors,
    apply_step,
    conditions,
    histories,
    replayed,
)

from tidings.index.papers.cover_graph import CoverNode, CoverPoset, PreferentialGraph
from tidings.index.papers.cover_graph.poset import ConjunctionIndex
from tidings.model.conditions.implication import covers
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import Condition
from tidings.model.records import Subscription

Edges = set[tuple[Names, Names]]


def names(node: CoverNode) -> Names:
    return frozenset(name for entry in node.entries.values() for name in entry.prefranks)


def edges(poset: CoverPoset) -> Edges:
    down = [(node, child) for node in poset for child in node.children]
    up = [(parent, node) for node in poset for parent in node.parents]
    assert sorted(map(id_pair, down)) == sorted(map(id_pair, up)), "both ends know of an edge"
    assert len(set(down)) == len(down)
    return {(names(wide), names(narrow)) for wide, narrow in down}


def id_pair(pair: tuple[CoverNode, CoverNode]) -> tuple[int, int]:
    return id(pair[0]), id(pair[1])


def check(graph: PreferentialGraph, current: dict[str, Subscription]) -> None:
    active = {name: one.conjunctions for name, one in current.items() if all(one.conjunctions)}
    nodes, wanted = nodes_by_scan(active), edges_by_scan(active)
    assert {names(node) for node in graph.poset} == nodes
    assert len(graph.poset) == len(nodes)
    assert edges(graph.poset) == wanted
    below = {narrow for _, narrow in wanted}
    assert {names(root) for root in graph.poset.roots} == nodes - below


@given(histories())
def test_nodes_edges_and_roots_are_as_defined_after_every_step(
    steps: list[Subscription | str],
) -> None:
    graph, current = PreferentialGraph(), dict[str, Subscription]()
    for step in steps:
        apply_step(step, graph, current)
        check(graph, current)


@given(histories())
def test_removed_subscriptions_leave_nothing_behind(steps: list[Subscription | str]) -> None:
    graph, current = replayed(steps)
    for name in sorted(current):
        graph.remove(name)
    rows = graph.poset._conjunctions
    left = [
        graph._node_of,
        graph._entries_of,
        graph._subscriptions,
        rows._conjunctions,
        rows._regions,
    ]
    left += [rows._asked, rows._posted, rows._uses, graph.poset._nodes, graph.poset.roots]
    assert not any(left)


@given(conditions(), conditions())
def test_conditions_share_a_node_if_they_cover_each_other(one: Condition, other: Condition) -> None:
    """And a graph of two has an edge exactly where one covers the other."""
    poset = CoverPoset()
    first, second = (poset.add(condition.conjunctions).node for condition in (one, other))
    down, up = (
        covers(one.conjunctions, other.conjunctions),
        covers(other.conjunctions, one.conjunctions),
    )
    assert (first is second) == (down and up)
    assert first.covers(second) == down
    assert (second in first.children) == (down and not up)
    assert (first in second.children) == (up and not down)


CHAIN = ["x > 1", "x > 2", "x > 3 and y = 1", "x > 3 and y = 1 and z = 'a'"]


@pytest.mark.parametrize("order", [*permutations(range(4))])
def test_a_node_between_two_others_separates_them_until_it_is_removed(
    order: tuple[int, ...],
) -> None:
    poset = CoverPoset()
    nodes = {link: poset.add(parse(CHAIN[link]).conjunctions).node for link in order}
    for wide, narrow in zip(range(3), range(1, 4), strict=True):
        assert nodes[wide].children == [nodes[narrow]]
        assert nodes[narrow].parents == [nodes[wide]]
    assert list(poset.roots) == [nodes[0]]
    assert ancestors(nodes[3]) == {nodes[0], nodes[1], nodes[2]}
    poset.remove(nodes[1])
    assert nodes[0].children == [nodes[2]]
    poset.remove(nodes[0])
    assert list(poset.roots) == [nodes[2]]


def test_a_removal_joins_only_nodes_without_another_path() -> None:
    poset = CoverPoset()
    top, left, right, low = (
        poset.add(parse(text).conjunctions).node
        for text in ("x > 1", "x > 1 and y = 1", "x > 1 and z = 1", "x > 1 and y = 1 and z = 1")
    )
    poset.remove(left)
    assert top.children == [right]
    assert low.parents == [right]
    poset.remove(right)
    assert top.children == [low]


@pytest.mark.parametrize(
    "texts",
    [
        ("a = 'x'", "a in ('x')", "a between 'x' and 'x'"),
        ("b", "b != false", "b in (true)"),
        ("a = 'ab' and a like 'a%'", "a = 'ab'", "a = 'ab' or (a = 'ab' and c = 1)"),
        ("x >= 1 and x <= 5", "x between 1 and 5"),
        ("a <= ''", "a = ''"),
        ("p = 1 and q = 2", "q = 2 and p = 1"),
    ],
)
def test_equivalent_conditions_share_a_node(texts: tuple[str, ...]) -> None:
    poset = CoverPoset()
    placed = [poset.add(parse(text).conjunctions) for text in texts]
    assert len({one.node for one in placed}) == len(poset) == 1
    assert [one.is_new for one in placed] == [True] + [False] * (len(texts) - 1)


@given(st.lists(conditions(), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_additions_does_not_matter(drawn: list[Condition], chance: object) -> None:
    shuffled = [*drawn]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    sizes = []
    for order in (drawn, shuffled):
        poset = CoverPoset()
        for condition in order:
            poset.add(condition.conjunctions)
        sizes.append((len(poset), len(poset.roots), sum(len(node.children) for node in poset)))
    assert sizes[0] == sizes[1]


@given(st.lists(conditions(), min_size=1, max_size=10), st.sets(st.integers(0, 9)))
def test_covering_and_covered_conjunctions_are_those_of_the_definition(
    drawn: list[Condition], removed: set[int]
) -> None:
    rows = ConjunctionIndex()
    interned = dict.fromkeys(rows.intern(one.conjunctions[0]) for one in drawn)
    left = [row for number, row in enumerate(interned) if number not in removed]
    for number, row in enumerate(interned):
        if number in removed:
            rows.drop(row)
    assert len(rows) == len(left)
    written = {row: (tuple(region.predicate for region in row.regions),) for row in left}
    for row in left:
        covering, covered = rows.covering(row), rows.covered(row)
        assert set(covering) == {one for one in left if covers(written[one], written[row])}
        assert set(covered) == {one for one in left if covers(written[row], written[one])}
        assert len(covering) == len(set(covering))
        assert len(covered) == len(set(covered))


def test_a_conjunction_is_stored_once_and_as_long_as_a_node_has_it() -> None:
    rows = ConjunctionIndex()
    row = rows.intern(parse("x > 1 and y = 'a'").conjunctions[0])
    assert rows.intern(parse("y in ('a') and x > 1").conjunctions[0]) is row
    row.nodes.append("a node")
    rows.drop(row)
    assert len(rows) == 1
    row.nodes.clear()
    rows.drop(row)
    assert len(rows) == 0


@pytest.mark.parametrize(("size", "most"), [(50, 60), (500, 600)])
def test_conjunctions_without_a_common_value_are_not_compared(size: int, most: int) -> None:
    """Many kinds with one common attribute: a conjunction is compared with itself only."""
    rows = ConjunctionIndex()
    interned = [
        rows.intern(parse(f"price < {number} and kind = 'k{number}'").conjunctions[0])
        for number in range(size)
    ]
    assert [rows.covering(row) for row in interned] == [rows.covered(row) for row in interned]
    assert rows.compared <= 2 * most
