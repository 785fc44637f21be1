"""Feeds of all subscribers, window + diversify: one object for each, or arrays for all of them."""

from tidings.feed.protocol import Feeds, Offer
from tidings.feed.registry import FEEDS

__all__ = ["FEEDS", "Feeds", "Offer"]
