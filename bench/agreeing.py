"""Agreement of LSH with the greedy algorithm, at the settings of TKS 7.3.2.

TKS Fig. 7.5 gives probabilities over window sizes for three thresholds, and the text sums up: the
same diverse set "in average ... around 0.7". From the text: the thresholds, the windows of its
Table 7.9, the error of 0.07 that it settles on (7.4.2.1), a view for each of the six main
categories of its Table 7.1, all publications matching, relevance by normal preferences over 32
tuples. Not in the text, and so our choice: the products, k = 10, alpha = 1 - s, and the probability
as the share of the greedy choice.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from statistics import fmean
from typing import Any, NamedTuple

from variants import Catalogue

from tidings.diversify import Candidate
from tidings.diversify.covers import MaxDivRel
from tidings.diversify.distance import Jaccard
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.protocol import best_first

THRESHOLDS = (0.35, 0.55, 0.85)
WINDOWS = (10, 20, 50, 100, 500, 1000)
ERROR, K, TUPLES = 0.07, 10, 32
VIEWS = {
    "Automotive": (322, 48),
    "Books": (160, 42),
    "Electronics": (142, 54),
    "Movies": (197, 66),
    "Phones": (40, 57),
    "Home": (668, 67),
}
"""The numbers of sub-categories and attributes of each main category (TKS Table 7.1)."""
Draw = Callable[[int, int, int], list[Candidate]]


class Agreement(NamedTuple):
    """Two probabilities over all events of the reference choices.

    `diversity`: the event is chosen as well. `rank`: it is even at the same position.
    """

    diversity: float
    rank: float


def by_wishes(view: int, w: int, seed: int) -> list[Candidate]:
    """Return a window of one view, ranked by preferences: similar events have similar ranks."""
    shop = _shop(view, seed)
    return shop.wanted(w, shop.wishes(TUPLES))


def by_chance(view: int, w: int, seed: int) -> list[Candidate]:
    """Return a window of one view, ranked at random."""
    return _shop(view, seed).candidates(w)


def _shop(view: int, seed: int) -> Catalogue:
    categories, attributes = list(VIEWS.values())[view]
    return Catalogue(attributes, seed, categories, mains=1)


RANKED: dict[str, Draw] = {"preferences": by_wishes, "chance": by_chance}


@cache
def drawn(ranked: str, w: int) -> list[list[Candidate]]:
    """Return a window of every view."""
    return [RANKED[ranked](view, w, 1) for view in range(len(VIEWS))]


def agreed(ranked: str, threshold: float, w: int) -> dict[str, Any]:
    """Return both probabilities over a window of every view."""
    lsh = MaxDivRelLsh(error=ERROR, threshold=threshold)
    probabilities = compared(
        drawn(ranked, w), lsh, MaxDivRel(alpha=1 - threshold, distance=Jaccard())
    )
    return {"ranked": ranked, "s": threshold, "shape": lsh.shape, "w": w, **probabilities._asdict()}


def tuned(ranked: str, threshold: float, w: int) -> float:
    """Return the diversity probability against greedy with the largest alpha that yields k."""
    lsh = MaxDivRelLsh(error=ERROR, threshold=threshold)
    return compared(drawn(ranked, w), lsh, MaxDivRel(distance=Jaccard())).diversity


def agreement(choices: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> Agreement:
    """Compare pairs of a choice and its reference, both in order of rank.

    >>> agreement([("abc", "acd"), ("xy", "xy")])
    Agreement(diversity=0.8, rank=0.6)
    """
    shared = in_position = total = 0
    for chosen, reference in choices:
        shared += len(set(chosen) & set(reference))
        in_position += sum(a == b for a, b in zip(chosen, reference, strict=False))
        total += len(reference)
    return Agreement(shared / total, in_position / total) if total else Agreement(1.0, 1.0)


def compared(windows: list[list[Candidate]], lsh: MaxDivRelLsh, judge: MaxDivRel) -> Agreement:
    """Compare choices; the greedy choice is ordered by relevance, as in TKS."""
    pairs = []
    for window in windows:
        judged = sorted(judge.choose(window, K), key=lambda i: best_first(window[i]))
        pairs.append((lsh.choose(window, K), judged))
    return agreement(pairs)


def mean(rows: list[dict[str, Any]], ranked: str, threshold: float) -> float:
    """Return the mean diversity probability over the windows."""
    of = [row for row in rows if row["ranked"] == ranked and row["s"] == threshold]
    return fmean(row["diversity"] for row in of)
