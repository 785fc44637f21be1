"""Locality-sensitive hashing (TKS 5.2): MinHash signatures, band keys, and the votes of buckets.

An event is a set of hashed tokens. Row j of its signature is the smallest token hash under the j-th
salt, so that two events agree in a row with the probability of their Jaccard similarity. The L * r
rows are cut into L bands of r; each band is hashed to one key of 64 bits:

    signature   h0 h1 h2 h3 h4 | h5 h6 h7 h8 h9 | ...     L * r rows
    band keys        b0        |       b1       | ...     L keys, one per table

Events with the same key in a table share a bucket there. Keys are salted by table, so that keys of
different tables never meet and one hash table serves all of them. Each bucket votes for its most
relevant event (BLSH, TKS 5.2.5.2).
"""

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.compiled.jit import COMPILED, inner, kernel
from tidings.diversify.kernels.token_rows import table_position

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
