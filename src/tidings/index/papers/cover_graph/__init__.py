"""The preferential subscription graph (PREF 6.1): covers among all subscriptions."""

from tidings.index.papers.cover_graph.graph import Aggregate, Entry, PreferentialGraph
from tidings.index.papers.cover_graph.poset import Node, Poset

__all__ = ["Aggregate", "Entry", "Node", "Poset", "PreferentialGraph"]
