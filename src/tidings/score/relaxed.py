"""Relaxed matching (RPS 2): the score aggregates the weights of the predicates that hold."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from tidings.model import validate
from tidings.model.records import Event, Subscription, Weighted
from tidings.model.values import rounded
from tidings.score.protocol import Prefers

Aggregate = Callable[[Sequence[float]], float]
AGGREGATES: Final[dict[str, Aggregate]] = {
    "sum": math.fsum,
    "max": max,
    "mean": lambda weights: math.fsum(weights) / len(weights),
    "min": min,
}


@dataclass(frozen=True)
class Relaxed:
    """The aggregate of the weights of predicates that hold; the best disjunct counts.

    A weight is multiplied by the probability of its attribute, if the event has one.

    `aggregate` is a name or any monotone function of a list of weights.
    """

    aggregate: str | Aggregate = "sum"
    name: ClassVar[str] = "relaxed"
    partial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.aggregate):
            validate.choice("aggregate", self.aggregate, AGGREGATES)

    def prepare(self, subscriptions: Sequence[Subscription], prefers: Prefers) -> "Relaxed":
        """Return the scorer itself: it depends on one subscription at a time."""
        return self

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Return the best score of the subscriptions, of which some predicate holds."""
        return _best(self.score(event, hit) for hit in hits)

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Return the score of the best group of predicates of which some hold."""
        return _best(self._group(event, group) for group in hit.groups)

    def _group(self, event: Event, group: Iterable[Weighted]) -> float | None:
        weights = [
            part.weight * event.probabilities.get(part.predicate.attribute, 1.0)
            for part in group
            if part.state == "active" and part.predicate.holds(event.tokens)
        ]
        if not weights:
            return None
        aggregate = self.aggregate
        if isinstance(aggregate, str):
            aggregate = AGGREGATES[aggregate]
        return rounded(aggregate(weights))


def _best(scores: Iterable[float | None]) -> float | None:
    return max((score for score in scores if score is not None), default=None)
