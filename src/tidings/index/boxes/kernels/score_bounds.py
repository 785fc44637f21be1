"""What weights in codes say about scores: what can no longer come among the k best.

A score is rounded(sum or max of weight * share over the predicates that hold). Nothing is lost:

- Shares are at most `peak`, so a score is at most peak times the certain one, where all shares are
  1, up to a relative error below SLACK (d <= 2**20 additions of float64) and ROUNDING / 2.
- In codes, what holds comes to `codes` with certain <= (codes + error) / scale. To reach the k-th
  best, peak * certain * (1 + SLACK) + ROUNDING >= worst must hold: `least_codes` solves it for
  codes, and rounds down.
- Additions of float64 are monotone, so the score of any event is at most the rounded total of all
  weights, also in the last bit: where that is `worst` too, only a smaller id can come in.
"""

from typing import Final

import numpy as np

from tidings.compiled.jit import inlined, inner
from tidings.index.boxes.kernels.topk_heap import Found

MOST: Final = 65535
TINY: Final = 1e-300
SLACK: Final = 1e-9
ROUNDING: Final = 1e-12


@inlined
def least_codes(worst: float, peak: float, scale: float, error: float) -> int:
    """Give what codes must come to, so that `worst` may be reached; 1 bars only the unmatched."""
    certain = (worst - ROUNDING) * (1 - SLACK)
    if certain <= 0 or peak <= 0:
        return 1
    certain = certain if peak == 1.0 else certain / peak
    codes = certain * scale - error - SLACK * (1 + error)
    return int(min(max(1.0, np.ceil(codes * (1 - SLACK))), float(MOST)))


@inner
def most_score(certain: float, peak: float) -> float:
    """Give the most that a score can be, if it is `certain` where all shares are 1."""
    return certain if peak == 1.0 else certain * peak * (1 + SLACK) + ROUNDING


@inlined
def is_full(found: Found, row: int) -> bool:
    """Say whether an event has its k answers, which better ones only replace."""
    return found[2][row] == found[0].shape[1]


@inlined
def is_over(bound: float, least_id: int, peak: float, found: Found, row: int) -> bool:
    """Say whether no score up to `bound`, with an id from `least_id` on, comes among the best."""
    if not is_full(found, row):
        return False
    most, worst = most_score(bound, peak), found[0][row, 0]
    return most < worst or (most == worst and least_id > found[1][row, 0])
