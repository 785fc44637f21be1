"""Preference ranking (PREF 3): the rank of an event comes from its most specific subscriptions."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from tidings.errors import InvalidPolicy, InvalidSubscription
from tidings.model import validate
from tidings.model.conditions.cover_bulk import strictly_covered
from tidings.model.conditions.implication import strictly_covers
from tidings.model.records import Event, Subscription
from tidings.model.values import rounded
from tidings.score.protocol import Prefers

AGGREGATES: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "max": max,
    "mean": lambda ranks: rounded(math.fsum(ranks) / len(ranks)),
    "min": min,
    "sum": lambda ranks: rounded(math.fsum(ranks)),
}

_MOST_WEIGHT: Final = 1e100
"""Sums of many weights stay finite, as ranks must."""
_NAMED: Final = 8
"""How many items of a long cycle an error names at each end."""


@dataclass(frozen=True)
class Preference:
    """F over the prefranks of the most specific matching subscriptions (PREF Def. 5).

    F is `aggregate`: max, mean, min or sum. A sum is weighted by `weights`, a mapping from
    subscription ids; the default weight is 1.
    """

    aggregate: str = "max"
    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    name: ClassVar[str] = "preference"
    partial: ClassVar[bool] = False

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self) -> None:
        if isinstance(self.aggregate, str):
            name = validate.plain_text(self.aggregate)
            weighted = name in ("weighted sum", "weighted-sum", "weighted_sum")
            object.__setattr__(self, "aggregate", "sum" if weighted else name)
        validate.choice("aggregate", self.aggregate, AGGREGATES)
        rule = "weights are a mapping of ids of subscriptions to numbers"
        weights = validate.mapping(rule, self.weights, InvalidPolicy)
        for subscription, weight in weights.items():
            validate.name("the id of a subscription with a weight", subscription, InvalidPolicy)
            validate.number(f"the weight of {subscription}", weight, high=_MOST_WEIGHT)
        object.__setattr__(self, "weights", weights)
        if self.weights and self.aggregate != "sum":
            raise InvalidPolicy(f"weights go with the aggregate sum, not {self.aggregate}")

    def prepare(
        self, subscriptions: Sequence[Subscription], prefers: Prefers
    ) -> "PreferenceRanker":
        """Derive the prefranks and find which subscription strictly covers which."""
        ranks = all_prefranks(subscriptions, prefers)
        return PreferenceRanker(self, ranks, covers_among(subscriptions))

    def weighted_prefranks(
        self, subscriptions: Sequence[Subscription], prefers: Prefers
    ) -> list[float]:
        """Return the weighted prefrank of each subscription."""
        ranks = all_prefranks(subscriptions, prefers)
        return [ranks[s.id] * self.weights.get(s.id, 1.0) for s in subscriptions]


@dataclass(frozen=True)
class PreferenceRanker:
    """The prefranks of one subscriber, and for each subscription those that it strictly covers."""

    scorer: Preference
    prefranks: Mapping[str, float]
    covered: Mapping[str, frozenset[str]]

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Return the aggregate over the most specific of the subscriptions that match."""
        matching = {hit.id for hit in hits if hit.matches(event)}
        ranks = [self._weighted(hit) for hit in self.most_specific(matching)]
        return AGGREGATES[self.scorer.aggregate](ranks) if ranks else None

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Return the prefrank of the subscription, if it matches."""
        return self.prefranks[hit.id] if hit.matches(event) else None

    def most_specific(self, matching: Iterable[str]) -> list[str]:
        """Return the ids that strictly cover no other of `matching`, sorted."""
        ids = set(matching)
        return sorted(wide for wide in ids if not self.covered[wide] & ids)

    def _weighted(self, subscription: str) -> float:
        return self.prefranks[subscription] * self.scorer.weights.get(subscription, 1.0)


def covers_among(subscriptions: Sequence[Subscription]) -> dict[str, frozenset[str]]:
    """Return the answer of `strict_covers`, without comparing all pairs."""
    covered = strictly_covered(
        [subscription.conjunctions for subscription in subscriptions], [0] * len(subscriptions)
    )
    return {
        wide.id: frozenset(subscriptions[place].id for place in covered.run(number).tolist())
        for number, wide in enumerate(subscriptions)
    }


def strict_covers(subscriptions: Sequence[Subscription]) -> dict[str, frozenset[str]]:
    """Return for each subscription the others that it strictly covers (PREF Def. 4), by a scan."""
    return {
        wide.id: frozenset(
            narrow.id
            for narrow in subscriptions
            if narrow is not wide and strictly_covers(wide.conjunctions, narrow.conjunctions)
        )
        for wide in subscriptions
    }


def all_prefranks(subscriptions: Sequence[Subscription], prefers: Prefers) -> dict[str, float]:
    """Return the prefranks of a subscriber's subscriptions; explicit ones override derived ones."""
    explicit = {s.id: s.prefrank for s in subscriptions if s.prefrank is not None}
    if len(explicit) == len(subscriptions):
        return explicit
    ids = {subscription.id for subscription in subscriptions}
    return prefranks(ids, [pair for pair in prefers if ids.issuperset(pair)]) | explicit


def winnow(items: Iterable[str], prefers: Prefers) -> list[set[str]]:
    """Return the winnow levels (PREF 3.1): undominated items first, then those below, and so on.

    An item is one level below the lowest of those that dominate it; linear in the preferences.

    >>> [sorted(level) for level in winnow("abc", [("a", "b"), ("b", "c")])]
    [['a'], ['b'], ['c']]
    """
    remaining = set(items)
    worse, dominating = defaultdict[str, list[str]](list), dict.fromkeys(remaining, 0)
    for high, low in set(prefers):
        if high in remaining and low in remaining:
            worse[high].append(low)
            dominating[low] += 1
    levels = list[set[str]]()
    level = {item for item in remaining if not dominating[item]}
    while level:
        levels.append(level)
        remaining -= level
        dominated = [low for high in level for low in worse[high]]
        for low in dominated:
            dominating[low] -= 1
        level = {low for low in dominated if not dominating[low]}
    if remaining:
        raise InvalidSubscription(f"preferences form a cycle: {_cycle(remaining, prefers)}")
    return levels


def prefranks(items: Iterable[str], prefers: Prefers) -> dict[str, float]:
    """Return prefrank = (D + 1 - (l - 1)) / (D + 1) by winnow levels l (PREF Fig. 3).

    D, the edges on the longest path, is one less than the number of levels.

    >>> prefranks("abc", [("a", "b")])["b"]
    0.5
    """
    levels = winnow(items, prefers)
    steps = len(levels)
    return {item: (steps - above) / steps for above, level in enumerate(levels) for item in level}


def _cycle(items: set[str], prefers: Prefers) -> str:
    """Return a cycle as text; all items are dominated, so walking up must meet one twice."""
    better: dict[str, list[str]] = defaultdict(list)
    for high, low in prefers:
        if high in items:
            better[low].append(high)
    path, item = dict[str, None](), min(items)
    while item not in path:
        path[item] = None
        item = min(better[item])
    walked = list(path)
    cycle = [item, *reversed(walked[walked.index(item) :])]
    shortened = [*cycle[:_NAMED], "...", *cycle[-_NAMED:]] if len(cycle) > 2 * _NAMED else cycle
    return " > ".join(shortened)
