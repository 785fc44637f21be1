"""A set of small integers as a tree of 32-bit words: add, discard, neighbours in O(log32 n).

    level 1   [ 1 0 1 1 ... ]               a bit is set if the word below it is not empty
                |   |
    level 0   [word][word][word] ...        bit m & 31 of word m >> 5 is member m

Words have 32 bits, not 64, so that signed arithmetic is exact with and without the JIT.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s, UInt32s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner
from tidings.compiled.simd import highest_bit, lowest_bit

FULL: Final = (1 << 32) - 1


class Bitset(NamedTuple):
    """The words of all levels, lowest level first, and the first word of each level."""

    words: UInt32s
    starts: Int64s


def empty_bitset(size: int) -> Bitset:
    """Return an empty set for members below `size`."""
    starts = [0]
    words = size
    while True:
        words = max(1, -(-words // 32))
        starts.append(starts[-1] + words)
        if words == 1:
            return Bitset(np.zeros(starts[-1], np.uint32), np.array(starts, np.int64))


@inner
def bitset_add(bitset: Bitset, member: int) -> None:
    """Add a member; stops at a word that was not empty, since its parent's bit is set."""
    words, starts = bitset.words, bitset.starts
    member = int64(member)
    for level in range(len(starts) - 1):
        place = starts[level] + (member >> 5)
        before = int64(words[place])
        words[place] = before | (int64(1) << (member & 31))
        # The bits above are set already, which makes most additions a single write.
        if before != 0:
            return
        member >>= 5


@inner
def bitset_discard(bitset: Bitset, member: int) -> None:
    """Remove a member; stops at a word that has other members."""
    words, starts = bitset.words, bitset.starts
    member = int64(member)
    for level in range(len(starts) - 1):
        place = starts[level] + (member >> 5)
        after = int64(words[place]) & ~(int64(1) << (member & 31))
        words[place] = after
        if after != 0:
            return
        member >>= 5


@inner
def bitset_from(bitset: Bitset, member: int) -> int:
    """Return the smallest member >= `member`, or -1."""
    words, starts = bitset.words, bitset.starts
    member = int64(member)
    # Climb until a word has a bit at or after the position, then descend along lowest bits.
    for level in range(len(starts) - 1):
        word = member >> 5
        if starts[level] + word >= starts[level + 1]:
            return -1
        bits = int64(words[starts[level] + word]) & (FULL << (member & 31)) & FULL
        if bits != 0:
            member = (word << 5) + lowest_bit(bits)
            for below in range(level - 1, -1, -1):
                member = (member << 5) + lowest_bit(int64(words[starts[below] + member]))
            return member
        member = word + 1
    return -1


@inner
def bitset_until(bitset: Bitset, member: int) -> int:
    """Return the greatest member <= `member`, or -1."""
    words, starts = bitset.words, bitset.starts
    member = int64(member)
    for level in range(len(starts) - 1):
        if member < 0:
            return -1
        word = member >> 5
        bits = int64(words[starts[level] + word]) & (FULL >> (31 - (member & 31)))
        if bits != 0:
            member = (word << 5) + highest_bit(bits)
            for below in range(level - 1, -1, -1):
                member = (member << 5) + highest_bit(int64(words[starts[below] + member]))
            return member
        member = word - 1
    return -1
