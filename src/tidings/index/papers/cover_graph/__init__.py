"""The preferential subscription graph (PREF 6.1): covers among all subscriptions."""

from tidings.index.papers.cover_graph.graph import PreferentialGraph, PrefRankEntry, RankAggregate
from tidings.index.papers.cover_graph.poset import CoverNode, CoverPoset

__all__ = ["CoverNode", "CoverPoset", "PrefRankEntry", "PreferentialGraph", "RankAggregate"]
