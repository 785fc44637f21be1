"""No diversity: the k highest ranks (PREF Def. 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.hashed_distances import DistanceMatrix
from tidings.diversify.protocol import Candidate, TieOrder, ranked
from tidings.diversify.tie_order import by_rank


@dataclass(frozen=True)
class NoDiversity:
    """Rank alone decides; `distance` only measures how diverse the result is."""

    distance: Any = Overlap()
    name: ClassVar[str] = "none"
    sigma: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return ranked(candidates)[:k]

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return by_rank(keys, order.newest)[:k]
