"""Scored intervals over one attribute (RPS 2 and 3): the best k that a point stabs."""

from tidings.index.interval.protocol import IntervalIndex
from tidings.index.interval.registry import INTERVAL_INDEXES, interval_index

__all__ = ["INTERVAL_INDEXES", "IntervalIndex", "interval_index"]
