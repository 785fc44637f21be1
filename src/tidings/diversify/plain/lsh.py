"""MinHash signatures, bands, and the votes of buckets (TKS 5.2)."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import UInt64s
from tidings.diversify.distance import attribute_tokens
from tidings.diversify.plain.xxh64 import xxh64
from tidings.diversify.protocol import Candidate, best_first, ranked
from tidings.model.records import Event
from tidings.model.values import Range

Bucket = tuple[int, bytes]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


def maxdivrel_lsh(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose the k winners of most votes; of ties the higher rank, then the newer (BLSH)."""
    if len(candidates) < k:
        return ranked(candidates)
    tables, rows = part.shape
    signed = signatures([candidate.event for candidate in candidates], tables * rows, part.seed)
    votes = Counter(
        min(bucket, key=lambda i: best_first(candidates[i]))
        for bucket in buckets(signed, rows).values()
    )
    return sorted(votes, key=lambda i: (-votes[i], best_first(candidates[i])))[:k]


def signatures(events: Sequence[Event], length: int, seed: int = 0) -> UInt64s:
    """Return the MinHash signature of each event: for each salt the smallest token hash."""
    salts = _mix(np.arange(1, length + 1, dtype=np.uint64) * _GOLDEN + np.uint64(seed % 2**64))
    signed = np.full((len(events), length), _EMPTY, dtype=np.uint64)
    for row, event in zip(signed, events, strict=True):
        hashes = np.array(
            [token_hash(*token) for token in attribute_tokens(event)], dtype=np.uint64
        )
        if hashes.size:
            row[:] = _mix(hashes[:, None] ^ salts).min(axis=0)
    return signed


def token_hash(name: str, token: Any) -> int:
    """Return the hash of a token's text; the bounds of a range are printed as floats."""
    family, value = token
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, Range):
        text = " ".join([*map(repr, value.span), value.mode])
    seed = xxh64(name.encode()) + ("string", "number", "boolean", "time").index(family)
    return xxh64(text.encode(), seed % 2**64)


def _mix(x: UInt64s) -> UInt64s:
    """Return 64 bits that depend on all of x, so that each salt gives another order of tokens."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def buckets(signed: UInt64s, rows: int) -> dict[Bucket, list[int]]:
    """Group events whose signatures agree on a band of `rows` (TKS Table 5.9).

    The key of a bucket is its table and the band.
    """
    members: dict[Bucket, list[int]] = defaultdict(list)
    for i, signature in enumerate(signed):
        for table, start in enumerate(range(0, signed.shape[1], rows)):
            members[table, signature[start : start + rows].tobytes()].append(i)
    return dict(members)
