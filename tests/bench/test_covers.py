"""The benchmark of covers: the number of compared pairs."""

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
    """Return the benchmark as a module, and restore the import path and modules."""
    path, modules = [*sys.path], {*sys.modules}
    spec = importlib.util.spec_from_file_location("bench_covers", BENCH / "covers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = path
    for name in ("interval", "peers", "catalogue"):
        if name not in modules:
            sys.modules.pop(name, None)
    return module


@pytest.fixture(scope="module")
def shop(bench: ModuleType) -> tuple[list[Any], PreferentialGraph]:
    subscriptions = bench.subscriptions(SIZE)
    return subscriptions, PreferentialGraph(subscriptions)


def test_far_fewer_than_all_pairs_are_compared(shop: tuple[list[Any], PreferentialGraph]) -> None:
    _, graph = shop
    assert graph.poset.compared < 0.01 * SIZE**2
    assert len(graph.poset) > SIZE // 2


def test_a_sample_has_exactly_the_covers_of_the_scan(
    shop: tuple[list[Any], PreferentialGraph],
) -> None:
    subscriptions, graph = shop
    for one in Random(1).sample(subscriptions, 12):
        node = graph._node_of[one.id]
        above = {node, *ancestors(node)}
        for other in subscriptions:
            other_node = graph._node_of[other.id]
            assert (other_node in above) == covers(other.conjunctions, one.conjunctions)


def test_edges_are_transitively_reduced(shop: tuple[list[Any], PreferentialGraph]) -> None:
    """No parent is an ancestor of another parent."""
    _, graph = shop
    for node in Random(2).sample([*graph.poset], 1000):
        for parent in node.parents:
            assert not any(parent in ancestors(other) for other in node.parents)


def test_removing_and_adding_again_restores_the_graph(
    shop: tuple[list[Any], PreferentialGraph],
) -> None:
    subscriptions, graph = shop
    before, sample = shape(graph), Random(3).sample(subscriptions, 200)
    for subscription in sample:
        graph.remove(subscription.id)
    assert shape(graph) != before
    for subscription in sample:
        graph.add(subscription)
    assert shape(graph) == before


def shape(graph: PreferentialGraph) -> tuple[int, int, int]:
    edges = sum(len(node.children) for node in graph.poset)
    return len(graph.poset), len(graph.poset.roots), edges
