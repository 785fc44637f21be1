"""Ranks at fan-out: every subscriber's rank of an event, in compiled passes over an index."""

from tidings.fanout.fanout import Fanout
from tidings.fanout.wanted import Wanted

__all__ = ["Fanout", "Wanted"]
