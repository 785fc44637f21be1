"""The preference graph (TKS 4.2.1): the predicates of a subscriber and the relations between them.

The nodes are the predicates of all subscriptions of one subscriber. Within one subscription, every
pair of predicates has an edge from the more to the less preferred one, whose weight is the ratio of
their preferences.
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
"""The most pairs of predicates of one subscriber: those of a subscription with 1,414 predicates."""


@dataclass(frozen=True)
class Graph:
    """lambda * F(satisfied edges) + (1 - lambda) * F(satisfied predicates) (TKS Def. 4.2.3).

    F is the mean, or with `aggregate="sum"` the sum, as in TKS algorithms A.2 and B.2. A graph with
    fewer active predicates than `threshold` scores nothing.
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
        return GraphRanker(self, preference_graph(subscriptions))


@dataclass(frozen=True)
class PreferenceGraph:
    """A personalised subscription graph (TKS Def. 3.2.2): preferred nodes, weighted edges."""

    preferences: Mapping[Predicate, float]
    edges: Mapping[Edge, float]


@dataclass(frozen=True)
class GraphRanker:
    """One subscriber's graph."""

    scorer: Graph
    graph: PreferenceGraph

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Score the whole graph; `hits` only show that some predicate holds."""
        return self._relevance(event, self.graph) if hits else None

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Score the graph of one subscription alone."""
        return self._relevance(event, preference_graph([hit]))

    def _relevance(self, event: Event, graph: PreferenceGraph) -> float | None:
        if len(graph.preferences) < self.scorer.threshold:
            return None
        holding = {node for node in graph.preferences if node.holds(event.tokens)}
        nodes = [weight for node, weight in graph.preferences.items() if node in holding]
        edges = [weight for edge, weight in graph.edges.items() if holding.issuperset(edge)]
        aggregate, share = AGGREGATES[self.scorer.aggregate], self.scorer.lambda_
        relevance = rounded(share * aggregate(edges) + (1 - share) * aggregate(nodes))
        return relevance if relevance > 0 else None


def preference_graph(subscriptions: Iterable[Subscription]) -> PreferenceGraph:
    """Build the graph (TKS Alg. A.1): a node or edge that occurs twice keeps its largest weight.

    It contains active predicates only: inactive ones are disabled, dead ones removed.
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
    return PreferenceGraph(preferences, edges)


def _active(subscription: Subscription) -> list[Weighted]:
    return [part for group in subscription.groups for part in group if part.state == "active"]


def _relations(preferences: Mapping[Predicate, float]) -> Iterable[tuple[Edge, float]]:
    """Yield the edges of one subscription; equal preferences keep their order, 0 has no edge."""
    for (one, first), (other, second) in combinations(preferences.items(), 2):
        if first > 0 and second > 0:
            high, low = (one, other) if first >= second else (other, one)
            yield (high, low), max(first, second) / min(first, second)
