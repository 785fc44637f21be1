"""Subscriptions over several numeric attributes (RPS 1, 2 and 4): exact and relaxed top k."""

from tidings.index.box.protocol import BoxIndex
from tidings.index.box.registry import BOX_INDEXES, box_index

__all__ = ["BOX_INDEXES", "BoxIndex", "box_index"]
