"""Every diversifier by its definition, and the table `PLAIN` that finds it by name."""

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from struct import iter_unpack, unpack
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import UInt64s
from tidings.diversify.distance import attribute_tokens, checked_distance, set_divrank
from tidings.diversify.memory_limits import check_sets
from tidings.diversify.protocol import Candidate, Distance, Diversifier, best_first, ranked
from tidings.model.records import Event, newest_first
from tidings.model.values import Range, rounded

# Greedy growth of a diverse set (PREF Alg. 1): the best pair, then one candidate at a time.


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
        added = min(links, key=lambda i: _pair_order(candidates[i], links[i], rule, len(chosen)))
        chosen.append(added)
        del links[added]
        for i, before in links.items():
            links[i] = rule.combine(before, rule.link(candidates[i], candidates[added]))
    return chosen


def _pair_order(
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


# The set of largest divrank among all sets of k (PREF Def. 10 to 12).


def optimal(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Return the best set, its members by rank.

    Ties (PREF Def. 12) go to the larger sum of publication times, then the newer members, then the
    smaller ids.
    """
    check_sets(len(candidates), k, part.most_sets)
    best = min(
        combinations(range(len(candidates)), min(k, len(candidates))),
        key=lambda indexes: _set_order(part, [candidates[i] for i in indexes]),
    )
    return sorted(best, key=lambda i: best_first(candidates[i]))


def _set_order(
    part: Diversifier, chosen: Sequence[Candidate]
) -> tuple[float, int, list[int], list[str]]:
    times = sorted(-candidate.event.published_us for candidate in chosen)
    ids = sorted(candidate.event.id for candidate in chosen)
    return (-set_divrank(chosen, part.sigma, part.distance), sum(times), times, ids)


# Covers by neighbourhoods (TKS Alg. 4.1): independent and dominating, for disc and maxdivrel.

PairDistances = dict[tuple[int, int], float]
Gain = Callable[[int, set[int], PairDistances], float]


def disc(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by the number of white neighbours (TKS Def. 4.2.8)."""
    return choose_cover(candidates, k, part, lambda _, neighbours, __: len(neighbours))


def maxdivrel(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by r(p)² / sum of r(q) d(p, q) over the white neighbours q (TKS Alg. 4.1)."""

    def gain(i: int, neighbours: set[int], distances: PairDistances) -> float:
        rank = candidates[i].rank
        around = math.fsum(candidates[j].rank * distances[i, j] for j in neighbours)
        return rank * (rank / around) if around else math.inf

    return choose_cover(candidates, k, part, gain)


def choose_cover(candidates: Sequence[Candidate], k: int, part: Any, gain: Gain) -> list[int]:
    """Choose a cover for `part.alpha` (or the alpha that fits k), cut to the k most relevant."""
    if len(candidates) < k:
        return ranked(candidates)
    distances = pair_distances(candidates, part.distance)
    chosen = (
        _fitting_cover(candidates, k, distances, gain)
        if part.alpha is None
        else cover(candidates, part.alpha, distances, gain)
    )
    best = sorted(chosen, key=lambda i: best_first(candidates[i]))[:k]
    return [i for i in chosen if i in best]


def pair_distances(candidates: Sequence[Candidate], distance: Distance) -> PairDistances:
    """Return the distance of every pair, in both directions."""
    distances = {}
    for i, j in combinations(range(len(candidates)), 2):
        value = checked_distance(distance, candidates[i].event, candidates[j].event)
        distances[i, j] = distances[j, i] = value
    return distances


def cover(
    candidates: Sequence[Candidate], alpha: float, distances: PairDistances, gain: Gain
) -> list[int]:
    """Colour all candidates (TKS Alg. 4.1): choose the white one of largest gain, grey its rest.

    `gain` sees the white neighbours; of equal gains the higher rank wins, then the newer.
    """
    white = set(range(len(candidates)))
    near: dict[int, set[int]] = {i: set() for i in white}
    for (i, j), distance in distances.items():
        if rounded(distance) <= rounded(alpha):
            near[i].add(j)
    chosen: list[int] = []
    while white:
        best = min(
            white, key=lambda i: _cover_order(candidates[i], gain(i, near[i] & white, distances))
        )
        chosen.append(best)
        white -= {best, *near[best]}
    return chosen


def _cover_order(candidate: Candidate, gain: float) -> tuple[float, tuple[float, int, str]]:
    return (-rounded(gain), best_first(candidate))


def _fitting_cover(
    candidates: Sequence[Candidate], k: int, distances: PairDistances, gain: Gain
) -> list[int]:
    """Try every alpha at which the cover can change, largest first, until k are chosen."""
    for alpha in sorted({0.0, *map(rounded, distances.values())}, reverse=True):
        chosen = cover(candidates, alpha, distances, gain)
        if len(chosen) >= k:
            break
    return chosen


# MinHash signatures, bands, and the votes of buckets (TKS 5.2).

Bucket = tuple[int, bytes]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


def maxdivrel_lsh(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose the k winners of most votes; of ties the higher rank, then the newer (BLSH)."""
    if len(candidates) < k:
        return ranked(candidates)
    tables, rows = part.shape
    signed = signatures([candidate.event for candidate in candidates], tables * rows, part.seed)
    votes = Counter(
        min(bucket, key=lambda i: best_first(candidates[i]))
        for bucket in buckets(signed, rows).values()
    )
    return sorted(votes, key=lambda i: (-votes[i], best_first(candidates[i])))[:k]


def signatures(events: Sequence[Event], length: int, seed: int = 0) -> UInt64s:
    """Return the MinHash signature of each event: for each salt the smallest token hash."""
    salts = _mix(np.arange(1, length + 1, dtype=np.uint64) * _GOLDEN + np.uint64(seed % 2**64))
    signed = np.full((len(events), length), _EMPTY, dtype=np.uint64)
    for row, event in zip(signed, events, strict=True):
        hashes = np.array(
            [token_hash(*token) for token in attribute_tokens(event)], dtype=np.uint64
        )
        if hashes.size:
            row[:] = _mix(hashes[:, None] ^ salts).min(axis=0)
    return signed


def token_hash(name: str, token: Any) -> int:
    """Return the hash of a token's text; the bounds of a range are printed as floats."""
    family, value = token
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, Range):
        text = " ".join([*map(repr, value.span), value.mode])
    seed = xxh64(name.encode()) + ("string", "number", "boolean", "time").index(family)
    return xxh64(text.encode(), seed % 2**64)


def _mix(x: UInt64s) -> UInt64s:
    """Return 64 bits that depend on all of x, so that each salt gives another order of tokens."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def buckets(signed: UInt64s, rows: int) -> dict[Bucket, list[int]]:
    """Group events whose signatures agree on a band of `rows` (TKS Table 5.9).

    The key of a bucket is its table and the band.
    """
    members: dict[Bucket, list[int]] = defaultdict(list)
    for i, signature in enumerate(signed):
        for table, start in enumerate(range(0, signed.shape[1], rows)):
            members[table, signature[start : start + rows].tobytes()].append(i)
    return dict(members)


_ALL: Final = 2**64 - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxh64(text: bytes, seed: int = 0) -> int:
    """Return the 64-bit hash of bytes.

    >>> f"{xxh64(b''):016x} {xxh64(b'abc'):016x}"
    'ef46db3751d8e999 44bc2cf5ad770999'
    """
    body = len(text) // 32 * 32
    acc = _body(text[:body], seed) if body else seed + _P5
    return _end(_tail(text[body:], (acc + len(text)) & _ALL))


def _left(x: int, bits: int) -> int:
    return (x << bits | (x & _ALL) >> (64 - bits)) & _ALL


def _round(acc: int, lane: int) -> int:
    return _left((acc + lane * _P2) & _ALL, 31) * _P1 & _ALL


def _body(text: bytes, seed: int) -> int:
    accs = [acc & _ALL for acc in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    for lanes in iter_unpack("<4Q", text):
        accs = [_round(acc, lane) for acc, lane in zip(accs, lanes, strict=True)]
    merged = sum(_left(acc, bits) for acc, bits in zip(accs, (1, 7, 12, 18), strict=True)) & _ALL
    for acc in accs:
        merged = ((merged ^ _round(0, acc)) * _P1 + _P4) & _ALL
    return merged


def _tail(text: bytes, acc: int) -> int:
    eights, rest = text[: len(text) // 8 * 8], text[len(text) // 8 * 8 :]
    for (lane,) in iter_unpack("<Q", eights):
        acc = (_left(acc ^ _round(0, lane), 27) * _P1 + _P4) & _ALL
    if len(rest) >= 4:
        acc = (_left(acc ^ unpack("<I", rest[:4])[0] * _P1 & _ALL, 23) * _P2 + _P3) & _ALL
        rest = rest[4:]
    for byte in rest:
        acc = _left(acc ^ byte * _P5 & _ALL, 11) * _P1 & _ALL
    return acc


def _end(acc: int) -> int:
    acc = (acc ^ acc >> 33) * _P2 & _ALL
    acc = (acc ^ acc >> 29) * _P3 & _ALL
    return acc ^ acc >> 32


# Registry of the plain diversifiers, by the names of the compiled ones.

PlainChoice = Callable[[Any, Sequence[Candidate], int], list[int]]
"""Takes the part of the policy, the candidates and k; returns the indexes in order of choice."""

PLAIN: Final[dict[str, PlainChoice]] = {
    "none": lambda _, candidates, k: ranked(candidates)[:k],
    "divrank": divrank,
    "optimal": optimal,
    "maxmin": maxmin,
    "maxsum": maxsum,
    "maxavg": maxavg,
    "disc": disc,
    "maxdivrel": maxdivrel,
    "maxdivrel-lsh": maxdivrel_lsh,
}
