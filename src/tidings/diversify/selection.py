"""One choice, without a stream around it."""

import math
from collections.abc import Sequence

from tidings import checks, parts
from tidings.diversify.protocol import Candidate
from tidings.diversify.registry import DIVERSIFIERS
from tidings.errors import TidingsError
from tidings.model import Event


def select(
    events: Sequence[Event], ranks: Sequence[float], k: int, diversify: object = "none"
) -> list[Event]:
    """Choose at most k of `events`, in order of choice, by a diversifier or its form.

    >>> e = [Event("a", {"g": 1}, 0), Event("b", {"g": 1}, 1), Event("c", {"g": 2}, 2)]
    >>> [each.id for each in select(e, [0.9, 0.8, 0.7], 2, {"name": "divrank", "sigma": 0.5})]
    ['a', 'c']
    """
    checks.count("k", k)
    if len(events) != len(ranks):
        raise TidingsError(f"{len(events)} events have {len(ranks)} ranks")
    for event, rank in zip(events, ranks, strict=True):
        checks.number(f"the rank of {event.id}", rank, TidingsError, high=math.inf)
    part = parts.read(DIVERSIFIERS, "diversifier", diversify)
    candidates = [Candidate(event, rank, rank) for event, rank in zip(events, ranks, strict=True)]
    return [events[i] for i in part.choose(candidates, k)] if candidates else []
