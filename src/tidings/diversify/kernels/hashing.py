"""Hashes of events: XXH64 of their attributes, and MinHash with the votes of buckets."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import COMPILED, inner, kernel
from tidings.diversify.kernels.token_rows import table_position

# Locality-sensitive hashing (TKS 5.2): MinHash signatures, band keys, and the votes of buckets.
#
# An event is a set of hashed tokens. Row j of its signature is the smallest token hash under the
# j-th salt, so that two events agree in a row with the probability of their Jaccard similarity. The
# L * r rows are cut into L bands of r; each band is hashed to one key of 64 bits:
#
#     signature   h0 h1 h2 h3 h4 | h5 h6 h7 h8 h9 | ...     L * r rows
#     band keys        b0        |       b1       | ...     L keys, one per table
#
# Events with the same key in a table share a bucket there. Keys are salted by table, so that keys
# of different tables never meet and one hash table serves all of them. Each bucket votes for its
# most relevant event (BLSH, TKS 5.2.5.2).

P = ParamSpec("P")
R = TypeVar("R")

EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Each row of the signature of an event without tokens."""
# The constants of splitmix64.
FACTOR_1: Final = np.uint64(0xBF58476D1CE4E5B9)
FACTOR_2: Final = np.uint64(0x94D049BB133111EB)
SHIFT_1: Final = np.uint64(30)
SHIFT_2: Final = np.uint64(27)
SHIFT_3: Final = np.uint64(31)


