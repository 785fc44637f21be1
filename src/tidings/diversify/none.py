"""No diversity: the k highest ranks (PREF Def. 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.protocol import Candidate, ranked


@dataclass(frozen=True)
class NoDiversity:
    """Rank alone decides; `distance` only says how diverse the result came out."""

    distance: Any = Overlap()
    name: ClassVar[str] = "none"
    sigma: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Take the k best."""
        return ranked(candidates)[:k]
