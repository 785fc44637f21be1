"""Heaps in arrays against `sorted` and `heapq.merge`."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.heaps import heap_offer, heap_sort, lists_pop, lists_push, lists_sink


@given(st.lists(st.integers(-9, 9), max_size=30), st.integers(0, 6))
def test_the_k_smallest_numbers_are_kept(numbers: list[int], k: int) -> None:
    heap, size = np.zeros(k, np.int64), 0
    for number in numbers:
        size = heap_offer(heap, size, number)
    heap_sort(heap, size)
    assert heap[:size].tolist() == sorted(numbers)[:k]


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5).map(sorted), max_size=5))
def test_sorted_lists_are_merged(lists: list[list[int]]) -> None:
    values = np.array([value for numbers in lists for value in numbers], np.int64)
    rows, size, start = np.zeros(3 * len(lists) + 2, np.int64), 0, 2
    position = 0
    for numbers in lists:
        row = (numbers[0], position, position + len(numbers))
        size = lists_push(rows, start, size, row)
        position += len(numbers)
    merged = []
    while size:
        value, position, end = rows[start : start + 3].tolist()
        merged.append(value)
        if position + 1 < end:
            rows[start], rows[start + 1] = values[position + 1], position + 1
            lists_sink(rows, start, size)
        else:
            size = lists_pop(rows, start, size)
    assert merged == list(heapq.merge(*lists))
