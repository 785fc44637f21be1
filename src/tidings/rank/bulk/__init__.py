"""Ranks of an event for all its subscribers at once, in compiled passes over an index."""

from tidings.rank.bulk.ranker import Fanout

__all__ = ["Fanout"]
