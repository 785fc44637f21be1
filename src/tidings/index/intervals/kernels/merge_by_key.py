"""The k best of two sources, by key and then by id; smaller is better.

A key is the negated bits of a score >= 0, so that integers order like falling scores. The old
source arrives in order and is only appended to; the new one arrives in any order and is insertion
sorted. Old and new together never exceed k: the worse of the two last entries gives way. At the
end the new entries are merged into the old ones.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner

WORST: Final = 0
"""The key of score 0, which no key exceeds."""


class TwoSources(NamedTuple):
    """Room for k ids and keys of either source; the old arrays become the answer."""

    old_ids: Int64s
    old_keys: Int64s
    new_ids: Int64s
    new_keys: Int64s


class Counts(NamedTuple):
    """The number of entries taken from either source."""

    old: int
    new: int


@inner
def key_of(score: float) -> int:
    """Return the key of a score >= 0; adding 0.0 turns -0.0 into 0.0."""
    return -int64(np.float64(score + 0.0).view(np.int64))


@inlined
def score_of(key: int) -> float:
    """Return the score of a key."""
    return np.int64(-key).view(np.float64)


@inlined
def precedes(key: int, id: int, other_key: int, other_id: int) -> bool:
    """Return whether an entry comes before another."""
    return key < other_key or (key == other_key and id < other_id)


@inlined
def is_too_late(best: TwoSources, counts: Counts, key: int, id: int) -> bool:
    """Return whether the k best are full and all precede this entry."""
    old, new = counts.old, counts.new
    if old + new < len(best.old_ids):
        return False
    if old > 0 and precedes(key, id, best.old_keys[old - 1], best.old_ids[old - 1]):
        return False
    return new == 0 or not precedes(key, id, best.new_keys[new - 1], best.new_ids[new - 1])


@inlined
def last_key(best: TwoSources, counts: Counts) -> int:
    """Return the key after which all entries are too late; WORST until k are taken."""
    old, new = counts.old, counts.new
    if old + new < len(best.old_ids):
        return WORST
    if old == 0:
        return best.new_keys[new - 1]
    if new == 0:
        return best.old_keys[old - 1]
    return max(best.old_keys[old - 1], best.new_keys[new - 1])


@inlined
def offer(best: TwoSources, counts: Counts, key: int, id: int) -> Counts:
    """Insert a new entry that is not too late; the worst one gives way if there are k."""
    new_ids, new_keys = best.new_ids, best.new_keys
    old, new = counts.old, counts.new
    if old + new == len(best.old_ids):
        if old > 0 and (
            new == 0
            or precedes(
                new_keys[new - 1], new_ids[new - 1], best.old_keys[old - 1], best.old_ids[old - 1]
            )
        ):
            old -= 1
        else:
            new -= 1
    place = new
    # Insertion sort: bands come in the order of keys, so a new entry belongs near the end.
    while place > 0 and precedes(key, id, new_keys[place - 1], new_ids[place - 1]):
        new_keys[place], new_ids[place] = new_keys[place - 1], new_ids[place - 1]
        place -= 1
    new_keys[place], new_ids[place] = key, id
    return Counts(old, new + 1)


@inlined
def merge(best: TwoSources, counts: Counts) -> int:
    """Merge the new ids into the old, from the end; return how many there are."""
    ids, new_ids = best.old_ids, best.new_ids
    old, new = counts.old, counts.new
    # From the end, since the old arrays become the answer: nothing is overwritten before it is
    # read.
    while new > 0:
        if old > 0 and precedes(
            best.new_keys[new - 1], new_ids[new - 1], best.old_keys[old - 1], ids[old - 1]
        ):
            ids[old + new - 1] = ids[old - 1]
            old -= 1
        else:
            ids[old + new - 1] = new_ids[new - 1]
            new -= 1
    return counts.old + counts.new
