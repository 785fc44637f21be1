"""Scored intervals over one attribute (RPS 2 and 3): the best k that a point stabs."""

from tidings.index.intervals.protocol import IntervalIndex
from tidings.index.intervals.registry import INTERVAL_INDEXES, interval_index

__all__ = ["INTERVAL_INDEXES", "IntervalIndex", "interval_index"]
