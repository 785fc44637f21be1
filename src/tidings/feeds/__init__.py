"""The feeds of all subscribers: one object each, or arrays for all of them."""

from tidings.feeds.protocol import Feeds, Offer
from tidings.feeds.registry import FEEDS

__all__ = ["FEEDS", "Feeds", "Offer"]
