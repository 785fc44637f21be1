"""MinHash signatures of rows of hashes, and the keys of their bands (TKS 5.2.4 and 5.2.5)."""

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.compiled.jit import COMPILED, inner, kernel

P = ParamSpec("P")
R = TypeVar("R")


EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The signature of nothing."""
ONE: Final = np.uint64(0xBF58476D1CE4E5B9)
TWO: Final = np.uint64(0x94D049BB133111EB)
FIRST: Final = np.uint64(30)
SECOND: Final = np.uint64(27)
THIRD: Final = np.uint64(31)


@inner
def mixed(x: Any) -> Any:
    """Spread 64 bits over each other (the finish of splitmix64)."""
    x = (x ^ (x >> FIRST)) * ONE
    x = (x ^ (x >> SECOND)) * TWO
    return x ^ (x >> THIRD)


def wrapping(function: Callable[P, R]) -> Callable[P, R]:
    """Compile; without the JIT, numpy must not warn of products that overflow, as they should."""
    return kernel(function) if COMPILED else np.errstate(over="ignore")(function)


@inner
def sign(hashes: UInt64s, span: tuple[int, int], salts: UInt64s, out: UInt64s) -> None:
    """Write for each salt the smallest of the salted hashes of a span."""
    for place in range(len(salts)):
        out[place] = EMPTY
    for each in range(span[0], span[1]):
        token = hashes[each]
        for place in range(len(salts)):
            out[place] = min(out[place], mixed(token ^ salts[place]))


@wrapping
def sign_rows(starts: Int64s, hashes: UInt64s, salts: UInt64s, out: UInt64s) -> None:
    """Write the signature of each row; O(tokens x salts)."""
    for row in range(len(out)):
        sign(hashes, (starts[row], starts[row + 1]), salts, out[row])


@inner
def band(signature: UInt64s, tables: UInt64s, out: UInt64s) -> None:
    """Write for each table one hash of the table and its part of the signature."""
    width = len(signature) // len(tables)
    for table in range(len(tables)):
        key = tables[table]
        for place in range(table * width, (table + 1) * width):
            key = mixed(key ^ signature[place])
        out[table] = key


@wrapping
def band_signatures(signatures: UInt64s, tables: UInt64s, out: UInt64s) -> None:
    """Write the keys of the bands of each signature."""
    for row in range(len(out)):
        band(signatures[row], tables, out[row])


@wrapping
def band_rows(
    starts: Int64s, hashes: UInt64s, salts: UInt64s, tables: UInt64s, out: UInt64s
) -> None:
    """Write the keys of the bands of each row, straight from its hashes."""
    signature = np.empty(len(salts), np.uint64)
    for row in range(len(out)):
        sign(hashes, (starts[row], starts[row + 1]), salts, signature)
        band(signature, tables, out[row])
