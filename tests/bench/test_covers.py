"""What the bench of covers says: PREF Table 2, and how few pairs are compared."""

import importlib.util
import sys
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from tests.index.papers.cover_graph.drawn import ancestors

from tidings.index.papers.cover_graph import PreferentialGraph
from tidings.model.conditions.implication import covers

pytestmark = pytest.mark.bench
BENCH = Path(__file__).parents[2] / "bench"
SIZE = 20_000


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The bench as a module; what it puts on the path goes again."""
    path, modules = [*sys.path], {*sys.modules}
    spec = importlib.util.spec_from_file_location("bench_covers", BENCH / "covers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = path
    for name in ("interval", "peers", "rps", "catalogue"):
        if name not in modules:
            sys.modules.pop(name, None)
    return module


@pytest.fixture(scope="module")
def rows(bench: ModuleType) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bench.table_2()
    return found


def test_siena_checks_the_roots_only(rows: list[dict[str, Any]]) -> None:
    assert [row["siena"] for row in rows] == [row["paper"][0] for row in rows]
    assert all(row["siena"] == round((1 - row["c"]) * 100 * 100) for row in rows)


def test_ranking_costs_a_check_for_each_match_that_may_be_refined(
    rows: list[dict[str, Any]],
) -> None:
    for row in rows:
        assert row["pref"] - row["siena"] == (round(100 * row["m"]) if row["c"] else 0)


def test_table_2_comes_out_but_for_one_cell(rows: list[dict[str, Any]]) -> None:
    """At m = 20 %, c = 50 % the paper has the count of half as many matches."""
    other = [(row["m"], row["c"]) for row in rows if (row["siena"], row["pref"]) != row["paper"]]
    assert other == [(0.2, 0.5)]


@pytest.fixture(scope="module")
def shop(bench: ModuleType) -> tuple[list[Any], PreferentialGraph]:
    wishes = bench.subscriptions(SIZE)
    return wishes, PreferentialGraph(wishes)


def test_far_fewer_than_all_pairs_are_compared(shop: tuple[list[Any], PreferentialGraph]) -> None:
    _, graph = shop
    assert graph.poset.compared < 0.01 * SIZE**2
    assert len(graph.poset) > SIZE // 2


def test_some_of_many_have_exactly_the_covers_of_the_scan(
    shop: tuple[list[Any], PreferentialGraph],
) -> None:
    wishes, graph = shop
    for one in Random(1).sample(wishes, 12):
        node = graph._node_of[one.id]
        over = {node, *ancestors(node)}
        for other in wishes:
            there = graph._node_of[other.id]
            assert (there in over) == covers(other.conjunctions, one.conjunctions)


def test_the_edges_of_many_skip_nothing(shop: tuple[list[Any], PreferentialGraph]) -> None:
    """No parent is also further above, by another way."""
    _, graph = shop
    for node in Random(2).sample([*graph.poset], 1000):
        for parent in node.parents:
            assert not any(parent in ancestors(other) for other in node.parents)


def test_a_full_graph_shrinks_and_grows_to_the_same(
    shop: tuple[list[Any], PreferentialGraph],
) -> None:
    wishes, graph = shop
    before, some = shape(graph), Random(3).sample(wishes, 200)
    for each in some:
        graph.remove(each.id)
    assert shape(graph) != before
    for each in some:
        graph.add(each)
    assert shape(graph) == before


def shape(graph: PreferentialGraph) -> tuple[int, int, int]:
    edges = sum(len(node.children) for node in graph.poset)
    return len(graph.poset), len(graph.poset.roots), edges
