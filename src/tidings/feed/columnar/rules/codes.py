"""The rules of a policy as numbers for the kernels, and the slab sizes that their lists need."""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.diversify.hashed_distances import has_kernel
from tidings.feed.columnar.kernels.layout import Slabs
from tidings.feed.columnar.policy_codes import LONGEST, decay_codes
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import ChainCodes, RuleCodes
from tidings.feed.columnar.slab_pools import new_slabs, size_classes
from tidings.model.calendar import DailySpans, EqualPeriods, LocalPeriods
from tidings.policy import Policy
from tidings.rules.different import Different
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota

KINDS: Final = {"different": layout.DIFFERENT, "quota": layout.QUOTA, "quiet": layout.QUIET}
LocalSpans = LocalPeriods | DailySpans
_SMALLEST_LIST: Final = 2
_SMALLEST_RING: Final = 4
_RANK_RINGS: Final = (4, 8, 16, 24, 32, 40, 48, 64, 80, 104, 128, 160)
"""Even sizes, so that a ring of two ranks in a byte ends with a whole byte."""
FIRST_CELL: Final = 1
"""Where lists of held events begin; cell 0 has what a window has just chosen."""


class RuleSet(NamedTuple):
    """The rules of a policy as numbers, and the parts of them that only Python uses."""

    codes: RuleCodes
    chain: ChainCodes
    calendars: Sequence[LocalSpans | None]  # by place, where spans follow a calendar
    compared: Different | None  # the rule whose distance kernels measure


def rule_set(policy: Policy, owed: bool) -> RuleSet:
    """Return the rules of a policy; `owed` adds a line for events that old rules let pass."""
    parts: Sequence[Any] = policy.rules
    compared = next((p for p in parts if isinstance(p, Different) and has_kernel(p.distance)), None)
    measured = [isinstance(p, Different) and not _same_distance(p, compared) for p in parts]
    calendars = [*map(_calendar, parts)]
    lengths = [c.length_us if isinstance(c, EqualPeriods) else 0 for c in calendars]
    codes = RuleCodes(
        kind=_column([KINDS[part.name] for part in parts], owed, layout.OWED),
        limit=_column([getattr(part, "n", 0) for part in parts], owed),
        first=_column([getattr(part, "pick", "") == "first" for part in parts], owed, dtype="i1"),
        urgent=_column([_urgent(part) for part in parts], owed, dtype="f8"),
        length=_column(lengths, owed),
        least=_column([getattr(part, "min", 0.0) for part in parts], owed, dtype="f8"),
        within=_column([_within_us(part) for part in parts], owed),
        measured=_column(measured, owed, dtype="i1"),
    )
    best_only = policy.diversify.name == "none"
    remembers = any(isinstance(part, Quota) for part in parts)
    ringed = sum(isinstance(part, Different | Quota) for part in parts)
    holding = sum(isinstance(part, Different) for part in parts)
    chain = ChainCodes(
        policy.k, best_only, any(measured), remembers, ringed, holding, decay_codes(policy)
    )
    local = [None if isinstance(calendar, EqualPeriods) else calendar for calendar in calendars]
    return RuleSet(codes, chain, [*local, *([None] if owed else [])], compared)


def _column(values: Sequence[Any], owed: bool, last: int = 0, dtype: str = "i8") -> Any:
    return np.array([*values, *([last] if owed else [])], dtype)


def _calendar(part: Any) -> LocalSpans | EqualPeriods | None:
    if isinstance(part, Quota):
        calendar = part.calendar
        assert isinstance(calendar, LocalPeriods | EqualPeriods)
        return calendar
    return part.spans if isinstance(part, Quiet) else None


def _urgent(part: Any) -> float:
    urgent = getattr(part, "urgent", None)
    return math.inf if urgent is None else float(urgent)


def _within_us(part: Any) -> int:
    return int(part.within.us) if isinstance(part, Different) else 0


def _same_distance(part: Different, compared: Different | None) -> bool:
    return compared is not None and part.distance == compared.distance


def held_slabs() -> Slabs:
    """Return an empty pool for lists of held events; its first cell is taken."""
    slabs = new_slabs(size_classes(LONGEST, _SMALLEST_LIST))
    slabs.used[0] = FIRST_CELL
    return slabs


def rank_slabs() -> Slabs:
    """Return an empty pool for rings of ranks."""
    return new_slabs([*_RANK_RINGS, layout.REMEMBERED])


def got_slabs() -> Slabs:
    """Return an empty pool for rings of received events."""
    return new_slabs(size_classes(LONGEST, _SMALLEST_RING))
