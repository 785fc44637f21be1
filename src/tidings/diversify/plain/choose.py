"""Choices and set ranks by definition, for feeds that judge the compiled windows.

Registered diversifiers are replaced by their plain versions, so that nothing here runs a kernel.
User-defined diversifiers have only their own `choose`.
"""

import math
from collections.abc import Sequence
from typing import Final

from tidings.diversify.distance import set_divrank
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.memory_limits import check_dense, check_keys, is_dense
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate, Diversifier
from tidings.diversify.registry import DIVERSIFIERS
from tidings.model.values import rounded

_REGISTERED: Final = frozenset(DIVERSIFIERS.values())


def plain_choice(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Return the indexes of at most k candidates, in order of choice.

    A subclass of a registered diversifier counts as user-defined: it may have changed `choose`.
    """
    if type(part) not in _REGISTERED:
        return part.choose(candidates, k)
    if is_dense(part):
        check_dense(part.name, len(candidates))
    if isinstance(part, MaxDivRelLsh):
        check_keys(len(candidates), part.shape[0], part.most_keys)
    return PLAIN[part.name](part, candidates, k)


def plain_divrank(part: Diversifier, candidates: Sequence[Candidate]) -> float:
    """Return sigma * mean rank + (1 - sigma) * div(L) of a set (PREF Def. 10); 0 if it is empty.

    With sigma = 1, distances are not taken: a user-defined one may be slow, or fail.
    """
    if candidates and part.sigma == 1:
        return rounded(math.fsum(candidate.rank for candidate in candidates) / len(candidates))
    return set_divrank(candidates, part.sigma, part.distance)
