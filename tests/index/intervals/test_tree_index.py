"""An index of arrays and kernels, with kernels in plain Python: ids are those above the query."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.index.intervals.plain import ranked

from tidings.errors import TidingsError
from tidings.index.intervals.rtree import RangeTree, scored_rtree
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

PLACE = 3


def walk(tree: Any, q: float, state: Any, out: Any) -> int:
    """Write the next ids of the tree that are at least q, from state[PLACE] on."""
    (ids,) = tree
    found = ids[ids >= q][state[PLACE] : state[PLACE] + len(out)]
    out[: len(found)] = found
    state[PLACE] += len(found)
    state[0], state[1] = 1, 1
    state[2] += len(found)
    return len(found)


def walk_many(tree: Any, qs: Any, out: Any, counts: Any) -> None:
    for row, q in enumerate(qs):
        counts[row] = walk(tree, q, np.zeros(4, np.int64), out[row])


def index_of(size: int, **options: Any) -> TreeIndex:
    ids = np.arange(size)
    range_tree = RangeTree(lambda: scored_rtree(ranked([(0.0, 1.0, 1.0)] * size)))
    return TreeIndex("plain", size, (ids,), WalkKernels(walk, walk_many, 4), range_tree, **options)


def test_top_returns_the_first_k_ids_of_the_walk() -> None:
    index = index_of(5)
    assert index.top(2, 2).tolist() == [2, 3]
    assert index.top(2, 0).tolist() == []
    assert index.top(2, 10**12).tolist() == [2, 3, 4]


def test_a_batch_is_padded() -> None:
    ids, counts = index_of(5).top_many(np.array([3.0, 9.0]), 3)
    assert (ids.tolist(), counts.tolist()) == ([[3, 4, -1], [-1, -1, -1]], [2, 0])


def test_an_iterator_resumes_its_own_walk() -> None:
    index = index_of(500)
    one, other = index.iterate(10), index.iterate(300)
    assert list(islice(one, 3)) == [10, 11, 12]
    assert list(other) == list(range(300, 500))
    assert list(one) == list(range(13, 500))


def test_counters_are_those_of_the_last_top_and_of_the_build() -> None:
    index = index_of(9, notes={"edges": 4})
    index.top(1, 3)
    assert index.counters() == {"nodes": 1, "leaves": 1, "intervals": 3, "edges": 4}
    list(index.iterate(0))
    index.top_many(np.zeros(2), 9)
    assert index.counters()["intervals"] == 3
    assert index.state().tolist() == [1, 1, 3, 3]


def test_a_new_index_has_visited_nothing() -> None:
    assert index_of(3).counters() == {"nodes": 0, "leaves": 0, "intervals": 0}


def test_bytes_count_the_tree_of_ranges_once_it_is_built() -> None:
    index = index_of(4)
    assert index.nbytes == 32
    assert index.ranges.top(0, 1, 2).tolist() == [0, 1]
    assert index.nbytes == 32 + index.range_tree.nbytes > 32


def test_bytes_of_a_tree_that_answers_its_own_ranges_count_once() -> None:
    tree = scored_rtree(ranked([(0.0, 1.0, 1.0)]))
    index = TreeIndex("r", 1, tree, WalkKernels(walk, walk_many, 4), RangeTree(lambda: tree))
    before = index.nbytes
    index.ranges.top(0, 1, 1)
    assert index.nbytes == before == sum(column.nbytes for column in tree)


def test_wrong_queries_are_refused() -> None:
    index = index_of(3)
    with pytest.raises(TidingsError, match="k = -1 is below 0"):
        index.top(0, -1)
    with pytest.raises(TidingsError, match="the query: expected a number"):
        index.iterate("one")  # type: ignore[arg-type]
    with pytest.raises(TidingsError, match="one dimension"):
        index.top_many(np.zeros((1, 1)), 1)
