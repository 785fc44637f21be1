"""XXH64 of pieces of bytes, after its published specification; equal on every machine.

Pieces stand one behind the other, parted by one byte that none of them holds.
"""

from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner
from tidings.diversify.kernels.minhash import mixed, wrapping

Packed = tuple[bytes, bytes, bytes, Int64s, int]
"""The names of attributes; the texts of their values, with the family of each (none: 0 for all);
how many values each attribute has (none: 1 for all); the byte that parts names and texts."""

ONE: Final = np.uint64(0x9E3779B185EBCA87)
TWO: Final = np.uint64(0xC2B2AE3D27D4EB4F)
THREE: Final = np.uint64(0x165667B19E3779F9)
FOUR: Final = np.uint64(0x85EBCA77C2B2AE63)
FIVE: Final = np.uint64(0x27D4EB2F165667C5)
NONE: Final = np.uint64(0)
BITS: Final = np.uint64(64)
BYTE: Final = np.uint64(8)


@inner
def turned(x: Any, bits: int) -> Any:
    """Rotate to the left."""
    far = np.uint64(bits)
    return (x << far) | (x >> (BITS - far))


@inner
def word(text: bytes, at: int, size: int) -> Any:
    """Read some bytes as a number, the least first."""
    found = NONE
    for each in range(size):
        found |= np.uint64(text[at + each]) << (BYTE * np.uint64(each))
    return found


@inner
def stirred(state: Any, lane: Any) -> Any:
    """Take eight bytes into a state."""
    return turned(state + lane * TWO, 31) * ONE


@inner
def stripes(text: bytes, first: int, last: int, seed: Any) -> Any:
    """Take in all whole stripes of 32 bytes, of which there is one at least."""
    a, b, c, d = seed + ONE + TWO, seed + TWO, seed, seed - ONE
    for at in range(first, last - 31, 32):
        a = stirred(a, word(text, at, 8))
        b = stirred(b, word(text, at + 8, 8))
        c = stirred(c, word(text, at + 16, 8))
        d = stirred(d, word(text, at + 24, 8))
    whole = turned(a, 1) + turned(b, 7) + turned(c, 12) + turned(d, 18)
    for state in (a, b, c, d):
        whole = (whole ^ stirred(NONE, state)) * ONE + FOUR
    return whole


@inner
def xxh64(text: bytes, first: int, last: int, seed: Any) -> Any:
    """Hash the bytes from first to last."""
    size = last - first
    whole = stripes(text, first, last, seed) if size >= 32 else seed + FIVE
    whole += np.uint64(size)
    at = last - size % 32
    while at + 8 <= last:
        whole = turned(whole ^ stirred(NONE, word(text, at, 8)), 27) * ONE + FOUR
        at += 8
    if at + 4 <= last:
        whole = turned(whole ^ (word(text, at, 4) * ONE), 23) * TWO + THREE
        at += 4
    for each in range(at, last):
        whole = turned(whole ^ (np.uint64(text[each]) * FIVE), 11) * ONE
    whole = (whole ^ (whole >> np.uint64(33))) * TWO
    whole = (whole ^ (whole >> np.uint64(29))) * THREE
    return whole ^ (whole >> np.uint64(32))


@inner
def piece_end(text: bytes, first: int, separator: int) -> int:
    """Find where a piece ends."""
    at = first
    while at < len(text) and int64(text[at]) != separator:
        at += 1
    return at


@wrapping
def hash_values(packed: Packed, out: UInt64s, pairs: UInt64s) -> None:
    """Hash every value of an event; its seed is the hash of its attribute's name, plus its family.

    A row of `pairs` is that of an attribute: the hash of its name, and one of its set of values.
    """
    names, texts, families, sizes, separator = packed
    begin, at, each = 0, 0, 0
    for place in range(len(pairs)):
        end = piece_end(names, begin, separator)
        key = xxh64(names, begin, end, NONE)
        begin, size, whole = end + 1, 1, NONE
        if len(sizes) > 0:
            size = sizes[place]
        for _ in range(size):
            end = piece_end(texts, at, separator)
            seed = key + np.uint64(families[each]) if len(families) > 0 else key
            out[each] = xxh64(texts, at, end, seed)
            whole += out[each]
            at, each = end + 1, each + 1
        pairs[place, 0] = key
        pairs[place, 1] = whole if size == 1 else mixed(whole ^ key) + np.uint64(size)


@wrapping
def hash_bytes(text: bytes, seed: Any) -> Any:
    """Give XXH64 of all the bytes."""
    return xxh64(text, 0, len(text), seed)
