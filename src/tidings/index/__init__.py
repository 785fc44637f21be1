"""Who may want this event? Indexes over subscriptions, and the scan that judges them."""

from tidings.index.intervals import interval_index
from tidings.index.protocol import Index, Score
from tidings.index.registry import INDEXES

__all__ = ["INDEXES", "Index", "Score", "interval_index"]
