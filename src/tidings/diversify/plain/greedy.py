"""Greedy growth of a diverse set (PREF Alg. 1): the best pair, then always the best next one."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tidings.diversify.distance import measure
from tidings.diversify.protocol import Candidate, Distance, Diversifier, ranked
from tidings.model.records import newest_first
from tidings.model.values import rounded

PairValue = Callable[[Candidate, Candidate], float]


@dataclass(frozen=True)
class Rule:
    """How a candidate is valued against the chosen ones.

    `link` looks at one chosen; `combine` adds it to the links before, O(1) for each candidate and
    step (PREF Prop. 1); `value` turns the links to the `size` chosen ones into what is compared.
    """

    link: PairValue
    combine: Callable[[float, float], float]
    value: Callable[[Candidate, float, int], float]


def pair_rank(sigma: float, distance: Distance) -> PairValue:
    """Give the divrank of a pair: sigma * mean rank + (1 - sigma) * distance (PREF Def. 10)."""

    def value(one: Candidate, other: Candidate) -> float:
        mean = (one.rank + other.rank) / 2
        return sigma * mean + (1 - sigma) * measure(distance, one.event, other.event)

    return value


def grow(candidates: Sequence[Candidate], k: int, pair: PairValue, rule: Rule) -> list[int]:
    """Choose k: the pair of largest `pair`, then by `rule`; of ties always the most recent."""
    if k == 1 or len(candidates) <= 1:
        return ranked(candidates)[:k]
    first, second = _best_pair(candidates, pair)
    chosen = [first, second]
    links = {
        i: rule.combine(rule.link(each, candidates[first]), rule.link(each, candidates[second]))
        for i, each in enumerate(candidates)
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
    candidate: Candidate, links: float, rule: Rule, size: int
) -> tuple[float, tuple[int, str]]:
    return (-rounded(rule.value(candidate, links, size)), newest_first(candidate.event))


def _best_pair(candidates: Sequence[Candidate], pair: PairValue) -> tuple[int, int]:
    """Give the pair of largest value, the older first.

    Of ties: the larger sum of publication times, the newer member, the smaller ids.
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

    O(n²) distances for the pair, O(n) more for each next one.
    """
    rule = Rule(
        link=lambda one, other: measure(part.distance, one.event, other.event),
        combine=min,
        value=lambda each, nearest, _: part.sigma * each.rank + (1 - part.sigma) * nearest,
    )
    return grow(candidates, k, pair_rank(part.sigma, part.distance), rule)


def maxmin(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Add the one whose smallest pair weight to the chosen is largest."""
    pair = pair_rank(part.sigma, part.distance)
    return grow(candidates, k, pair, Rule(pair, min, lambda _, least, __: least))


def maxsum(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Add the one whose pair weights to the chosen have the largest sum."""
    pair = pair_rank(part.sigma, part.distance)
    return grow(candidates, k, pair, Rule(pair, operator.add, lambda _, total, __: total))


def maxavg(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Add the one whose pair weights to the chosen have the largest mean."""
    pair = pair_rank(part.sigma, part.distance)
    rule = Rule(pair, operator.add, lambda _, total, size: total / size)
    return grow(candidates, k, pair, rule)
