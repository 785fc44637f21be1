"""An open-addressing hash table from 64-bit integers to small integers >= 0.

Linear probing over a power-of-two number of slots, at most half full. A free slot has the value
-1. Removal shifts entries back instead of leaving tombstones, so probe sequences stay short.
"""

from typing import NamedTuple

from tidings.compiled.array_types import AnyArray, Int64s
from tidings.compiled.jit import inner, kernel


class HashTable(NamedTuple):
    """Keys and values by slot."""

    keys: Int64s
    values: AnyArray


@inner
def table_slot(table: HashTable, key: int) -> int:
    """Return the slot of a key, or the free slot where it would be inserted."""
    keys, values = table.keys, table.values
    last = len(keys) - 1
    # Both halves are mixed: IR-tree keys are floats' bits, whose low halves are often zero.
    lower, upper = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    slot = (((lower * 0x61C88647) >> 15) ^ ((upper * 0x45D9F3B5) >> 17)) & last
    while values[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & last
    return slot


@inner
def table_remove(table: HashTable, slot: int) -> None:
    """Free a slot; entries that were displaced past it move back."""
    keys, values = table.keys, table.values
    last = len(keys) - 1
    # Entries up to the next free slot may have been displaced by this one: each is inserted again.
    values[slot] = -1
    after = (slot + 1) & last
    while values[after] >= 0:
        key, value = keys[after], values[after]
        values[after] = -1
        better = table_slot(table, key)
        keys[better], values[better] = key, value
        after = (after + 1) & last


@kernel
def table_refill(old: HashTable, new: HashTable) -> None:
    """Copy all entries into an empty table."""
    for slot in range(len(old.keys)):
        if old.values[slot] >= 0:
            target = table_slot(new, old.keys[slot])
            new.keys[target], new.values[target] = old.keys[slot], old.values[slot]
