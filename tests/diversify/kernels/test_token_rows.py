"""Rows of hashes: sorting, numbering, inverted lists and masks."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.arrays import offsets
from tidings.diversify.kernels.token_rows import list_rows, mask_rows, number_hashes, sort_rows

# Hashes that share their low bits, so that positions in the hash table collide.
HASH = st.integers(0, 40).map(lambda i: (i % 5) + (i << 32))
ROWS = st.lists(st.dictionaries(HASH, st.integers(0, 2), max_size=6), max_size=8)
WEIGHT = {i % 5 + (i << 32): weight for i, weight in enumerate([0.1, 0.2, 0.7, 3.0, 0.0] * 9)}


def arrays(rows: list[dict[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    keys = [key for row in rows for key in row]
    marks = [3 * key + row[key] for row in rows for key in row]
    weights = np.array([WEIGHT[key] for key in keys], np.float64)
    starts = offsets([len(row) for row in rows])
    return starts, np.array(keys, np.uint64), np.array(marks, np.uint64), weights


@given(ROWS, st.booleans())
def test_rows_are_sorted_with_their_marks_and_weights(
    rows: list[dict[int, int]], weighted: bool
) -> None:
    starts, keys, marks, weights = arrays(rows)
    sort_rows(starts, keys, marks, weights if weighted else np.empty(0))
    for i, row in enumerate(rows):
        part = slice(starts[i], starts[i + 1])
        assert keys[part].tolist() == sorted(row)
        assert marks[part].tolist() == [3 * key + row[key] for key in sorted(row)]
        if weighted:
            assert weights[part].tolist() == [WEIGHT[key] for key in sorted(row)]


@given(st.lists(HASH))
def test_hashes_are_numbered_in_order_of_first_occurrence(hashes: list[int]) -> None:
    numbers = np.empty(len(hashes), np.int32)
    count = number_hashes(np.array(hashes, np.uint64), numbers)
    first = {element: number for number, element in enumerate(dict.fromkeys(hashes))}
    assert count == len(first)
    assert numbers.tolist() == [first[element] for element in hashes]


@given(ROWS)
def test_inverted_lists_hold_the_rows_of_each_mark(rows: list[dict[int, int]]) -> None:
    starts, _, marks, _ = arrays(rows)
    numbers, positions = (np.empty(len(marks), np.int32) for _ in range(2))
    holding = np.empty(len(marks), np.uint32)
    heads = np.empty(number_hashes(marks, numbers) + 1, np.int64)
    list_rows(starts, numbers, heads, positions, holding)
    holders = defaultdict(list)
    for i, row in enumerate(rows):
        for key in row:
            holders[3 * key + row[key]].append(i)
    for i in range(len(rows)):
        for element in range(starts[i], starts[i + 1]):
            first, end = heads[numbers[element]], heads[numbers[element] + 1]
            assert holding[first:end].tolist() == holders[int(marks[element])]
            assert holding[positions[element]] == i


@given(st.lists(st.sets(st.integers(0, 130)), max_size=5))
def test_masks_have_a_bit_for_each_key(rows: list[set[int]]) -> None:
    starts = offsets([len(row) for row in rows])
    masks = np.zeros((len(rows), 3), np.int64)
    mask_rows(starts, np.array([key for row in rows for key in row], np.int32), masks)
    for row, words in zip(rows, masks.tolist(), strict=True):
        bits = sum((word % 2**64) << (64 * place) for place, word in enumerate(words))
        assert {place for place in range(192) if bits >> place & 1} == row
