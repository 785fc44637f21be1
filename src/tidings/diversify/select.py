"""A single choice from a list of events, without a stream."""

from collections.abc import Iterable, Sequence
from itertools import islice

from tidings.diversify.distance import check_summable
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.optimal import Optimal
from tidings.diversify.protocol import Candidate
from tidings.diversify.registry import DIVERSIFIERS
from tidings.errors import InvalidPolicy, TidingsError, described, shown
from tidings.model import named_parts, validate
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.records import Event


@validate.guarded_by(TidingsError)
def select(
    events: Sequence[Event],
    ranks: Sequence[float],
    k: int,
    diversify: object = "none",
    *,
    limits: Limits = TRUSTED,
) -> list[Event]:
    """Return at most k of `events`, in order of choice, by a diversifier or its form.

    >>> e = [Event("a", {"g": 1}, 0), Event("b", {"g": 1}, 1), Event("c", {"g": 2}, 2)]
    >>> [event.id for event in select(e, [0.9, 0.8, 0.7], 2, {"name": "divrank", "sigma": 0.5})]
    ['a', 'c']
    """
    check_limits(limits)
    most = validate.count("k", k)
    limits.check("k", most, "k", InvalidPolicy)
    candidates = _candidates(_as_list("events", events, limits), _as_list("ranks", ranks, limits))
    part = named_parts.read(DIVERSIFIERS, "diversifier", diversify)
    if isinstance(part, MaxDivRelLsh):
        tables, rows = part.shape
        limits.check("lsh_cells", tables * rows, "tables times rows", InvalidPolicy)
        part = part.bounded(limits.lsh_keys)
    if isinstance(part, Optimal):
        limits.check("optimal_events", len(candidates), "the events of optimal", InvalidPolicy)
        part = part.bounded(limits.optimal_sets)
    return [candidates[i].event for i in part.choose(candidates, most)] if candidates else []


def _as_list(what: str, values: object, limits: Limits) -> list[object]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise TidingsError(f"{what} must be a sequence, not {shown(values)}")
    try:
        # One value above the limit is enough to refuse an iterator that never ends.
        read = list(islice(values, limits.window_events + 1))
    except Exception as error:  # noqa: BLE001 - a foreign class may raise anything
        raise TidingsError(f"{what} cannot be read: {described(error)}") from None
    limits.check("window_events", len(read), f"the number of {what}")
    return read


def _candidates(events: list[object], ranks: list[object]) -> list[Candidate]:
    if len(events) != len(ranks):
        raise TidingsError(f"{len(events)} events have {len(ranks)} ranks")
    candidates = []
    for event, value in zip(events, ranks, strict=True):
        if not isinstance(event, Event):
            raise TidingsError(f"select expects events, not {shown(event)}")
        rank = check_summable(f"the rank of {event.id}", value)
        candidates.append(Candidate(event, rank, rank))
    return candidates
