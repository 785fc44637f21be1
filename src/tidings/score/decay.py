"""Forward decay (TKS 4.2.2): u(t_i, t) = g(t_i - L) / g(t - L) times the score.

Scores are compared in the log domain, by ln(score) + ln g(t_i - L): this does not depend on t and
does not overflow, however long the stream.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tidings.errors import InvalidPolicy, InvalidValue, shown
from tidings.model import validate
from tidings.model.values import SECOND_US, format_duration, parse_duration_us, parse_time_us


@dataclass(frozen=True)
class NoDecay:
    """No decay: scores stay as they are."""

    name: ClassVar[str] = "none"

    def key(self, score: float, published_us: int) -> float:
        """Return the score itself."""
        return score

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        """Return the score."""
        return score


@dataclass(frozen=True)
class Exponential:
    """g(x) = exp(rate * x), x in seconds; or by `half_life`, the time in which a score halves.

    >>> Exponential(half_life="6h").fresh(1.0, 0, 12 * 3600 * 1_000_000)
    0.25
    """

    rate: float | None = None
    landmark: float = 0
    half_life: str | None = None
    per_second: float = field(init=False, repr=False, compare=False)
    """The rate, given or derived."""
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.half_life is None):
            raise InvalidPolicy(
                f"give either rate or half_life, not {'neither' if self.rate is None else 'both'}"
            )
        rate = self.rate
        if rate is None:
            half_life_us = _read_half_life(self)
            rate = math.log(2) * SECOND_US / half_life_us
        validate.positive("rate", rate)
        object.__setattr__(self, "per_second", rate)
        _read_landmark(self)

    def log_g(self, age_s: float) -> float:
        """Return ln g."""
        return self.per_second * age_s

    def key(self, score: float, published_us: int) -> float:
        """Return ln(score) + rate * t_i."""
        return _log_key(self, score, published_us)

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        """Return score * exp(-rate * age)."""
        age_s = max(0, now_us - published_us) / SECOND_US
        return score * math.exp(-self.per_second * age_s)


@dataclass(frozen=True)
class Polynomial:
    """g(x) = x ** exponent, x in seconds since the landmark; 0 before it."""

    exponent: float = 2.0
    landmark: float = 0
    name: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        validate.positive("exponent", self.exponent)
        _read_landmark(self)

    def log_g(self, age_s: float) -> float:
        """Return ln g."""
        return self.exponent * _log(age_s)

    def key(self, score: float, published_us: int) -> float:
        """Return ln(score) + exponent * ln(t_i - L)."""
        return _log_key(self, score, published_us)

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        """Return score * ((t_i - L) / (t - L)) ** exponent."""
        share = _ratio(_age_s(self, published_us), _age_s(self, now_us))
        return score * math.pow(share, self.exponent)


@dataclass(frozen=True)
class Logarithmic:
    """g(x) = ln(1 + x), x in seconds since the landmark; 0 before it."""

    landmark: float = 0
    name: ClassVar[str] = "logarithmic"

    def __post_init__(self) -> None:
        _read_landmark(self)

    def log_g(self, age_s: float) -> float:
        """Return ln g."""
        return _log(math.log1p(max(0.0, age_s)))

    def key(self, score: float, published_us: int) -> float:
        """Return ln(score) + ln ln(1 + t_i - L)."""
        return _log_key(self, score, published_us)

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        """Return score * ln(1 + t_i - L) / ln(1 + t - L)."""
        then, now = (math.log1p(max(0.0, _age_s(self, us))) for us in (published_us, now_us))
        return score * _ratio(then, now)


class _ForwardDecay(Protocol):
    @property
    def landmark(self) -> float: ...
    def log_g(self, age_s: float) -> float: ...


def _read_half_life(decay: Exponential) -> int:
    """Return the half-life in microseconds; it is stored as text, as it was written."""
    try:
        us = parse_duration_us(decay.half_life)
    except InvalidValue as error:
        raise InvalidPolicy(f"half_life: {error}") from None
    if us <= 0:
        raise InvalidPolicy(f"half_life is longer than 0, not {shown(decay.half_life)}")
    text = decay.half_life if isinstance(decay.half_life, str) else format_duration(us)
    object.__setattr__(decay, "half_life", validate.plain_text(text))
    return us


def _read_landmark(decay: _ForwardDecay) -> None:
    try:
        landmark = parse_time_us(decay.landmark) / SECOND_US
    except InvalidValue as error:
        raise InvalidPolicy(f"landmark: {error}") from None
    object.__setattr__(decay, "landmark", landmark)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _log_key(decay: _ForwardDecay, score: float, published_us: int) -> float:
    if score <= 0:
        return -math.inf
    return _log(score) + decay.log_g(_age_s(decay, published_us))


def _age_s(decay: _ForwardDecay, us: int) -> float:
    return us / SECOND_US - decay.landmark


def _ratio(then: float, now: float) -> float:
    """Return then / now within [0, 1]; 1 where `now` is not after the landmark."""
    return min(1.0, max(0.0, then) / now) if now > 0 else 1.0
