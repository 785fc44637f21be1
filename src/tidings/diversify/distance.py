"""Distances between events, and the diversity of sets (PREF Def. 7, 8 and 10; TKS 5.2.3)."""

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

LARGEST: Final = 1e250
"""The largest weight, rank or distance: sums of as many as fit into memory stay finite."""


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
            check_summable(f"the weight of {attribute}", weight, InvalidPolicy)

    def between(self, one: Event, other: Event) -> float:
        """Return the distance; 0 where no attribute has any weight."""
        left, right = one.tokens, other.tokens
        if not self.weights:
            either = len(left) + len(right) - len(left.keys() & right.keys())
            return (either - len(left.items() & right.items())) / either if either else 0.0
        return self._weighted(left, right)

    def _weighted(self, left: TokenMap, right: TokenMap) -> float:
        either = {**left, **right}
        unequal = [name for name in either if left.get(name) != right.get(name)]
        total = self._total_weight(either)
        return self._total_weight(unequal) / total if total else 0.0

    def _total_weight(self, attributes: Mapping[str, object] | Sequence[str]) -> float:
        return math.fsum(self.weights.get(name, 1.0) for name in attributes)


@dataclass(frozen=True)
class Jaccard:
    """1 - |common| / |all| over sets of attribute=value tokens; a list has a token per value."""

    name: ClassVar[str] = "jaccard"

    def between(self, one: Event, other: Event) -> float:
        """Return the distance; 0 between two events without attributes."""
        left, right = attribute_tokens(one), attribute_tokens(other)
        union = left | right
        return len(left ^ right) / len(union) if union else 0.0


def attribute_tokens(event: Event) -> frozenset[tuple[str, object]]:
    """Return the attribute=value tokens of an event (TKS Table 5.5)."""
    return frozenset((name, token) for name, tokens in event.tokens.items() for token in tokens)


DISTANCES: Final[dict[str, type[Distance]]] = named_parts.registry(
    {"overlap": Overlap, "jaccard": Jaccard}
)


def read_distance(owner: object) -> None:
    """Replace `owner.distance`, a distance, its name or its form, by the distance."""
    distance = named_parts.read(DISTANCES, "distance", owner.distance)  # type: ignore[attr-defined]
    object.__setattr__(owner, "distance", distance)


def check_summable(what: str, value: object, kind: type[TidingsError] = TidingsError) -> float:
    """Return a number from 0 to `LARGEST`, or raise `kind`."""
    number = validate.number(what, value, kind)
    if number > LARGEST:
        raise kind(f"{what} is at most {LARGEST:g}, not {shown(value)}")
    return number


def checked_distance(distance: Distance, one: Event, other: Event) -> float:
    """Return the distance of two events; the answer of a user-defined distance is checked."""
    value = distance.between(one, other)
    if type(value) is float and 0.0 <= value <= LARGEST:
        return value
    return check_summable(f"the distance {distance.name} of {one.id} and {other.id}", value)


def diversity(events: Sequence[Event], distance: Distance) -> float:
    """Return div(L), the mean pairwise distance (PREF Def. 8); 0 for a single event."""
    return rounded(_mean_distance(events, distance))


def _mean_distance(events: Sequence[Event], distance: Distance) -> float:
    distances = [checked_distance(distance, one, other) for one, other in combinations(events, 2)]
    return math.fsum(distances) / len(distances) if distances else 0.0


def set_divrank(chosen: Sequence[Candidate], sigma: float, distance: Distance) -> float:
    """Return sigma * mean rank + (1 - sigma) * div(L) (PREF Def. 10); 0 for an empty set."""
    if not chosen:
        return 0.0
    mean = math.fsum(candidate.rank for candidate in chosen) / len(chosen)
    div = _mean_distance([candidate.event for candidate in chosen], distance)
    return rounded(sigma * mean + (1 - sigma) * div)