def wrapping(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel whose products overflow on purpose; without the JIT, silence numpy."""
    return kernel(function) if COMPILED else np.errstate(over="ignore")(function)


@inner
def mix(x: Any) -> Any:
    """Return 64 bits that each depend on all bits of x (the finalizer of splitmix64)."""
    x = (x ^ (x >> SHIFT_1)) * FACTOR_1
    x = (x ^ (x >> SHIFT_2)) * FACTOR_2
    return x ^ (x >> SHIFT_3)


@inner
def sign(hashes: UInt64s, span: tuple[int, int], salts: UInt64s, out: UInt64s) -> None:
    """Write for each salt the smallest of the salted hashes of a span.

    The inner loop runs over salts, which lie side by side: it compiles to vector instructions.
    """
    for row in range(len(salts)):
        out[row] = EMPTY
    for element in range(span[0], span[1]):
        token = hashes[element]
        for row in range(len(salts)):
            out[row] = min(out[row], mix(token ^ salts[row]))


@inner
def band(signature: UInt64s, table_salts: UInt64s, out: UInt64s) -> None:
    """Write for each table one hash of the table's salt and its band of the signature."""
    width = len(signature) // len(table_salts)
    for table in range(len(table_salts)):
        # Order matters within a band, so keys are chained, not added.
        key = table_salts[table]
        for row in range(table * width, (table + 1) * width):
            key = mix(key ^ signature[row])
        out[table] = key


@wrapping
def band_rows(
    starts: Int64s, hashes: UInt64s, salts: UInt64s, table_salts: UInt64s, out: UInt64s
) -> None:
    """Write the band keys of each event, straight from its token hashes."""
    signature = np.empty(len(salts), np.uint64)
    for event in range(len(out)):
        sign(hashes, (starts[event], starts[event + 1]), salts, signature)
        band(signature, table_salts, out[event])


@kernel
def count_votes(bands: UInt64s, best_first: Int64s, votes: Int64s) -> None:
    """Count for each event the buckets that it wins, given all events in order of relevance.

    The first event to enter a bucket is its most relevant one, so that later ones are not stored.
    """
    tables = bands.shape[1]
    size = 16
    while size < 2 * bands.size:  # a power of two, at most half full
        size *= 2
    winners, keys = np.full(size, -1, np.int64), bands.ravel()
    for event in best_first:
        votes[event] = 0
        for element in range(event * tables, (event + 1) * tables):
            position = table_position(winners, keys, keys[element])
            if winners[position] < 0:  # an empty bucket
                winners[position] = element
                votes[event] += 1


# XXH64 of the attributes of events, after its published specification.
#
# The hashes are the same in every process and on every machine, as Spark needs them. All attributes
# of one event, or of several, are hashed in one call; their texts lie one behind the other,
# separated by one byte that occurs in none of them:
#
#     names       genre | year            separator: 0x00, or 0xFF, which UTF-8 never contains
#     texts       drama | comedy | 2003   the values of all attributes
#     families    0       0        1      of each value; empty: all strings
#     sizes       2       1               values of each attribute; empty: one each


PRIME_1: Final = np.uint64(0x9E3779B185EBCA87)
PRIME_2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3: Final = np.uint64(0x165667B19E3779F9)
PRIME_4: Final = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5: Final = np.uint64(0x27D4EB2F165667C5)
ZERO: Final = np.uint64(0)
BITS: Final = np.uint64(64)
BYTE: Final = np.uint64(8)


class PackedAttributes(NamedTuple):
    """The attributes of events as bytes, laid out as above."""

    names: bytes
    texts: bytes
    families: bytes
    sizes: Int64s
    separator: int


@inner
def rotate_left(x: Any, bits: int) -> Any:
    """Return x rotated to the left."""
    shift = np.uint64(bits)
    return (x << shift) | (x >> (BITS - shift))


@inner
def read_word(text: bytes, first: int, size: int) -> Any:
    """Return some bytes as a little-endian number."""
    word = ZERO
    for offset in range(size):
        word |= np.uint64(text[first + offset]) << (BYTE * np.uint64(offset))
    return word


@inner
def absorb(state: Any, lane: Any) -> Any:
    """Return the state after one lane of eight bytes."""
    return rotate_left(state + lane * PRIME_2, 31) * PRIME_1


@inner
def hash_stripes(text: bytes, first: int, last: int, seed: Any) -> Any:
    """Return the hash of all whole stripes of 32 bytes, of which there is at least one."""
    # Four independent states keep four multipliers busy.
    a, b, c, d = seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1
    for position in range(first, last - 31, 32):
        a = absorb(a, read_word(text, position, 8))
        b = absorb(b, read_word(text, position + 8, 8))
        c = absorb(c, read_word(text, position + 16, 8))
        d = absorb(d, read_word(text, position + 24, 8))
    total = rotate_left(a, 1) + rotate_left(b, 7) + rotate_left(c, 12) + rotate_left(d, 18)
    for state in (a, b, c, d):
        total = (total ^ absorb(ZERO, state)) * PRIME_1 + PRIME_4
    return total


@inner
def xxh64(text: bytes, first: int, last: int, seed: Any) -> Any:
    """Return the hash of the bytes from `first` to `last`."""
    size = last - first
    total = hash_stripes(text, first, last, seed) if size >= 32 else seed + PRIME_5
    total += np.uint64(size)
    position = last - size % 32
    # What whole stripes leave over: words of 8 bytes, one of 4, and single bytes.
    while position + 8 <= last:
        lane = absorb(ZERO, read_word(text, position, 8))
        total = rotate_left(total ^ lane, 27) * PRIME_1 + PRIME_4
        position += 8
    if position + 4 <= last:
        word = read_word(text, position, 4)
        total = rotate_left(total ^ (word * PRIME_1), 23) * PRIME_2 + PRIME_3
        position += 4
    for tail in range(position, last):
        total = rotate_left(total ^ (np.uint64(text[tail]) * PRIME_5), 11) * PRIME_1
    # The avalanche: every bit of the input changes about half of the output.
    total = (total ^ (total >> np.uint64(33))) * PRIME_2
    total = (total ^ (total >> np.uint64(29))) * PRIME_3
    return total ^ (total >> np.uint64(32))


@inner
def piece_end(text: bytes, first: int, separator: int) -> int:
    """Return where the piece that starts at `first` ends."""
    position = first
    while position < len(text) and int64(text[position]) != separator:
        position += 1
    return position


@wrapping
def hash_values(
    packed: tuple[bytes, bytes, bytes, Int64s, int], out: UInt64s, pairs: UInt64s
) -> None:
    """Hash every value of an event, seeded by the hash of its attribute's name plus its family.

    Each row of `pairs` belongs to an attribute: the hash of its name, and one of its set of values.
    The latter sums the hashes of the values, so that their order does not matter.

    `packed` has the fields of `PackedAttributes` as a plain tuple, whose type numba finds faster.
    """
    names, texts, families, sizes, separator = packed
    name_start, text_start, value = 0, 0, 0
    for attribute in range(len(pairs)):
        end = piece_end(names, name_start, separator)
        key = xxh64(names, name_start, end, ZERO)
        name_start, size, total = end + 1, 1, ZERO
        if len(sizes) > 0:
            size = sizes[attribute]
        for _ in range(size):
            end = piece_end(texts, text_start, separator)
            seed = key + np.uint64(families[value]) if len(families) > 0 else key
            out[value] = xxh64(texts, text_start, end, seed)
            total += out[value]
            text_start, value = end + 1, value + 1
        pairs[attribute, 0] = key
        pairs[attribute, 1] = total if size == 1 else mix(total ^ key) + np.uint64(size)
