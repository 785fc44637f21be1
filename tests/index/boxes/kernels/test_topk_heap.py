"""Top-k heaps against sorted lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.boxes.kernels.topk_heap import TopkHeaps, topk_offer, topk_pop, topk_sort

entries = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), unique=True)


def heaps_of(offered, k):
    """Two rows, of which only the second is used."""
    heaps = TopkHeaps(np.zeros((2, k)), np.zeros((2, k), np.int64), np.zeros(2, np.int64))
    for score, id in offered:
        topk_offer(heaps, 1, float(score), id)
    return heaps


def ranked(offered, k):
    return sorted(offered, key=lambda entry: (-entry[0], entry[1]))[:k]


@given(entries, st.integers(0, 9))
def test_the_k_best_are_kept_in_order(offered, k):
    heaps = heaps_of(offered, k)
    topk_sort(heaps)
    size = heaps.sizes[1]
    expected = ranked(offered, k)
    assert list(zip(heaps.scores[1, :size], heaps.ids[1, :size], strict=True)) == expected
    assert heaps.sizes[0] == 0


@given(entries, st.integers(1, 9))
def test_pops_remove_the_worst_first(offered, k):
    heaps = heaps_of(offered, k)
    popped = []
    while heaps.sizes[1]:
        popped.append((heaps.scores[1, 0], heaps.ids[1, 0]))
        topk_pop(heaps, 1)
    assert popped[::-1] == ranked(offered, k)
