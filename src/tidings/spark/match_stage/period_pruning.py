"""What cannot win is not sent: of a period, matches that k better ones of the same batch beat.

The k better ones must not be older. Then, if the state stage finds them late, it finds the one that
they beat late as well, so what is delivered stays the same. Only periods of time without diversity
allow it: counted windows must count, a diversifier may prefer what ranks lower, and other windows
choose before the better ones have come.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.feed.policy_key import unregistered
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.model.records import Event
from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rank.matches import Matches
from tidings.spark.match_stage.kernels.skyband import mark_beaten


class Period(NamedTuple):
    """What pruning needs of a policy: no k, no pruning."""

    k: int = 0
    length_us: int = 1
    origin_us: int = 0

    @classmethod
    def of(cls, policy: Policy | None) -> "Period":
        """Give the periods of a policy that allows it."""
        window: Any = policy.window if policy else None
        if policy is None or window.name != "periodic" or policy.diversify.name != "none":
            return cls()
        if window.length.us is None or unregistered(policy):
            return cls()
        return cls(policy.k, window.length.us, parse_time_us(window.origin))


def pruned(served: OverlayMatcher, events: Sequence[Event], wanted: Matches) -> Matches:
    """Leave out matches that cannot win; who has at most k matches costs nothing more."""
    periods = served.numbers(Period.of)
    many = np.bincount(wanted.subscribers, minlength=len(periods)) > periods[:, 0]
    rows = np.flatnonzero((many & (periods[:, 0] > 0))[wanted.subscribers])
    if not len(rows):
        return wanted
    us, place = _order(events)
    event = wanted.events[rows]
    owner, rank = wanted.subscribers[rows], wanted.ranks[rows]
    k, length, origin = periods[owner].T
    period = (us[event] - origin) // length
    order = np.lexsort((place[event], -rank, period, owner))
    edges = np.diff(owner[order], prepend=-1) != 0
    edges |= np.diff(period[order], prepend=period[order[0]]) != 0
    beaten = np.zeros(len(order), np.bool_)
    mark_beaten(np.cumsum(edges), us[event][order], k[order], beaten)
    kept = np.ones(len(wanted.subscribers), np.bool_)
    kept[rows[order[beaten]]] = False
    return wanted.only(kept)


def _order(events: Sequence[Event]) -> tuple[Int64s, Int64s]:
    """Give the times of events, and their places among all: the newer, then the smaller id."""
    us = np.array([event.published_us for event in events], np.int64)
    order = sorted(range(len(events)), key=lambda each: (-int(us[each]), events[each].id))
    place = np.empty(len(events), np.int64)
    place[order] = np.arange(len(events))
    return us, place
