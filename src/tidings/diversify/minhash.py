"""MinHash signatures of events and the keys of their bands, by kernels (TKS 5.2.4 and 5.2.5).

Tokens are hashed directly, so there is no characteristic matrix that grows with the stream.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from tidings.compiled.array_types import UInt64s
from tidings.diversify.event_tokens import token_rows
from tidings.diversify.kernels.minhash import band_rows, band_signatures, sign_rows
from tidings.model.records import Event

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def signatures(events: Sequence[Event], length: int, seed: int = 0) -> UInt64s:
    """Give the MinHash signature of each event: a row of the smallest hash of its tokens."""
    starts, hashes = token_rows(events)
    found = np.empty((len(events), length), np.uint64)
    sign_rows(starts, hashes, salts(length, seed), found)
    return found


def bands(events: Sequence[Event], shape: tuple[int, int], seed: int = 0) -> UInt64s:
    """Give for each event the keys of the L bands of r rows of its signature.

    Two events share a bucket of a table (TKS Table 5.9) if they have the same key there: a hash of
    64 bits of the table and the band.
    """
    tables, rows = shape
    starts, hashes = token_rows(events)
    found = np.empty((len(events), tables), np.uint64)
    band_rows(starts, hashes, salts(tables * rows, seed), salts(tables, 0), found)
    return found


def signature_bands(marks: UInt64s, rows: int) -> UInt64s:
    """Give the keys of the bands of signatures that are there already."""
    tables = salts(marks.shape[1] // rows, 0)
    found = np.empty((len(marks), len(tables)), np.uint64)
    band_signatures(marks, tables, found)
    return found


@lru_cache(64)
def salts(length: int, seed: int) -> UInt64s:
    """Give a number for each row of a signature, or for each table."""
    x = np.arange(1, length + 1, dtype=np.uint64) * _GOLDEN + np.uint64(seed % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
