"""A set of small integers as a tree of 32-bit words: insert, remove, neighbours in O(log32 n).

A bit of a word above says that the word below it is not empty. Words hold 32 bits, not 64, so that
signed arithmetic is exact with and without the JIT.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s, UInt32s
from tidings.compiled.bits import highest_bit, lowest_bit
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner

FULL: Final = (1 << 32) - 1


def empty_bitset(size: int) -> tuple[UInt32s, Int64s]:
    """Make the words and, per level from below, the place of its first word; members < size."""
    starts = [0]
    words = size
    while True:
        words = max(1, -(-words // 32))
        starts.append(starts[-1] + words)
        if words == 1:
            return np.zeros(starts[-1], np.uint32), np.array(starts, np.int64)


@inner
def bitset_add(words: UInt32s, starts: Int64s, member: int) -> None:
    """Insert a member; stops where the word above knows already."""
    member = int64(member)
    for level in range(len(starts) - 1):
        place = starts[level] + (member >> 5)
        before = int64(words[place])
        words[place] = before | (int64(1) << (member & 31))
        if before != 0:
            return
        member >>= 5


@inner
def bitset_discard(words: UInt32s, starts: Int64s, member: int) -> None:
    """Remove a member; stops where the word keeps another."""
    member = int64(member)
    for level in range(len(starts) - 1):
        place = starts[level] + (member >> 5)
        after = int64(words[place]) & ~(int64(1) << (member & 31))
        words[place] = after
        if after != 0:
            return
        member >>= 5


@inner
def bitset_from(words: UInt32s, starts: Int64s, member: int) -> int:
    """Give the smallest member >= `member`, or -1."""
    member = int64(member)
    for level in range(len(starts) - 1):
        word = member >> 5
        if starts[level] + word >= starts[level + 1]:
            return -1
        here = int64(words[starts[level] + word]) & (FULL << (member & 31)) & FULL
        if here != 0:
            member = (word << 5) + lowest_bit(here)
            for below in range(level - 1, -1, -1):
                member = (member << 5) + lowest_bit(int64(words[starts[below] + member]))
            return member
        member = word + 1
    return -1


@inner
def bitset_until(words: UInt32s, starts: Int64s, member: int) -> int:
    """Give the greatest member <= `member`, or -1."""
    member = int64(member)
    for level in range(len(starts) - 1):
        if member < 0:
            return -1
        word = member >> 5
        here = int64(words[starts[level] + word]) & (FULL >> (31 - (member & 31)))
        if here != 0:
            member = (word << 5) + highest_bit(here)
            for below in range(level - 1, -1, -1):
                member = (member << 5) + highest_bit(int64(words[starts[below] + member]))
            return member
        member = word - 1
    return -1
