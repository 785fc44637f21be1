"""Distances between events, and what they make of a set (PREF Def. 7, 8 and 10; TKS 5.2.3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar, Final

from tidings.diversify.protocol import Candidate, Distance
from tidings.errors import InvalidPolicy, TidingsError, shown
from tidings.model import named_parts, validate
from tidings.model.conditions.predicate import TokenMap
from tidings.model.records import Event
from tidings.model.values import rounded

HEAVIEST: Final = 1e250
"""Sums of so many weights or distances as there is memory for stay finite."""


@dataclass(frozen=True)
class Overlap:
    """1 - (weights of attributes equal in both) / (weights of attributes in either), PREF Def. 7.

    Lists are equal as sets. An attribute without a weight has weight 1.
    """

    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    name: ClassVar[str] = "overlap"

    def __post_init__(self) -> None:
        rule = "weights maps attributes to numbers"
        weights = validate.mapping(rule, self.weights, InvalidPolicy)
        object.__setattr__(self, "weights", weights)
        for attribute, weight in weights.items():
            if not isinstance(attribute, str):
                raise InvalidPolicy(f"weights maps attributes to numbers, not {shown(attribute)}")
            finite(f"the weight of {attribute}", weight, InvalidPolicy)

    def between(self, one: Event, other: Event) -> float:
        """Give the distance; 0 where no attribute has any weight."""
        mine, yours = one.tokens, other.tokens
        if not self.weights:
            either = len(mine) + len(yours) - len(mine.keys() & yours.keys())
            return (either - len(mine.items() & yours.items())) / either if either else 0.0
        return self._weighted(mine, yours)

    def _weighted(self, mine: TokenMap, yours: TokenMap) -> float:
        either = {**mine, **yours}
        unequal = [name for name in either if mine.get(name) != yours.get(name)]
        whole = self._weigh(either)
        return self._weigh(unequal) / whole if whole else 0.0

    def _weigh(self, attributes: Mapping[str, object] | Sequence[str]) -> float:
        return math.fsum(self.weights.get(name, 1.0) for name in attributes)


@dataclass(frozen=True)
class Jaccard:
    """1 - |common| / |all| over the sets of attribute=value tokens, a list giving one for each."""

    name: ClassVar[str] = "jaccard"

    def between(self, one: Event, other: Event) -> float:
        """Give the distance; 0 between two events without attributes."""
        mine, yours = attribute_tokens(one), attribute_tokens(other)
        union = mine | yours
        return len(mine ^ yours) / len(union) if union else 0.0


def attribute_tokens(event: Event) -> frozenset[tuple[str, object]]:
    """Give the attribute=value tokens of an event (TKS Table 5.5)."""
    return frozenset((name, each) for name, values in event.tokens.items() for each in values)


DISTANCES: Final[dict[str, type[Distance]]] = named_parts.registry(
    {"overlap": Overlap, "jaccard": Jaccard}
)


def read_distance(owner: object) -> None:
    """Let `owner.distance` be given as a name or a form."""
    found = named_parts.read(DISTANCES, "distance", owner.distance)  # type: ignore[attr-defined]
    object.__setattr__(owner, "distance", found)


def finite(what: str, value: object, kind: type[TidingsError] = TidingsError) -> float:
    """Check a number of at least 0 whose sums stay finite, however many are added."""
    found = validate.number(what, value, kind)
    if found > HEAVIEST:
        raise kind(f"{what} is at most {HEAVIEST:g}, not {shown(value)}")
    return found


def measure(distance: Distance, one: Event, other: Event) -> float:
    """Return the distance of two events, also by a distance of somebody's own, which is checked."""
    found = distance.between(one, other)
    if type(found) is float and 0.0 <= found <= HEAVIEST:
        return found
    return finite(f"the distance {distance.name} of {one.id} and {other.id}", found)


def diversity(events: Sequence[Event], distance: Distance) -> float:
    """Give div(L), the mean pairwise distance (PREF Def. 8); of one event, 0."""
    return rounded(_mean_distance(events, distance))


def _mean_distance(events: Sequence[Event], distance: Distance) -> float:
    apart = [measure(distance, one, other) for one, other in combinations(events, 2)]
    return math.fsum(apart) / len(apart) if apart else 0.0


def set_divrank(chosen: Sequence[Candidate], sigma: float, distance: Distance) -> float:
    """Give sigma * mean rank + (1 - sigma) * div(L) (PREF Def. 10); of no event, 0."""
    if not chosen:
        return 0.0
    mean = math.fsum(each.rank for each in chosen) / len(chosen)
    div = _mean_distance([each.event for each in chosen], distance)
    return rounded(sigma * mean + (1 - sigma) * div)
