"""MAXDIVREL by locality-sensitive hashing (TKS 5.2): buckets of similar events elect winners.

Tokens are hashed directly, so there is no characteristic matrix that grows with the stream.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tidings import checks
from tidings.diversify.distance import Jaccard, attribute_tokens, read_distance
from tidings.diversify.protocol import Candidate, best_first, ranked
from tidings.errors import InvalidPolicy
from tidings.model import Event

Signatures = npt.NDArray[np.uint64]
Bucket = tuple[int, bytes]

_TABLES: Final = 20
_ROWS: Final = 5
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class MaxDivRelLsh:
    """L `tables` of r `rows`: the most relevant of each bucket gets its vote, most votes win.

    Give `tables` and `rows`, or an `error` and a similarity `threshold` that they follow from.
    """

    tables: int | None = None
    rows: int | None = None
    error: float | None = None
    threshold: float | None = None
    seed: int = 0
    distance: Any = Jaccard()
    name: ClassVar[str] = "maxdivrel-lsh"
    sigma: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        if (self.error is None) != (self.threshold is None):
            raise InvalidPolicy("error and threshold go together")
        if self.error is not None and self.threshold is not None:
            if self.tables is not None or self.rows is not None:
                raise InvalidPolicy("give tables and rows, or error and threshold, not both")
        else:
            tables, rows = (_TABLES if self.tables is None else self.tables, self.rows)
            object.__setattr__(self, "tables", checks.count("tables", tables))
            object.__setattr__(self, "rows", checks.count("rows", _ROWS if rows is None else rows))
        checks.count("seed", self.seed, low=0)
        _ = self.shape
        read_distance(self)

    @property
    def shape(self) -> tuple[int, int]:
        """(L, r)."""
        if self.error is not None and self.threshold is not None:
            return tables_and_rows(self.error, self.threshold)
        return (self.tables or 0, self.rows or 0)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Take the k winners of most votes; of ties the higher rank, then the newer (BLSH)."""
        if len(candidates) < k:
            return ranked(candidates)
        tables, rows = self.shape
        marks = signatures([each.event for each in candidates], tables * rows, self.seed)
        votes = Counter(
            min(bucket, key=lambda i: best_first(candidates[i]))
            for bucket in buckets(marks, rows).values()
        )
        return sorted(votes, key=lambda i: (-votes[i], best_first(candidates[i])))[:k]


def tables_and_rows(error: float, threshold: float) -> tuple[int, int]:
    """Choose (L, r) with L * r <= m = ceil(1 / error²) and (1/L)^(1/r) nearest the threshold.

    >>> tables_and_rows(error=0.1, threshold=0.5)
    (20, 5)
    """
    checks.number("error", error, low=0.01, high=1)
    checks.number("threshold", threshold, high=1)
    m = math.ceil(round(1 / error**2, 9))  # (1/7)² has no float of its own
    shapes = [(m // rows, rows) for rows in range(1, m + 1)]
    return min(shapes, key=lambda shape: abs((1 / shape[0]) ** (1 / shape[1]) - threshold))


def signatures(events: Sequence[Event], length: int, seed: int = 0) -> Signatures:
    """Give the MinHash signature of each event: a row of the smallest hash of its tokens."""
    salts = _mixed(np.arange(1, length + 1, dtype=np.uint64) * _GOLDEN + np.uint64(seed % 2**64))
    marks = np.full((len(events), length), _EMPTY, dtype=np.uint64)
    for row, event in zip(marks, events, strict=True):
        hashes = np.array([_hashed(each) for each in attribute_tokens(event)], dtype=np.uint64)
        if hashes.size:
            row[:] = _mixed(hashes[:, None] ^ salts).min(axis=0)
    return marks


def _hashed(attribute_token: tuple[str, object]) -> int:
    digest = blake2b(repr(attribute_token).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _mixed(x: Signatures) -> Signatures:
    """Spread 64 bits over each other, so that each salt gives another order of the tokens."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def buckets(marks: Signatures, rows: int) -> dict[Bucket, list[int]]:
    """Group events whose signatures agree on a band of `rows` (TKS Table 5.9).

    The key of a bucket is its table and the band.
    """
    found: dict[Bucket, list[int]] = defaultdict(list)
    for i, signature in enumerate(marks):
        for table, start in enumerate(range(0, marks.shape[1], rows)):
            found[table, signature[start : start + rows].tobytes()].append(i)
    return dict(found)
