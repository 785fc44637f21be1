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

_NAMED: Final = 8
"""How many of a long cycle are named at its either end."""


@dataclass(frozen=True)
class Preference:
    """F over the prefranks of the most specific matching subscriptions (PREF Def. 5).

    F is `aggregate`: max, mean, min, or sum, the sum weighted by `weights` of subscription ids (1
    where none is given).
    """

    aggregate: str = "max"
    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    name: ClassVar[str] = "preference"
    partial: ClassVar[bool] = False

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self) -> None:
        if isinstance(self.aggregate, str):
            given = validate.plain_text(self.aggregate)
            same = given in ("weighted sum", "weighted-sum", "weighted_sum")
            object.__setattr__(self, "aggregate", "sum" if same else given)
        validate.choice("aggregate", self.aggregate, AGGREGATES)
        rule = "weights are a mapping of ids of subscriptions to numbers"
        weights = validate.mapping(rule, self.weights, InvalidPolicy)
        for subscription, weight in weights.items():
            validate.name("the id of a subscription with a weight", subscription, InvalidPolicy)
            validate.number(f"the weight of {subscription}", weight)
        object.__setattr__(self, "weights", weights)
        if self.weights and self.aggregate != "sum":
            raise InvalidPolicy(f"weights go with the aggregate sum, not {self.aggregate}")

    def prepare(
        self, subscriptions: Sequence[Subscription], prefers: Prefers
    ) -> "PreferenceRanker":
        """Derive the prefranks and find which subscription strictly covers which."""
        ranks = all_prefranks(subscriptions, prefers)
        return PreferenceRanker(self, ranks, covers_among(subscriptions))

    def worths(self, subscriptions: Sequence[Subscription], prefers: Prefers) -> list[float]:
        """Give what each counts for where it is most specific: its prefrank, weighed."""
        ranks = all_prefranks(subscriptions, prefers)
        return [ranks[each.id] * self.weights.get(each.id, 1.0) for each in subscriptions]


@dataclass(frozen=True)
class PreferenceRanker:
    """One subscriber's prefranks, and for each subscription those that it strictly covers."""

    scorer: Preference
    prefranks: Mapping[str, float]
    covered: Mapping[str, frozenset[str]]

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Aggregate over the most specific of the subscriptions that match."""
        matching = {hit.id for hit in hits if hit.matches(event)}
        ranks = [self._weighed(hit) for hit in self.most_specific(matching)]
        return AGGREGATES[self.scorer.aggregate](ranks) if ranks else None

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Give the prefrank of the subscription, if it matches."""
        return self.prefranks[hit.id] if hit.matches(event) else None

    def most_specific(self, matching: Iterable[str]) -> list[str]:
        """Give those that strictly cover no other of `matching`, in order of their ids."""
        found = set(matching)
        return sorted(each for each in found if not self.covered[each] & found)

    def _weighed(self, subscription: str) -> float:
        return self.prefranks[subscription] * self.scorer.weights.get(subscription, 1.0)


def covers_among(subscriptions: Sequence[Subscription]) -> dict[str, frozenset[str]]:
    """Find what `strict_covers` finds, without comparing all pairs."""
    found = strictly_covered(
        [each.conjunctions for each in subscriptions], [0] * len(subscriptions)
    )
    return {
        wide.id: frozenset(subscriptions[place].id for place in found.of(number).tolist())
        for number, wide in enumerate(subscriptions)
    }


def strict_covers(subscriptions: Sequence[Subscription]) -> dict[str, frozenset[str]]:
    """Find, by scan, for each subscription the others that it strictly covers (PREF Def. 4)."""
    return {
        wide.id: frozenset(
            narrow.id
            for narrow in subscriptions
            if narrow is not wide and strictly_covers(wide.conjunctions, narrow.conjunctions)
        )
        for wide in subscriptions
    }


def all_prefranks(subscriptions: Sequence[Subscription], prefers: Prefers) -> dict[str, float]:
    """Give the prefranks of a subscriber's subscriptions; one that is given wins over a derived."""
    given = {each.id: each.prefrank for each in subscriptions if each.prefrank is not None}
    if len(given) == len(subscriptions):
        return given
    known = {each.id for each in subscriptions}
    return prefranks(known, [pair for pair in prefers if known.issuperset(pair)]) | given


def winnow(items: Iterable[str], prefers: Prefers) -> list[set[str]]:
    """Give the winnow levels (PREF 3.1): level 1 are the undominated, level 2 those after, ...

    An item is on the level after the last of those that dominate it; linear in the preferences.

    >>> [sorted(level) for level in winnow("abc", [("a", "b"), ("b", "c")])]
    [['a'], ['b'], ['c']]
    """
    left = set(items)
    worse, dominating = defaultdict[str, list[str]](list), dict.fromkeys(left, 0)
    for high, low in set(prefers):
        if high in left and low in left:
            worse[high].append(low)
            dominating[low] += 1
    levels = list[set[str]]()
    level = {item for item in left if not dominating[item]}
    while level:
        levels.append(level)
        left -= level
        dominated = [low for high in level for low in worse[high]]
        for low in dominated:
            dominating[low] -= 1
        level = {low for low in dominated if not dominating[low]}
    if left:
        raise InvalidSubscription(f"preferences form a cycle: {_cycle(left, prefers)}")
    return levels


def prefranks(items: Iterable[str], prefers: Prefers) -> dict[str, float]:
    """Derive prefrank = (D + 1 - (l - 1)) / (D + 1) from winnow levels l (PREF Fig. 3).

    D, the edges on the longest path, is one less than the number of levels.

    >>> prefranks("abc", [("a", "b")])["b"]
    0.5
    """
    levels = winnow(items, prefers)
    steps = len(levels)
    return {item: (steps - above) / steps for above, level in enumerate(levels) for item in level}


def _cycle(items: set[str], prefers: Prefers) -> str:
    """Name a cycle among items that are all dominated: walk up until one comes again."""
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
