"""MAXDIVREL by locality-sensitive hashing (TKS 5.2): buckets of similar events vote for winners.

Tokens are hashed directly, so there is no characteristic matrix that grows with the stream.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.diversify.distance import Jaccard, read_distance
from tidings.diversify.hashed_distances import token_rows
from tidings.diversify.kernels.hashing import band_rows, count_votes
from tidings.diversify.memory_limits import check_keys
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.diversify.tie_order import by_rank, order_of, ranks_and_keys
from tidings.errors import InvalidPolicy
from tidings.model import validate
from tidings.model.limits import TRUSTED
from tidings.model.records import Event

_TABLES: Final = 20
_ROWS: Final = 5
_LARGEST_SEED: Final = 2**128 - 1
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class MaxDivRelLsh:
    """L `tables` of r `rows`: each bucket votes for its most relevant event, most votes win.

    The shape is `tables` and `rows`, or follows from an `error` and a similarity `threshold`.
    Windows whose events have more than `most_keys` bands in all tables are refused.
    """

    tables: int | None = None
    rows: int | None = None
    error: float | None = None
    threshold: float | None = None
    seed: int = 0
    distance: Any = Jaccard()
    name: ClassVar[str] = "maxdivrel-lsh"
    sigma: ClassVar[float] = 0.5
    most_keys: ClassVar[int] = TRUSTED.lsh_keys

    def __post_init__(self) -> None:
        if (self.error is None) != (self.threshold is None):
            raise InvalidPolicy("error and threshold must be given together")
        if self.error is not None and self.threshold is not None:
            if self.tables is not None or self.rows is not None:
                raise InvalidPolicy("give tables and rows, or error and threshold, not both")
        else:
            tables = validate.count("tables", _TABLES if self.tables is None else self.tables)
            rows = validate.count("rows", _ROWS if self.rows is None else self.rows)
            object.__setattr__(self, "tables", tables)
            object.__setattr__(self, "rows", rows)
        validate.count("seed", self.seed, low=0, high=_LARGEST_SEED)
        _ = self.shape
        read_distance(self)

    def bounded(self, most_keys: int) -> "MaxDivRelLsh":
        """Return the same diversifier with another bound on the bands of one window."""
        if most_keys == self.most_keys:
            return self
        part = copy(self)
        object.__setattr__(part, "most_keys", most_keys)
        return part

    @property
    def shape(self) -> tuple[int, int]:
        """(L, r)."""
        if self.error is not None and self.threshold is not None:
            return tables_and_rows(self.error, self.threshold)
        return (self.tables or 0, self.rows or 0)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Return the k winners of most votes; of ties the higher rank, then the newer (BLSH).

        O(tokens * L * r) for the signatures, and O(L) for each event.
        """
        check_keys(len(candidates), self.shape[0], self.most_keys)
        events = [candidate.event for candidate in candidates]
        ranks, keys = ranks_and_keys(candidates)
        chosen: list[int] = self.pick(ranks, keys, order_of(events), self.bands(events), k).tolist()
        return chosen

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: UInt64s, k: int
    ) -> Int64s:
        """Choose by band keys, a row of the matrix for each candidate."""
        best = by_rank(keys, order.newest)
        if len(keys) < k:
            return best
        votes = _votes(matrix, best)
        winners = best[np.argsort(-votes[best], kind="stable")]
        return winners[: min(k, np.count_nonzero(votes))]

    def votes(self, candidates: Sequence[Candidate]) -> Int64s:
        """Return how many buckets each candidate wins (TKS Table 5.10)."""
        events = [candidate.event for candidate in candidates]
        _, keys = ranks_and_keys(candidates)
        return _votes(self.bands(events), by_rank(keys, order_of(events).newest))

    def bands(self, events: Sequence[Event]) -> UInt64s:
        """Return the L band keys of each event: the bucket that it belongs to in each table."""
        return band_keys(events, self.shape, self.seed)


def _votes(bands: UInt64s, best_first: Int64s) -> Int64s:
    votes = np.empty(len(bands), np.int64)
    count_votes(bands, best_first, votes)
    return votes


def tables_and_rows(error: float, threshold: float) -> tuple[int, int]:
    """Return (L, r) with L * r <= m = ceil(1 / error²) and (1/L)^(1/r) nearest the threshold.

    >>> tables_and_rows(error=0.1, threshold=0.5)
    (20, 5)
    """
    validate.number("error", error, low=0.01, high=1)
    validate.number("threshold", threshold, high=1)
    m = math.ceil(round(1 / error**2, 9))  # (1/7)² is not exact in binary
    shapes = [(m // rows, rows) for rows in range(1, m + 1)]
    return min(shapes, key=lambda shape: abs((1 / shape[0]) ** (1 / shape[1]) - threshold))


def band_keys(events: Sequence[Event], shape: tuple[int, int], seed: int = 0) -> UInt64s:
    """Return for each event the keys of the L bands of r rows of its signature.

    Two events share a bucket of a table (TKS Table 5.9) if they have the same key there: a 64-bit
    hash of the table and the band.
    """
    tables, rows = shape
    starts, hashes = token_rows(events)
    keys = np.empty((len(events), tables), np.uint64)
    band_rows(starts, hashes, salts(tables * rows, seed), salts(tables, 0), keys)
    return keys


@lru_cache(64)
def salts(length: int, seed: int) -> UInt64s:
    """Return a pseudo-random number for each row of a signature, or for each table."""
    x = np.arange(1, length + 1, dtype=np.uint64) * _GOLDEN + np.uint64(seed % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
