"""Subscriptions over several numeric attributes (RPS 1, 2 and 4): exact and relaxed top k."""

from tidings.index.boxes.protocol import BoxIndex, NumericEvents, range_events
from tidings.index.boxes.registry import BOX_INDEXES, box_index

__all__ = ["BOX_INDEXES", "BoxIndex", "NumericEvents", "box_index", "range_events"]
