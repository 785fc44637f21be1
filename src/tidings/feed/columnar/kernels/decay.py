"""Forward decay over arrays of windows: the keys and fresh ranks of `tidings.score.decay`.

    key(score, t)        = ln(score) + ln g(t - L)          sorts fresh scores at every time
    fresh(score, t, now) = score * g(t - L) / g(now - L)

with the landmark L, in seconds, and g(x) = exp(rate * x), x ** exponent or ln(1 + x). The kernels
make the same calls of the C library in the same order, so every value is the same to the last bit.
"""

import math
from typing import Final

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, kernel
from tidings.feed.columnar.kernels.layout import DecayCodes

NONE, EXPONENTIAL, POLYNOMIAL, LOGARITHMIC = range(4)
SECOND_US: Final = 1_000_000


@inner
def log_or_least(x: float) -> float:
    """Return ln x, or minus infinity where x is not positive."""
    return math.log(x) if x > 0 else -math.inf


@inner
def order_key(decay: DecayCodes, score: float, us: int) -> float:
    """Return the key of a score; without decay, the score itself."""
    if decay.kind == NONE:
        return score
    if score <= 0:
        return -math.inf
    age_s = us / SECOND_US - decay.landmark
    # Exponential decay is a line in the log domain: no score overflows, however long the stream.
    if decay.kind == EXPONENTIAL:
        return log_or_least(score) + decay.parameter * age_s
    if decay.kind == POLYNOMIAL:
        return log_or_least(score) + decay.parameter * log_or_least(age_s)
    return log_or_least(score) + log_or_least(math.log1p(max(0.0, age_s)))


@inner
def share_left(then: float, now: float) -> float:
    """Return then / now within [0, 1]; nothing has faded where `now` is not after the landmark."""
    return min(1.0, max(0.0, then) / now) if now > 0 else 1.0


@inner
def fresh_rank(decay: DecayCodes, score: float, us: int, now_us: int) -> float:
    """Return the fresh score at `now_us`."""
    if decay.kind == NONE:
        return score
    if decay.kind == EXPONENTIAL:
        # The landmark cancels out. An event of the future has not faded.
        age_s = max(0, now_us - us) / SECOND_US
        return score * math.exp(-decay.parameter * age_s)
    then, now = us / SECOND_US - decay.landmark, now_us / SECOND_US - decay.landmark
    if decay.kind == POLYNOMIAL:
        return score * math.pow(share_left(then, now), decay.parameter)
    then, now = math.log1p(max(0.0, then)), math.log1p(max(0.0, now))
    return score * share_left(then, now)


@kernel
def order_keys(decay: DecayCodes, scores: Float64s, us: Int64s, keys: Float64s) -> None:
    """Write the keys of many scores."""
    for i in range(len(scores)):
        keys[i] = order_key(decay, scores[i], us[i])
