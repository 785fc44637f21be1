"""A policy as numbers for the kernels, and the slab sizes that its windows need."""

from typing import Any, Final

from tidings.feed.columnar.kernels import layout, timing
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CONTINUOUS,
    EVER,
    HISTORY,
    JUMPING,
    MATCHING,
    PERIODIC,
    PUBLISHED,
    SLIDING,
    TIME,
    DecayCodes,
    DiversityCodes,
    PolicyCodes,
    SearchCodes,
    Slabs,
)
from tidings.feed.columnar.slab_pools import new_slabs, size_classes
from tidings.model.calendar import LONGEST_US
from tidings.model.values import parse_time_us, rounded
from tidings.policy import Policy
from tidings.window.length import Length

WINDOW_CODES: Final = {
    "sliding": SLIDING,
    "continuous": CONTINUOUS,
    "periodic": PERIODIC,
    "jumping": JUMPING,
    "history": HISTORY,
}
DECAY_CODES: Final = {
    "none": (timing.NONE, None),
    "exponential": (timing.EXPONENTIAL, "per_second"),
    "polynomial": (timing.POLYNOMIAL, "exponent"),
    "logarithmic": (timing.LOGARITHMIC, None),
}
CHOICE_RULES: Final = {
    "divrank": layout.NEAREST,
    "maxmin": layout.LEAST,
    "maxsum": layout.SUM,
    "maxavg": layout.MEAN,
    "disc": layout.COUNTED,
    "maxdivrel": layout.RELEVANT,
    "maxdivrel-lsh": layout.VOTES,
    "optimal": layout.OPTIMAL,
}
LONGEST: Final = 1 << 28
"""More matches than one window can hold."""
_CALENDAR: Final = Length(us=LONGEST_US)
"""Stands for the length of calendar periods, whose ends are looked up."""
_ROW_WIDTH: Final = 64
"""The largest k for which each row has k kept choices; above it they lie beside the slabs."""


def policy_codes(policy: Policy) -> PolicyCodes:
    """Return k and the window of a policy as numbers."""
    part: Any = policy.window
    window = WINDOW_CODES[part.name]
    length = part.expires if window == CONTINUOUS else part.length or _CALENDAR
    step = part.step if window == JUMPING else length
    count = getattr(part, "count", "matching")
    axis, positions = _axis(length, count)
    step_axis, step_positions = _axis(step, count)
    leave = getattr(part, "delivered", "keep") == "leave"
    return PolicyCodes(
        k=policy.k,
        window=BEST if length is None else window,
        axis=axis,
        length=positions,
        step_axis=step_axis,
        step=step_positions,
        origin=parse_time_us(part.origin) if window == PERIODIC else 0,
        leave=leave,
        wait=bool(part.wait),
        strict=bool(getattr(part, "strict", False)),
        prune=_has_ring(window, length) and not leave,
        capped=length is None or window == PERIODIC,
    )


def _axis(length: Length | None, count: str) -> tuple[int, int]:
    if length is None:
        return EVER, 0
    if length.us is not None:
        return TIME, length.us
    return (PUBLISHED if count == "published" else MATCHING), length.count or 0


def _has_ring(window: int, length: Length | None) -> bool:
    return length is not None and window in (SLIDING, CONTINUOUS, JUMPING)


def has_ring(codes: PolicyCodes) -> bool:
    """Return whether the window has to know all of its matches, not only the best."""
    return codes.window in (SLIDING, CONTINUOUS, JUMPING)


def decay_codes(policy: Policy) -> DecayCodes:
    """Return the decay of a policy as numbers."""
    kind, parameter = DECAY_CODES[policy.decay.name]
    value = getattr(policy.decay, parameter) if parameter else 0.0
    return DecayCodes(kind, float(value), float(getattr(policy.decay, "landmark", 0.0)))


def diversity_codes(policy: Policy, codes: PolicyCodes) -> DiversityCodes:
    """Return the diversifier of a policy as numbers.

    A choice is kept and updated where it is made after every match, and where ranks do not change:
    greedily without decay, or by votes, which depend on the order of ranks only.
    """
    part: Any = policy.diversify
    rule = CHOICE_RULES[part.name]
    slides = codes.window in (SLIDING, CONTINUOUS, BEST) and not codes.leave
    greedy = rule <= layout.MEAN and policy.decay.name == "none" and policy.k > 1
    keeps = slides and (greedy or rule == layout.VOTES)
    width = policy.k if policy.k <= _ROW_WIDTH else -1
    return DiversityCodes(rule, float(part.sigma), width if keeps else 0)


def search_codes(policy: Policy) -> SearchCodes | None:
    """Return the diversifier of a policy as numbers if its rule of choice is not greedy."""
    rule, alpha = CHOICE_RULES[policy.diversify.name], getattr(policy.diversify, "alpha", None)
    radius = -1.0 if alpha is None else float(rounded(alpha))
    return None if rule <= layout.MEAN else SearchCodes(rule, radius)


def longest(codes: PolicyCodes) -> int:
    """Return how many matches a window can hold at most."""
    if codes.window == HISTORY:
        return codes.k + 1
    if not has_ring(codes) or codes.axis != MATCHING:
        return LONGEST
    return codes.length + (codes.step if codes.window == JUMPING else 0)


def step_axis(codes: PolicyCodes) -> int:
    """Return the axis of the ends that a window waits for; EVER if it waits for none."""
    return codes.step_axis if codes.window in (PERIODIC, JUMPING) else EVER


def list_slabs(codes: PolicyCodes) -> Slabs:
    """Return an empty pool for ranked lists, with a seventh more than they can hold to move in."""
    most = longest(codes) if has_ring(codes) else codes.k
    return new_slabs(size_classes(most + most // 7 + 2))


def ring_slabs(codes: PolicyCodes) -> Slabs:
    """Return an empty pool for rings."""
    most = longest(codes) if has_ring(codes) else codes.k
    return new_slabs(size_classes(most + 1))
