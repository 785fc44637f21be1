"""MAXDIVREL by locality-sensitive hashing (TKS 5.2): buckets of similar events elect winners."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.diversify.distance import Jaccard, read_distance
from tidings.diversify.kernels.lsh_votes import count_votes
from tidings.diversify.minhash import bands
from tidings.diversify.protocol import Candidate, Order
from tidings.diversify.tie_order import by_rank, order_of, ranks_and_keys
from tidings.errors import InvalidPolicy
from tidings.model import validate
from tidings.model.records import Event

_TABLES: Final = 20
_ROWS: Final = 5
_LARGEST_SEED: Final = 2**128 - 1


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
            object.__setattr__(self, "tables", validate.count("tables", tables))
            object.__setattr__(
                self, "rows", validate.count("rows", _ROWS if rows is None else rows)
            )
        validate.count("seed", self.seed, low=0, high=_LARGEST_SEED)
        _ = self.shape
        read_distance(self)

    @property
    def shape(self) -> tuple[int, int]:
        """(L, r)."""
        if self.error is not None and self.threshold is not None:
            return tables_and_rows(self.error, self.threshold)
        return (self.tables or 0, self.rows or 0)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Take the k winners of most votes; of ties the higher rank, then the newer (BLSH).

        O(tokens * L * r) for the signatures, and O(L) for each event.
        """
        events = [each.event for each in candidates]
        ranks, keys = ranks_and_keys(candidates)
        chosen: list[int] = self.pick(ranks, keys, order_of(events), self.bands(events), k).tolist()
        return chosen

    def pick(self, ranks: Float64s, keys: Float64s, order: Order, apart: UInt64s, k: int) -> Int64s:
        """Choose by bands, a row for each candidate."""
        best = by_rank(keys, order.newest)
        if len(keys) < k:
            return best
        votes = np.empty(len(keys), np.int64)
        count_votes(apart, best, votes)
        ordered = best[np.argsort(-votes[best], kind="stable")]
        return ordered[: min(k, np.count_nonzero(votes))]

    def bands(self, events: Sequence[Event]) -> UInt64s:
        """Give the L keys of each event: the bucket that it belongs to in each table."""
        return bands(events, self.shape, self.seed)


def tables_and_rows(error: float, threshold: float) -> tuple[int, int]:
    """Choose (L, r) with L * r <= m = ceil(1 / error²) and (1/L)^(1/r) nearest the threshold.

    >>> tables_and_rows(error=0.1, threshold=0.5)
    (20, 5)
    """
    validate.number("error", error, low=0.01, high=1)
    validate.number("threshold", threshold, high=1)
    m = math.ceil(round(1 / error**2, 9))  # (1/7)² has no float of its own
    shapes = [(m // rows, rows) for rows in range(1, m + 1)]
    return min(shapes, key=lambda shape: abs((1 / shape[0]) ** (1 / shape[1]) - threshold))
