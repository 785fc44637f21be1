"""Skew heaps against a sorted list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.jit import kernel
from tidings.diversify.kernels.skew_heap import Heap, Rank, skew_add, skew_drop

MOST = 12


@kernel
def added(heap: Heap, rank: Rank, top: int, node: int) -> int:
    return skew_add(heap, rank, 1, top, node)


@kernel
def dropped(heap: Heap, rank: Rank, top: int, node: int) -> int:
    return skew_drop(heap, rank, 1, top, node)


KEYS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=MOST, max_size=MOST)


@given(KEYS, st.lists(st.integers(0, MOST - 1), max_size=60))
def test_the_best_is_on_top_whatever_comes_and_goes(
    keys: list[tuple[int, int]], toggled: list[int]
) -> None:
    """Keys tie, then times, then the numbers of the nodes decide."""
    heap = np.full((MOST, 3), -1)
    rank = (
        np.array([float(key) for key, _ in keys]),
        np.array([time for _, time in keys]),
        np.arange(MOST),
    )
    inside: set[int] = set()
    top = -1
    for node in toggled:
        top = (dropped if node in inside else added)(heap, rank, top, node)
        inside ^= {node}
        best = min(inside, key=lambda i: (-keys[i][0], -keys[i][1], i), default=-1)
        assert top == best
        assert reached(heap, top) == inside


def reached(heap: Heap, top: int) -> set[int]:
    """All nodes below the top; each must name its parent."""
    left, right, parent = heap.T
    found, todo = set(), [(top, -1)] if top >= 0 else []
    while todo:
        node, above = todo.pop()
        assert node not in found
        assert parent[node] == above
        found.add(node)
        todo += [(child, node) for child in (left[node], right[node]) if child >= 0]
    return found
