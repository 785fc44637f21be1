"""Which k together? Diversifiers choose, from candidates with ranks, a set worth having."""

from tidings.diversify.distance import DISTANCES, diversity, set_divrank
from tidings.diversify.protocol import Candidate, Distance, Diversifier, best_first
from tidings.diversify.registry import DIVERSIFIERS
from tidings.diversify.selection import select

__all__ = [
    "DISTANCES",
    "DIVERSIFIERS",
    "Candidate",
    "Distance",
    "Diversifier",
    "best_first",
    "diversity",
    "select",
    "set_divrank",
]
