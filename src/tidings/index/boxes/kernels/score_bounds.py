"""Bounds on scores from coded weights: which boxes can no longer enter the top k.

A score is rounded(sum or max of weight * share over the predicates that hold). No box is lost:

- Shares are at most `peak`, so a score is at most peak times the certain score, where all shares
  are 1, up to a relative error below SLACK (d <= 2**20 additions of float64) and ROUNDING / 2.
- In codes, the predicates that hold add up to `codes` with certain <= (codes + error) / scale. To
  reach the k-th best, peak * certain * (1 + SLACK) + ROUNDING >= worst must hold: `least_codes`
  solves this for codes and rounds down.
- Float64 additions are monotone, so the score for any event is at most the rounded total of all
  weights, down to the last bit: where that equals `worst`, only a smaller id can enter.
"""

from typing import Final

import numpy as np

from tidings.compiled.jit import inlined, inner
from tidings.index.boxes.kernels.topk_heap import TopkHeaps

MAX_CODES: Final = 65535
TINY: Final = 1e-300
SLACK: Final = 1e-9
ROUNDING: Final = 1e-12


@inlined
def least_codes(worst: float, peak: float, scale: float, error: float) -> int:
    """Return the codes needed to reach `worst`; 1 excludes only boxes that do not match."""
    certain = (worst - ROUNDING) * (1 - SLACK)
    if certain <= 0 or peak <= 0:
        return 1
    certain = certain if peak == 1.0 else certain / peak
    # Every rounding goes towards fewer codes: a box too many is scored needlessly, one too few
    # is lost.
    codes = certain * scale - error - SLACK * (1 + error)
    return int(min(max(1.0, np.ceil(codes * (1 - SLACK))), float(MAX_CODES)))


@inner
def most_score(certain: float, peak: float) -> float:
    """Return the greatest score possible, given the score `certain` where all shares are 1."""
    return certain if peak == 1.0 else certain * peak * (1 + SLACK) + ROUNDING


@inlined
def is_full(best: TopkHeaps, row: int) -> bool:
    """Return whether an event has k answers, which only better ones replace."""
    return best.sizes[row] == best.scores.shape[1]


@inlined
def is_over(bound: float, least_id: int, peak: float, best: TopkHeaps, row: int) -> bool:
    """Return whether no score up to `bound`, with an id from `least_id` on, can enter."""
    if not is_full(best, row):
        return False
    most, worst = most_score(bound, peak), best.scores[row, 0]
    return most < worst or (most == worst and least_id > best.ids[row, 0])
