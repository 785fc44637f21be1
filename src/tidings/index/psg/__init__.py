"""The preferential subscription graph (PREF 6.1): covers among all subscriptions."""

from tidings.index.psg.graph import Aggregate, Entry, PreferentialGraph
from tidings.index.psg.poset import Node, Poset

__all__ = ["Aggregate", "Entry", "Node", "Poset", "PreferentialGraph"]
