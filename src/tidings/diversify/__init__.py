"""Which k together? Diversifiers choose a set from candidates with ranks."""

from tidings.diversify.distance import DISTANCES, diversity, set_divrank
from tidings.diversify.hashed_distances import EventHashes, Submatrix, distances
from tidings.diversify.protocol import Candidate, Distance, Diversifier, TieOrder, best_first
from tidings.diversify.registry import DIVERSIFIERS
from tidings.diversify.select import select
from tidings.diversify.tie_order import order_of

__all__ = [
    "DISTANCES",
    "DIVERSIFIERS",
    "Candidate",
    "Distance",
    "Diversifier",
    "EventHashes",
    "Submatrix",
    "TieOrder",
    "best_first",
    "distances",
    "diversity",
    "order_of",
    "select",
    "set_divrank",
]
