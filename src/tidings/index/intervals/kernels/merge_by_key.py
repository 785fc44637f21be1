"""The best of two sources, in order of key and then of id; smaller ones are better.

The old ones come in order and are only appended, the new ones come as they come and are sorted in.
Old and new together are never more than k: the last of either gives way. At the end they are
merged.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.compiled.jit import inlined

Best = tuple[Int64s, Int64s, Int64s, Int64s]
"""Ids and keys of the old, ids and keys of the new; k of each."""
Counts = tuple[int, int]
"""How many old and new ones there are."""
WORST: Final = 0
"""The key of score 0; there is none after it."""


@inlined
def before(key: int, id: int, other_key: int, other: int) -> bool:
    """Say whether one comes before another."""
    return key < other_key or (key == other_key and id < other)


@inlined
def comes_late(best: Best, counts: Counts, key: int, id: int) -> bool:
    """Say whether the best are full, and all before this one."""
    ids, keys, new_ids, new_keys = best
    old, new = counts
    if old + new < len(ids):
        return False
    if old > 0 and before(key, id, keys[old - 1], ids[old - 1]):
        return False
    return new == 0 or not before(key, id, new_keys[new - 1], new_ids[new - 1])


@inlined
def score_of(key: int) -> float:
    """Give the score that a key was made of; see `ordered`."""
    return np.int64(-key).view(np.float64)


@inlined
def last_key(best: Best, counts: Counts) -> int:
    """Give the key beyond which all come late; the last key of all while there is room."""
    ids, keys, _, new_keys = best
    old, new = counts
    if old + new < len(ids):
        return WORST
    if old == 0:
        return new_keys[new - 1]
    return max(keys[old - 1], new_keys[new - 1]) if new > 0 else keys[old - 1]


@inlined
def offer(best: Best, counts: Counts, key: int, id: int) -> Counts:
    """Sort a new one in that does not come late; if they are too many, the worst gives way."""
    ids, keys, new_ids, new_keys = best
    old, new = counts
    if old + new == len(ids):
        if old > 0 and (
            new == 0 or before(new_keys[new - 1], new_ids[new - 1], keys[old - 1], ids[old - 1])
        ):
            old -= 1
        else:
            new -= 1
    at = new
    while at > 0 and before(key, id, new_keys[at - 1], new_ids[at - 1]):
        new_keys[at], new_ids[at] = new_keys[at - 1], new_ids[at - 1]
        at -= 1
    new_keys[at], new_ids[at] = key, id
    return old, new + 1


@inlined
def merge(best: Best, counts: Counts) -> int:
    """Merge the new ones into the old; give how many there are."""
    ids, keys, new_ids, new_keys = best
    old, new = counts
    while new > 0:
        if old > 0 and before(new_keys[new - 1], new_ids[new - 1], keys[old - 1], ids[old - 1]):
            ids[old + new - 1] = ids[old - 1]
            old -= 1
        else:
            ids[old + new - 1] = new_ids[new - 1]
            new -= 1
    return counts[0] + counts[1]
