"""Greedy growth of a diverse set (PREF Alg. 1): the best pair, then one candidate at a time."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tidings.diversify.distance import checked_distance
from tidings.diversify.protocol import Candidate, Distance, Diversifier, ranked
from tidings.model.records import newest_first
from tidings.model.values import rounded

PairValue = Callable[[Candidate, Candidate], float]


@dataclass(frozen=True)
class GrowthRule:
    """How a candidate is valued against the chosen ones.

    `link` relates it to one of them; `combine` adds a link to those before, in O(1) for each
    candidate and step (PREF Prop. 1); `value` is the value of a candidate by its links to the
    `size` chosen ones.
    """

    link: PairValue
    combine: Callable[[float, float], float]
    value: Callable[[Candidate, float, int], float]


def pair_rank(sigma: float, distance: Distance) -> PairValue:
    """Return the divrank of pairs: sigma * mean rank + (1 - sigma) * distance (PREF Def. 10)."""

    def value(one: Candidate, other: Candidate) -> float:
        mean = (one.rank + other.rank) / 2
        return sigma * mean + (1 - sigma) * checked_distance(distance, one.event, other.event)

    return value


def grow(candidates: Sequence[Candidate], k: int, pair: PairValue, rule: GrowthRule) -> list[int]:
    """Choose k: the pair of largest `pair`, then by `rule`; of ties the most recent."""
    if k == 1 or len(candidates) <= 1:
        return ranked(candidates)[:k]
    first, second = _best_pair(candidates, pair)
    chosen = [first, second]
    links = {
        i: rule.combine(
            rule.link(candidate, candidates[first]), rule.link(candidate, candidates[second])
        )
        for i, candidate in enumerate(candidates)
        if i not in chosen
    }
    while links and len(chosen) < k:
        added = min(links, key=lambda i: _order(candidates[i], links[i], rule, len(chosen)))
        chosen.append(added)
        del links[added]
        for i, before in links.items():
            links[i] = rule.combine(before, rule.link(candidates[i], candidates[added]))
    return chosen


def _order(
    candidate: Candidate, links: float, rule: GrowthRule, size: int
) -> tuple[float, tuple[int, str]]:
    return (-rounded(rule.value(candidate, links, size)), newest_first(candidate.event))


def _best_pair(candidates: Sequence[Candidate], pair: PairValue) -> tuple[int, int]:
    """Return the pair of largest value, the older first.

    Ties go to the larger sum of publication times, the newer member, then the smaller ids.
    """

    def order(indexes: tuple[int, int]) -> tuple[float, int, int, list[str]]:
        one, other = (candidates[i] for i in indexes)
        times = (one.event.published_us, other.event.published_us)
        ids = sorted((one.event.id, other.event.id))
        return (-rounded(pair(one, other)), -sum(times), -max(times), ids)

    first, second = min(combinations(range(len(candidates)), 2), key=order)
    older = min(first, second, key=lambda i: _age(candidates[i]))
    return (first, second) if older == first else (second, first)


def _age(candidate: Candidate) -> tuple[int, str]:
    return (candidate.event.published_us, candidate.event.id)


def divrank(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by rank and distance to the nearest chosen (PREF Def. 11).

    O(n²) distances for the pair, and O(n) more for each candidate added.
    """
    rule = GrowthRule(
        link=lambda one, other: checked_distance(part.distance, one.event, other.event),
        combine=min,
        value=lambda added, nearest, _: part.sigma * added.rank + (1 - part.sigma) * nearest,
    )
    return grow(candidates, k, pair_rank(part.sigma, part.distance), rule)


def maxmin(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Add the candidate whose smallest pair weight to the chosen is largest."""
    pair = pair_rank(part.sigma, part.distance)
    return grow(candidates, k, pair, GrowthRule(pair, min, lambda _, least, __: least))


def maxsum(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Add the candidate whose pair weights to the chosen have the largest sum."""
    pair = pair_rank(part.sigma, part.distance)
    return grow(candidates, k, pair, GrowthRule(pair, operator.add, lambda _, total, __: total))


def maxavg(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Add the candidate whose pair weights to the chosen have the largest mean."""
    pair = pair_rank(part.sigma, part.distance)
    rule = GrowthRule(pair, operator.add, lambda _, total, size: total / size)
    return grow(candidates, k, pair, rule)
