"""Which subscriptions match most of what was published lately, and which nothing at all.

A broad condition costs the most time and says the least; one that never matches may be mistyped.
"""

from collections.abc import Iterable, Sequence
from heapq import nlargest, nsmallest
from typing import Any, Final, NamedTuple

from tidings.model.diagnosis import diagnose
from tidings.model.profile import Profile
from tidings.model.records import Event, Subscription
from tidings.service.tenant import Tenant
from tidings.store.records import SUBSCRIPTION

_CONDITIONS: Final = ("where", "any")
_EVENTS: Final = 1_000
"""Publications that are looked at."""
_MATCHES: Final = 2_000_000
"""Publications times subscriptions that are looked at, about."""
_AT_ONCE: Final = 50
"""Publications for which the engine is held."""


class MatchCounts(NamedTuple):
    """How many of the last publications each subscription matches."""

    events: Sequence[Event]
    counts: dict[str, int]


def count_matches(tenant: Tenant) -> MatchCounts:
    """Match the last publications again: fewer of them, the more subscriptions there are."""
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
    """Return the broadest subscriptions, and some of those that match nothing, with a hint."""
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
        "broad": [_row(each, matches=counts[each.id]) for each in _found(tenant, broadest)],
        "unmatched": {
            "count": len(silent),
            "items": [_row(each, hint=_hint(each, profile)) for each in unmatched],
        },
    }


def _found(tenant: Tenant, names: Iterable[str]) -> list[Subscription]:
    """Return those subscriptions that still exist."""
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
