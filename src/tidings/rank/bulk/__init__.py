"""Ranks of events for all subscribers at once, in compiled passes over the hits of an index."""

from tidings.rank.bulk.ranker import BulkRanker

__all__ = ["BulkRanker"]
