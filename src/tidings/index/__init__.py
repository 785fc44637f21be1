"""Who may want this event? Indexes over subscriptions, and the scan as their reference."""

from tidings.index.boxes import box_index
from tidings.index.intervals import interval_index
from tidings.index.protocol import Index, Score
from tidings.index.registry import INDEXES

__all__ = ["INDEXES", "Index", "Score", "box_index", "interval_index"]
