"""Blocks of an IR-tree against plain lists: gaps, moves, free slots and summaries."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.intervals.papers.ir_tree import empty_store
from tidings.index.intervals.papers.kernels.ir_blocks import (
    BLOCKS,
    CAPACITY,
    FIRST,
    LEAST,
    LEVEL,
    MOST,
    SIZE,
    SLOTS,
    allocate_slots,
    close_gap,
    find_entry,
    free_block,
    free_slots,
    make_block,
    move_entries,
    open_gap,
    resize_block,
    summarise,
)

entries = st.lists(st.tuples(st.integers(-3, 0), st.integers(0, 5)), max_size=MOST, unique=True)


def write(store, slot, key, tie):
    store.bounds[0, slot], store.bounds[1, slot] = tie, tie + 10
    store.keys[slot], store.ties[slot], store.links[slot] = key, tie, -1


def block_of(store, rows, capacity=MOST):
    block = make_block(store, capacity, 0)
    for place, row in enumerate(rows):
        write(store, open_gap(store, block, place), *row)
    return block


def contents(store, block):
    first, size = store.blocks[block, FIRST], store.blocks[block, SIZE]
    slots = slice(first, first + size)
    assert store.bounds[0, slots].tolist() == store.ties[slots].tolist()
    return [*zip(store.keys[slots].tolist(), store.ties[slots].tolist(), strict=True)]


@pytest.mark.parametrize("capacity", [4, 8, 16, 32, 64])
def test_freed_slots_of_a_capacity_are_used_again_the_last_first(capacity):
    store = empty_store(0)
    one, other = allocate_slots(store, capacity), allocate_slots(store, capacity)
    assert (one, other, int(store.pool[SLOTS])) == (0, capacity, 2 * capacity)
    free_slots(store, one, capacity)
    free_slots(store, other, capacity)
    different = 8 if capacity == 4 else 4
    assert allocate_slots(store, different) == 2 * capacity
    assert [allocate_slots(store, capacity) for _ in range(2)] == [other, one]


def test_a_freed_block_is_used_again_with_its_slots():
    store = empty_store(0)
    block = block_of(store, [(0, 1), (0, 2)], LEAST)
    free_block(store, block)
    again = make_block(store, LEAST, 3)
    assert again == block
    assert store.blocks[again, [SIZE, CAPACITY, LEVEL]].tolist() == [0, LEAST, 3]
    assert (int(store.pool[BLOCKS]), int(store.pool[SLOTS])) == (1, LEAST)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=40))
def test_gaps_open_and_close_as_in_a_list(steps):
    store, plain = empty_store(0), list[tuple[int, int]]()
    block = make_block(store, MOST, 0)
    for number, (opens, drawn) in enumerate(steps):
        if opens or not plain:
            place = drawn % (len(plain) + 1)
            write(store, open_gap(store, block, place), -number, number)
            plain.insert(place, (-number, number))
        else:
            place = drawn % len(plain)
            close_gap(store, block, place)
            del plain[place]
        assert contents(store, block) == plain


@given(entries, st.integers(0, 64))
def test_entries_move_to_the_end_of_another_block(rows, start):
    store = empty_store(0)
    source, target = block_of(store, rows), block_of(store, [(7, 7)])
    start = min(start, len(rows))
    move_entries(store, source, start, target)
    assert contents(store, source) == rows[:start]
    assert contents(store, target) == [(7, 7), *rows[start:]]


def test_a_block_keeps_its_entries_in_other_slots():
    store, rows = empty_store(0), [(-2, 1), (-1, 4), (0, 2)]
    block = block_of(store, rows, LEAST)
    before = int(store.blocks[block, FIRST])
    resize_block(store, block, 8)
    assert store.blocks[block, [FIRST, CAPACITY]].tolist() == [LEAST, 8]
    assert contents(store, block) == rows
    assert allocate_slots(store, LEAST) == before


def test_the_entry_above_a_block_has_its_extent_and_best_key():
    store = empty_store(0)
    block = block_of(store, [(-5, 9), (-4, 2), (-1, 6)])
    slot = allocate_slots(store, LEAST)
    summarise(store, slot, block)
    assert store.bounds[:, slot].tolist() == [2.0, 19.0]
    assert (store.keys[slot], store.ties[slot], store.links[slot]) == (-5, 9, block)


@given(entries, st.integers(-4, 1), st.integers(-1, 6))
def test_the_last_entry_that_does_not_come_after_is_found(rows, key, tie):
    store = empty_store(0)
    block = block_of(store, sorted(rows))
    assert find_entry(store, block, key, tie) == bisect_right(sorted(rows), (key, tie)) - 1
