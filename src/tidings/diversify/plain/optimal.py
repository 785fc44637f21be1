"""The set of largest divrank, by looking at all sets (PREF Def. 10 to 12)."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from tidings.diversify.distance import set_divrank
from tidings.diversify.memory_limits import check_sets
from tidings.diversify.protocol import Candidate, Diversifier, best_first


def optimal(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Give the best set, its members by rank.

    Of ties (PREF Def. 12): the larger sum of publication times, then the newer members, then
    the smaller ids.
    """
    check_sets(len(candidates), k, part.most_sets)
    best = min(
        combinations(range(len(candidates)), min(k, len(candidates))),
        key=lambda indexes: _order(part, [candidates[i] for i in indexes]),
    )
    return sorted(best, key=lambda i: best_first(candidates[i]))


def _order(
    part: Diversifier, chosen: Sequence[Candidate]
) -> tuple[float, int, list[int], list[str]]:
    times = sorted(-each.event.published_us for each in chosen)
    ids = sorted(each.event.id for each in chosen)
    return (-set_divrank(chosen, part.sigma, part.distance), sum(times), times, ids)
