"""A policy as numbers for the kernels."""

from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.feed.columnar.kernels import decay as fresh
from tidings.feed.columnar.kernels import layout as at
from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.window.length import Length

WINDOWS: Final = {
    "sliding": at.SLIDING,
    "continuous": at.CONTINUOUS,
    "periodic": at.PERIODIC,
    "jumping": at.JUMPING,
    "history": at.HISTORY,
}
DECAYS: Final = {
    "none": (fresh.NONE, None),
    "exponential": (fresh.EXPONENTIAL, "rate"),
    "polynomial": (fresh.POLYNOMIAL, "exponent"),
    "logarithmic": (fresh.LOGARITHMIC, None),
}
LONGEST: Final = 1 << 28
"""More entries than one subscriber can have."""


def numbers(policy: Policy) -> Int64s:
    """Give what the kernels need of k and the window."""
    part: Any = policy.window
    kind = WINDOWS[part.name]
    length = part.expires if kind == at.CONTINUOUS else part.length
    step = part.step if kind == at.JUMPING else length
    count = getattr(part, "count", "matching")
    found = np.zeros(at.PLAN_WIDTH, np.int64)
    found[at.K] = policy.k
    found[at.WINDOW] = at.BEST if length is None else kind
    found[at.AXIS], found[at.LENGTH] = _axis(length, count)
    found[at.STEP_AXIS], found[at.STEP] = _axis(step, count)
    found[at.ORIGIN] = parse_time_us(part.origin) if kind == at.PERIODIC else 0
    found[at.LEAVE] = getattr(part, "delivered", "keep") == "leave"
    found[at.WAIT] = part.wait
    found[at.STRICT] = getattr(part, "strict", False)
    found[at.CAPPED] = found[at.WINDOW] in (at.BEST, at.PERIODIC)
    found[at.PRUNE] = has_ring(found) and not found[at.LEAVE]
    return found


def _axis(length: Length | None, count: str) -> tuple[int, int]:
    if length is None:
        return at.EVER, 0
    if length.us is not None:
        return at.TIME, length.us
    return (at.PUBLISHED if count == "published" else at.MATCHING), length.count or 0


def has_ring(plan: Int64s) -> bool:
    """Tell whether the window has to know all of its matches, not only the best."""
    return plan[at.WINDOW] in (at.SLIDING, at.CONTINUOUS, at.JUMPING)


def decay(policy: Policy) -> Float64s:
    """Give what the kernels need of the decay."""
    kind, parameter = DECAYS[policy.decay.name]
    value = getattr(policy.decay, parameter) if parameter else 0.0
    return np.array([kind, value, getattr(policy.decay, "landmark", 0.0)], np.float64)


def scratch(members: int) -> Float64s:
    """Return room for partial sums and for the ranks of so many members of a history."""
    return np.zeros(PARTS + members + 1, np.float64)


def room(plan: Int64s) -> Int64s:
    """Give the classes of slabs for lists and rings, each a quarter larger than the one before."""
    most = longest(plan) if has_ring(plan) else int(plan[at.K])
    lists, rings = ladder(most + most // 7 + 2), ladder(most + 1)
    found = np.full((max(len(lists), len(rings)), 4), -1, np.int64)
    found[: len(lists), at.LIST_CAP] = lists
    found[: len(rings), at.RING_CAP] = rings
    return found


def longest(plan: Int64s) -> int:
    """Give how many matches a window can hold at most, at any time."""
    if plan[at.WINDOW] == at.HISTORY:
        return int(plan[at.K]) + 1
    if not has_ring(plan) or plan[at.AXIS] != at.MATCHING:
        return LONGEST
    return int(plan[at.LENGTH]) + (int(plan[at.STEP]) if plan[at.WINDOW] == at.JUMPING else 0)


def waits_for(plan: Int64s) -> int:
    """Give the axis of the ends that a window waits for, of which matches alone are no sign."""
    return int(plan[at.STEP_AXIS]) if plan[at.WINDOW] in (at.PERIODIC, at.JUMPING) else at.EVER


def ladder(most: int, first: int = 2) -> list[int]:
    """Give sizes from the first to the most, each a quarter larger than the one before."""
    sizes = [min(first, most)]
    while sizes[-1] < most:
        sizes.append(min(most, sizes[-1] + max(1, sizes[-1] // 4)))
    return sizes
