"""MinHash signatures, bands, and the votes of buckets (TKS 5.2)."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from struct import iter_unpack, unpack
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import UInt64s
from tidings.diversify.distance import attribute_tokens
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


_ALL: Final = 2**64 - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxh64(text: bytes, seed: int = 0) -> int:
    """Return the 64-bit hash of bytes.

    >>> f"{xxh64(b''):016x} {xxh64(b'abc'):016x}"
    'ef46db3751d8e999 44bc2cf5ad770999'
    """
    body = len(text) // 32 * 32
    acc = _body(text[:body], seed) if body else seed + _P5
    return _end(_tail(text[body:], (acc + len(text)) & _ALL))


def _left(x: int, bits: int) -> int:
    return (x << bits | (x & _ALL) >> (64 - bits)) & _ALL


def _round(acc: int, lane: int) -> int:
    return _left((acc + lane * _P2) & _ALL, 31) * _P1 & _ALL


def _body(text: bytes, seed: int) -> int:
    accs = [acc & _ALL for acc in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    for lanes in iter_unpack("<4Q", text):
        accs = [_round(acc, lane) for acc, lane in zip(accs, lanes, strict=True)]
    merged = sum(_left(acc, bits) for acc, bits in zip(accs, (1, 7, 12, 18), strict=True)) & _ALL
    for acc in accs:
        merged = ((merged ^ _round(0, acc)) * _P1 + _P4) & _ALL
    return merged


def _tail(text: bytes, acc: int) -> int:
    eights, rest = text[: len(text) // 8 * 8], text[len(text) // 8 * 8 :]
    for (lane,) in iter_unpack("<Q", eights):
        acc = (_left(acc ^ _round(0, lane), 27) * _P1 + _P4) & _ALL
    if len(rest) >= 4:
        acc = (_left(acc ^ unpack("<I", rest[:4])[0] * _P1 & _ALL, 23) * _P2 + _P3) & _ALL
        rest = rest[4:]
    for byte in rest:
        acc = _left(acc ^ byte * _P5 & _ALL, 11) * _P1 & _ALL
    return acc


def _end(acc: int) -> int:
    acc = (acc ^ acc >> 33) * _P2 & _ALL
    acc = (acc ^ acc >> 29) * _P3 & _ALL
    return acc ^ acc >> 32
