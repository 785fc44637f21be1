"""The set of largest divrank among all sets of k (PREF Def. 10 to 12)."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from tidings.diversify.distance import set_divrank
from tidings.diversify.memory_limits import check_sets
from tidings.diversify.protocol import Candidate, Diversifier, best_first


def optimal(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Return the best set, its members by rank.

    Ties (PREF Def. 12) go to the larger sum of publication times, then the newer members, then the
    smaller ids.
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
    times = sorted(-candidate.event.published_us for candidate in chosen)
    ids = sorted(candidate.event.id for candidate in chosen)
    return (-set_divrank(chosen, part.sigma, part.distance), sum(times), times, ids)
