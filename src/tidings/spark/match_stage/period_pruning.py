"""Pruning of matches that cannot win their period before they are sent to the buckets.

A match of a period is dropped if k better ones of the same batch are not older (it is outside the
k-skyband of rank and time). If the state stage finds those k late, it finds the dropped one late as
well, so deliveries stay the same. Only periods of time without diversity allow it: windows by count
must count, a diversifier may prefer lower ranks, and other windows choose before the better ones
come.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Int64s
from tidings.compiled.jit import kernel
from tidings.feed.policy_key import unregistered
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.model.records import Event
from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rank.matches import Matches

_OLDEST: Final = np.iinfo(np.int64).min


class PrunablePeriod(NamedTuple):
    """Parameters of a policy that pruning needs; k = 0 means that it must not be pruned."""

    k: int = 0
    length_us: int = 1
    origin_us: int = 0

    @classmethod
    def of(cls, policy: Policy | None) -> "PrunablePeriod":
        """Return the periods of a policy, with k = 0 for a policy that does not allow pruning."""
        window: Any = policy.window if policy else None
        if policy is None or window.name != "periodic" or policy.diversify.name != "none":
            return cls()
        if window.length is None or window.length.us is None or unregistered(policy):
            return cls()
        return cls(policy.k, window.length.us, parse_time_us(window.origin))


def prune_periods(matcher: OverlayMatcher, events: Sequence[Event], matches: Matches) -> Matches:
    """Return the matches that may win; subscribers with at most k matches cost nothing more."""
    periods = matcher.numbers(PrunablePeriod.of)
    above_k = np.bincount(matches.subscribers, minlength=len(periods)) > periods[:, 0]
    rows = np.flatnonzero((above_k & (periods[:, 0] > 0))[matches.subscribers])
    if not len(rows):
        return matches
    us, recency = _recency(events)
    event = matches.events[rows]
    owner, rank = matches.subscribers[rows], matches.ranks[rows]
    k, length, origin = periods[owner].T
    period = (us[event] - origin) // length
    order = np.lexsort((recency[event], -rank, period, owner))
    edges = np.diff(owner[order], prepend=-1) != 0
    edges |= np.diff(period[order], prepend=period[order[0]]) != 0
    beaten = np.zeros(len(order), np.bool_)
    mark_beaten(np.cumsum(edges), us[event][order], k[order], beaten)
    kept = np.ones(len(matches.subscribers), np.bool_)
    kept[rows[order[beaten]]] = False
    return matches.only(kept)


def _recency(events: Sequence[Event]) -> tuple[Int64s, Int64s]:
    """Return the times of events, and their positions with the newer, then the smaller id first."""
    us = np.array([event.published_us for event in events], np.int64)
    order = sorted(range(len(events)), key=lambda event: (-int(us[event]), events[event].id))
    position = np.empty(len(events), np.int64)
    position[order] = np.arange(len(events))
    return us, position


@kernel
def mark_beaten(groups: Int64s, us: Int64s, k: Int64s, beaten: Bools) -> None:
    """Mark rows for which k rows before them in their group are not older; O(n k) at most.

    A group is contiguous, best rows first; its k is that of its first row. `newest` holds the k
    latest times so far in descending order, so its last one decides.
    """
    newest = np.empty(1, np.int64)
    group, size = -1, 0
    for row in range(len(groups)):
        if row == 0 or groups[row] != group:
            group, size = groups[row], k[row]
            newest = np.full(size, _OLDEST, np.int64)
        beaten[row] = newest[size - 1] != _OLDEST and newest[size - 1] >= us[row]
        place = size - 1
        if us[row] > newest[place] or newest[place] == _OLDEST:
            while place > 0 and us[row] > newest[place - 1]:
                newest[place] = newest[place - 1]
                place -= 1
            newest[place] = us[row]
