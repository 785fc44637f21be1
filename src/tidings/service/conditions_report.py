"""Reports subscriptions that match most recent publications, are slow, or match nothing.

A broad condition says the least; one that never matches may be mistyped. The cost of a condition is
measured: the time of an index that holds only this condition, minus that of an empty index.
"""

from collections.abc import Iterable, Sequence
from heapq import nlargest, nsmallest
from time import thread_time
from typing import Any, Final, NamedTuple

from tidings.index.access import Access
from tidings.model.conditions.predicate import FOLDED, NEGATIONS
from tidings.model.diagnosis import diagnose
from tidings.model.profile import Profile
from tidings.model.records import Event, Subscription
from tidings.service.tenant import Tenant
from tidings.store.records import SUBSCRIPTION

_CONDITIONS: Final = ("where", "any")
_EVENTS: Final = 1_000
"""The number of publications to examine."""
_MATCHES: Final = 2_000_000
"""The approximate number of pairs of publications and subscriptions to examine."""
_AT_ONCE: Final = 50
"""The number of publications for which the engine is locked at a time."""
_TIMED_EVENTS: Final = 200
_TIMED: Final = 16
"""Conditions of each kind that are timed: about 1 ms each."""
_ROUNDS: Final = 3
"""The best of this many measurements counts."""
_SCANNED: Final = 2_000
"""The number of subscriptions among which to look for expensive ones."""
_COSTLY: Final = frozenset({"!=", "suffix", "substring", *FOLDED, *NEGATIONS})
"""Operators that an index cannot look up by a value or a prefix."""
_NOTHING: Final = Subscription("nothing", "nobody", where="true")


class MatchCounts(NamedTuple):
    """How many of the last publications each subscription matches."""

    events: Sequence[Event]
    counts: dict[str, int]


def count_matches(tenant: Tenant) -> MatchCounts:
    """Match the last publications again, fewer of them the more subscriptions there are."""
    engine, recent = tenant.engine().engine, tenant.recent.events()
    counts, looked_at = dict[str, int](), list[Event]()
    for end in range(len(recent), 0, -_AT_ONCE):
        some = recent[max(0, end - _AT_ONCE) : end]
        new = engine.match_counts(some)
        counts = {name: times + counts.get(name, 0) for name, times in new.items()}
        looked_at += some
        if len(looked_at) >= _EVENTS or len(looked_at) * len(counts) >= _MATCHES:
            break
    return MatchCounts(looked_at, counts)


def report_conditions(tenant: Tenant, limit: int) -> dict[str, Any]:
    """Return the broadest and slowest subscriptions, and some that match nothing, with a hint."""
    events, counts = count_matches(tenant)
    matching = [name for name, times in counts.items() if times]
    silent = [name for name, times in counts.items() if not times] if events else []
    broadest = nlargest(limit, matching, key=lambda name: (counts[name], name))
    profile = Profile()
    profile.add_sample(events)
    unmatched = _found(tenant, nsmallest(limit, silent))
    return {
        "publications": len(events),
        "subscriptions": len(counts),
        "broad": [
            _row(subscription, matches=counts[subscription.id])
            for subscription in _found(tenant, broadest)
        ],
        "slow": _slowest(tenant, events, counts, limit),
        "unmatched": {
            "count": len(silent),
            "items": [
                _row(subscription, hint=_hint(subscription, profile)) for subscription in unmatched
            ],
        },
    }


def _slowest(
    tenant: Tenant, events: Sequence[Event], counts: dict[str, int], limit: int
) -> list[dict[str, Any]]:
    """Return the slowest of the candidates: broad conditions, and those that scan texts."""
    broadest = nlargest(_TIMED, counts, key=lambda name: (counts[name], name))
    page = tenant.store.catalogue.page(SUBSCRIPTION, limit=_SCANNED)
    records = [entry.record for entry in page if isinstance(entry.record, Subscription)]
    costly = nlargest(_TIMED, filter(_scans, records), key=_scans)
    timed = {subscription.id: subscription for subscription in (*_found(tenant, broadest), *costly)}
    costs = measure_costs([*timed.values()], events[:_TIMED_EVENTS])
    slowest = nlargest(limit, costs, key=lambda name: (costs[name], name))
    return [_row(timed[name], microseconds=round(costs[name], 3)) for name in slowest]


def _scans(subscription: Subscription) -> int:
    parts = (part for conjunction in subscription.conjunctions for part in conjunction)
    return sum(part.operator in _COSTLY for part in parts)


def measure_costs(
    subscriptions: Sequence[Subscription], events: Sequence[Event]
) -> dict[str, float]:
    """Return the processor time of each condition for one publication, in microseconds."""
    if not events:
        return {}
    least = _matching_s(_NOTHING, events)
    return {
        subscription.id: max(0.0, _matching_s(subscription, events) - least) / len(events) * 1e6
        for subscription in subscriptions
    }


def _matching_s(subscription: Subscription, events: Sequence[Event]) -> float:
    index, times = Access([subscription]), list[float]()
    for _ in range(_ROUNDS):
        began = thread_time()
        index.matching_many(events)
        times.append(thread_time() - began)
    return min(times)


def _found(tenant: Tenant, names: Iterable[str]) -> list[Subscription]:
    """Return the subscriptions that still exist."""
    entries = (tenant.store.catalogue.get(SUBSCRIPTION, name) for name in names)
    records = (entry.record for entry in entries if entry is not None)
    return [record for record in records if isinstance(record, Subscription)]


def _row(subscription: Subscription, **more: Any) -> dict[str, Any]:
    form = subscription.to_dict()
    names = {"subscription": subscription.id, "subscriber": subscription.subscriber}
    return names | {name: form[name] for name in _CONDITIONS if name in form} | more


def _hint(subscription: Subscription, profile: Profile) -> str | None:
    """Return what may be wrong with a condition."""
    findings = diagnose([subscription], profile).findings
    return f"{findings[0].predicate}: {findings[0].advice}" if findings else None
