"""Forward decay over arrays of windows: the keys and fresh ranks that `score.freshness` gives.

The same calls of the C library in the same order, so that every value is the same to the last bit.
A decay is three numbers: its kind, its rate or exponent, and its landmark in seconds.
"""

import math
from typing import Final

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, kernel

NONE, EXPONENTIAL, POLYNOMIAL, LOGARITHMIC = range(4)
KIND, PARAMETER, LANDMARK = range(3)
SECOND_US: Final = 1_000_000


@inner
def log_or_least(x: float) -> float:
    """Give ln x; of 0 and below, minus infinity."""
    return math.log(x) if x > 0 else -math.inf


@inner
def order_key(decay: Float64s, score: float, us: int) -> float:
    """Give what orders fresh scores at every time: the score itself, or ln(score) + ln g(t - L)."""
    kind = decay[KIND]
    if kind == NONE:
        return score
    if score <= 0:
        return -math.inf
    age_s = us / SECOND_US - decay[LANDMARK]
    if kind == EXPONENTIAL:
        return log_or_least(score) + decay[PARAMETER] * age_s
    if kind == POLYNOMIAL:
        return log_or_least(score) + decay[PARAMETER] * log_or_least(age_s)
    return log_or_least(score) + log_or_least(math.log1p(max(0.0, age_s)))


@inner
def share_left(then: float, now: float) -> float:
    """Give then / now within [0, 1]; where `now` is not after the landmark nothing has faded."""
    return min(1.0, max(0.0, then) / now) if now > 0 else 1.0


@inner
def fresh_rank(decay: Float64s, score: float, us: int, now_us: int) -> float:
    """Give the fresh score at `now_us`: the score times g(t_i - L) / g(t - L)."""
    kind = decay[KIND]
    if kind == NONE:
        return score
    if kind == EXPONENTIAL:
        age_s = max(0, now_us - us) / SECOND_US
        return score * math.exp(-decay[PARAMETER] * age_s)
    then, now = us / SECOND_US - decay[LANDMARK], now_us / SECOND_US - decay[LANDMARK]
    if kind == POLYNOMIAL:
        return score * math.pow(share_left(then, now), decay[PARAMETER])
    then, now = math.log1p(max(0.0, then)), math.log1p(max(0.0, now))
    return score * share_left(then, now)


@kernel
def keys_many(decay: Float64s, scores: Float64s, us: Int64s, keys: Float64s) -> None:
    """Write the keys of many scores."""
    for at in range(len(scores)):
        keys[at] = order_key(decay, scores[at], us[at])


@kernel
def fresh_many(
    decay: Float64s, scores: Float64s, us: Int64s, now_us: Int64s, ranks: Float64s
) -> None:
    """Write the fresh ranks of many scores."""
    for at in range(len(scores)):
        ranks[at] = fresh_rank(decay, scores[at], us[at], now_us[at])
