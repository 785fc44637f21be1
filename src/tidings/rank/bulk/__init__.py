"""Ranks at fan-out: every subscriber's rank of an event, in compiled passes over an index."""

from tidings.rank.bulk.matches import Wanted
from tidings.rank.bulk.ranker import Fanout

__all__ = ["Fanout", "Wanted"]
