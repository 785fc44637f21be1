"""MinHash signatures and banding (TKS 5.2), and the votes of the buckets, counted anew."""

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
    """Take the k winners of most votes; of ties the higher rank, then the newer (BLSH)."""
    if len(candidates) < k:
        return ranked(candidates)
    tables, rows = part.shape
    marks = signatures([each.event for each in candidates], tables * rows, part.seed)
    votes = Counter(
        min(bucket, key=lambda i: best_first(candidates[i]))
        for bucket in buckets(marks, rows).values()
    )
    return sorted(votes, key=lambda i: (-votes[i], best_first(candidates[i])))[:k]


def signatures(events: Sequence[Event], length: int, seed: int = 0) -> UInt64s:
    """Give the MinHash signature of each event: a row of the smallest hash of its tokens."""
    salts = _mixed(np.arange(1, length + 1, dtype=np.uint64) * _GOLDEN + np.uint64(seed % 2**64))
    marks = np.full((len(events), length), _EMPTY, dtype=np.uint64)
    for row, event in zip(marks, events, strict=True):
        hashes = np.array([_hashed(*each) for each in attribute_tokens(event)], dtype=np.uint64)
        if hashes.size:
            row[:] = _mixed(hashes[:, None] ^ salts).min(axis=0)
    return marks


def _hashed(name: str, token: Any) -> int:
    """Hash what a token prints as; a range prints its bounds as floats, however they were given."""
    family, value = token
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, Range):
        text = " ".join([*map(repr, value.span), value.mode])
    seed = xxh64(name.encode()) + ("string", "number", "boolean", "time").index(family)
    return xxh64(text.encode(), seed % 2**64)


def _mixed(x: UInt64s) -> UInt64s:
    """Spread 64 bits over each other, so that each salt gives another order of the tokens."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def buckets(marks: UInt64s, rows: int) -> dict[Bucket, list[int]]:
    """Group events whose signatures agree on a band of `rows` (TKS Table 5.9).

    The key of a bucket is its table and the band.
    """
    found: dict[Bucket, list[int]] = defaultdict(list)
    for i, signature in enumerate(marks):
        for table, start in enumerate(range(0, marks.shape[1], rows)):
            found[table, signature[start : start + rows].tobytes()].append(i)
    return dict(found)
