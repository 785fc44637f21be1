"""The preference graph (TKS 4.2.1): a subscriber's predicates, and how they relate to each other.

The predicates of all subscriptions of one subscriber are the nodes; within one subscription, every
pair gives an edge from the more to the less preferred, as heavy as the ratio of their preferences.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final

from tidings.errors import InvalidSubscription
from tidings.model import validate
from tidings.model.conditions.predicate import Predicate
from tidings.model.records import Event, Subscription, Weighted
from tidings.model.values import rounded
from tidings.score.protocol import Prefers

Edge = tuple[Predicate, Predicate]
AGGREGATES: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "mean": lambda weights: math.fsum(weights) / len(weights) if weights else 0.0,
    "sum": math.fsum,
}
MOST_PAIRS: Final = 1_000_000
"""Pairs of predicates of one subscriber: those of one subscription with 1,414 predicates."""


@dataclass(frozen=True)
class Graph:
    """lambda * F(satisfied edges) + (1 - lambda) * F(satisfied predicates) (TKS Def. 4.2.3).

    F is the mean; `aggregate="sum"` adds instead, as TKS algorithms A.2 and B.2 do. A space with
    fewer active predicates than `threshold` is silent.
    """

    lambda_: float = 0.5
    aggregate: str = "mean"
    threshold: int = 0
    name: ClassVar[str] = "graph"
    partial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.number("lambda", self.lambda_, high=1)
        validate.choice("aggregate", self.aggregate, AGGREGATES)
        validate.count("threshold", self.threshold, low=0, high=2**31 - 1)

    def prepare(self, subscriptions: Sequence[Subscription], prefers: Prefers) -> "GraphRanker":
        """Merge the predicates of all subscriptions into one graph."""
        return GraphRanker(self, space(subscriptions))


@dataclass(frozen=True)
class Space:
    """A personalised subscription graph (TKS Def. 3.2.2): preferred nodes, weighted edges."""

    preferences: Mapping[Predicate, float]
    edges: Mapping[Edge, float]


@dataclass(frozen=True)
class GraphRanker:
    """One subscriber's graph."""

    scorer: Graph
    space: Space

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Score the whole space; `hits` only say that something of it holds."""
        return self._relevance(event, self.space) if hits else None

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Score the space of one subscription alone."""
        return self._relevance(event, space([hit]))

    def _relevance(self, event: Event, graph: Space) -> float | None:
        if len(graph.preferences) < self.scorer.threshold:
            return None
        held = {part for part in graph.preferences if part.holds(event.tokens)}
        nodes = [graph.preferences[part] for part in graph.preferences if part in held]
        edges = [weight for edge, weight in graph.edges.items() if held.issuperset(edge)]
        total, share = AGGREGATES[self.scorer.aggregate], self.scorer.lambda_
        relevance = rounded(share * total(edges) + (1 - share) * total(nodes))
        return relevance if relevance > 0 else None


def space(subscriptions: Iterable[Subscription]) -> Space:
    """Build the graph (TKS Alg. A.1): the same node or edge keeps its largest weight.

    Only active predicates are in it: inactive ones are disabled, dead ones removed.
    """
    preferences: dict[Predicate, float] = {}
    edges: dict[Edge, float] = {}
    pairs = 0
    for subscription in subscriptions:
        local: dict[Predicate, float] = {}
        for part in _active(subscription):
            local[part.predicate] = max(part.weight, local.get(part.predicate, 0.0))
        pairs += len(local) * (len(local) - 1) // 2
        if pairs > MOST_PAIRS:
            raise InvalidSubscription(
                f"subscription {subscription.id}: the scorer graph relates every two predicates, "
                f"{pairs:,} pairs of this subscriber; at most {MOST_PAIRS:,} are allowed"
            )
        for node, preference in local.items():
            preferences[node] = max(preference, preferences.get(node, 0.0))
        for edge, weight in _relations(local):
            edges[edge] = max(weight, edges.get(edge, 0.0))
    return Space(preferences, edges)


def _active(subscription: Subscription) -> list[Weighted]:
    return [part for group in subscription.groups for part in group if part.state == "active"]


def _relations(preferences: Mapping[Predicate, float]) -> Iterable[tuple[Edge, float]]:
    """Give the edges of one subscription; equals stand in written order, a 0 has no edge."""
    for (one, first), (other, second) in combinations(preferences.items(), 2):
        if first > 0 and second > 0:
            high, low = (one, other) if first >= second else (other, one)
            yield (high, low), max(first, second) / min(first, second)
