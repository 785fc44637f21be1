"""The open-addressing hash table against a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.intervals.kernels.hash_table import (
    HashTable,
    table_refill,
    table_remove,
    table_slot,
)

SLOTS = 64


def empty(slots):
    return HashTable(np.empty(slots, np.int64), np.full(slots, -1, np.int64))


def lookup(table, key):
    return int(table.values[table_slot(table, key)])


# Multiples of 2**17 collide in a small table, so that probe sequences overlap.
keys = st.one_of(st.integers(0, 40), st.integers(0, 9).map(lambda n: n << 17), st.just(-1 << 62))


@given(st.lists(st.tuples(st.booleans(), keys), max_size=60))
def test_it_behaves_like_a_dictionary(changes):
    table = empty(SLOTS)
    plain: dict[int, int] = {}
    for number, (adds, key) in enumerate(changes):
        slot = table_slot(table, key)
        if adds and len(plain) < SLOTS // 2:
            table.keys[slot], table.values[slot] = key, number
            plain[key] = number
        elif key in plain:
            table_remove(table, slot)
            del plain[key]
    assert {key: lookup(table, key) for key in plain} == plain
    assert (table.values >= 0).sum() == len(plain)
    wider = empty(2 * SLOTS)
    table_refill(table, wider)
    assert {key: lookup(wider, key) for key in plain} == plain
