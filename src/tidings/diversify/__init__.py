"""Which k together? Diversifiers choose, from candidates with ranks, a set worth having."""

from tidings.diversify.agreement import Agreement, agreement
from tidings.diversify.distance import DISTANCES, diversity, set_divrank
from tidings.diversify.distance_matrix import Among, distances
from tidings.diversify.event_hashes import Crowd
from tidings.diversify.lsh_incremental import Ilsh
from tidings.diversify.neighbour_lists import Neighbours
from tidings.diversify.protocol import Candidate, Distance, Diversifier, Order, best_first
from tidings.diversify.registry import DIVERSIFIERS
from tidings.diversify.select import select
from tidings.diversify.tie_order import order_of
from tidings.diversify.window_cache import keep

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
