"""MAXDIVREL (TKS Def. 4.2.10, Alg. 4.1): relevant ones that stand for their neighbourhoods."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.neighbourhood import Apart, check_alpha, choose_cover
from tidings.diversify.protocol import Candidate


@dataclass(frozen=True)
class MaxDivRel:
    """Always the white p of largest r(p)² / sum of r(q) d(p, q) over its white neighbours q.

    Without an alpha, the largest that still yields k.
    """

    alpha: float | None = None
    distance: Any = Overlap()
    name: ClassVar[str] = "maxdivrel"
    sigma: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Cover all candidates, then keep the k most relevant of the cover."""

        def gain(i: int, neighbours: set[int], apart: Apart) -> float:
            rank = candidates[i].rank
            around = math.fsum(candidates[j].rank * apart[i, j] for j in neighbours)
            return rank * (rank / around) if around else math.inf

        return choose_cover(candidates, k, self, gain)
