"""Which k together? Diversifiers choose, from candidates with ranks, a set worth having."""

from tidings.diversify.agreement import Agreement, agreement
from tidings.diversify.apart import Among, distances
from tidings.diversify.crowd import Crowd
from tidings.diversify.distance import DISTANCES, diversity, set_divrank
from tidings.diversify.ilsh import Ilsh
from tidings.diversify.kept import keep
from tidings.diversify.neighbours import Neighbours
from tidings.diversify.order import order_of
from tidings.diversify.protocol import Candidate, Distance, Diversifier, Order, best_first
from tidings.diversify.registry import DIVERSIFIERS
from tidings.diversify.selection import select

__all__ = [
    "DISTANCES",
    "DIVERSIFIERS",
    "Agreement",
    "Among",
    "Candidate",
    "Crowd",
    "Distance",
    "Diversifier",
    "Ilsh",
    "Neighbours",
    "Order",
    "agreement",
    "best_first",
    "distances",
    "diversity",
    "keep",
    "order_of",
    "select",
    "set_divrank",
]
