"""Questions about recent publications, answered by replay.

Deliveries are a function of the sequence of publications. So publishing the recent ones again to an
engine with one subscriber shows what it received and why, and what it would have received with
another policy, whichever engine made the deliveries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.engine.explain import Explanation
from tidings.engine.subscriber_replay import Explainer, RecordedSteps, ReplayResult
from tidings.model.conditions.parser import render_predicate
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import SECOND_US, format_time
from tidings.policy import Subscriber
from tidings.service.access import Caller
from tidings.service.problems import Form, HttpProblem
from tidings.service.recent_publications import Interest
from tidings.service.tenant import Tenant
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION

_BARS: Final = 48
"""The number of intervals in a timeline."""


def find_interest(caller: Caller, subscriber: str) -> Interest:
    """Return the current policy and subscriptions of a subscriber.

    An owner of subscriptions that is not a subscriber has the default policy; one that does not
    exist is refused, unless it is the caller.
    """
    tenant = caller.tenant
    catalogue, most = tenant.store.catalogue, tenant.settings.subscriptions
    entry = catalogue.get(SUBSCRIBER, subscriber)
    owned = [entry.record for entry in catalogue.page(SUBSCRIPTION, subscriber, limit=most)]
    subscriptions = [record for record in owned if isinstance(record, Subscription)]
    if entry is None and not subscriptions and caller.subscriber is None:
        raise HttpProblem(404, "there is no such subscriber")
    record = entry.record if entry else None
    person = record if isinstance(record, Subscriber) else Subscriber(subscriber)
    return Interest(person, subscriptions)


def explain_delivery(caller: Caller, subscriber: str, event: str) -> Form:
    """Explain why a subscriber did or did not get a recent publication.

    In addition to the explanation, the form has its `text`, and the `events` that it mentions.
    """
    tenant = caller.tenant
    recent = {event.id: event for event in tenant.recent.events()}
    if event not in recent:
        detail = "this event is not among the recent publications that the pipeline has processed"
        raise HttpProblem(404, detail, error="InvalidEvent")
    explainer = _explainer(caller, subscriber)
    delivery = tenant.store.notifications.get(subscriber, event)
    explanation = _as_delivered(explainer.explain(recent[event]), delivery)
    named = [recent[name] for name in _named(explanation) if name in recent]
    events = {event.id: _event_form(event) for event in named}
    return explanation.to_dict() | {"text": str(explanation), "events": events}


class DecisionQuery(NamedTuple):
    """Which decisions to list: all before an event, newest first, or those with some outcomes."""

    show: str
    before: str | None
    limit: int


def list_decisions(caller: Caller, subscriber: str, query: DecisionQuery) -> Form:
    """Return the outcomes of recent publications for a subscriber, newest first.

    `show` is `all`, `matched`, `unsent` (what matched and was not delivered) or `unmatched`.
    """
    tenant = caller.tenant
    # The events come first, so that the replay has all of them: one that it lacks counts as late.
    events = list(reversed(tenant.recent.events()))
    explainer = _explainer(caller, subscriber)
    ids = [event.id for event in events]
    first = ids.index(query.before) + 1 if query.before in ids else 0
    delivered = tenant.store.notifications.delivered_events(subscriber, len(events) or 1)
    items = list[Form]()
    for event in events[first:]:
        if len(items) == query.limit:
            return {"publications": len(events), "items": items, "next": items[-1]["event"]}
        is_match, is_sent = explainer.is_match(event), event.id in delivered
        if not _is_shown(query.show, is_match=is_match, is_sent=is_sent):
            continue
        delivery = tenant.store.notifications.get(subscriber, event.id) if is_sent else None
        explanation = _as_delivered(explainer.explain(event), delivery)
        items.append(_decision(event, explanation))
    return {"publications": len(events), "items": items, "next": None}


def _is_shown(show: str, *, is_match: bool, is_sent: bool) -> bool:
    if show == "unsent":
        return is_match and not is_sent
    if show == "unmatched":
        return not is_match and not is_sent
    return show == "all" or is_match or is_sent


def _decision(event: Event, explanation: Explanation) -> Form:
    verdict = explanation.rules[-1] if explanation.rules else None
    choices = explanation.standing.choices if explanation.standing else ()
    nearest = choices[-1].similar_to if choices else None
    matched = [reason.subscription for reason in explanation.reasons if reason.matched]
    delivery = explanation.delivery
    return {
        "event": event.id,
        **_event_form(event),
        "outcome": explanation.outcome,
        "verdict": explanation.verdict,
        "rank": delivery.rank if delivery else explanation.rank,
        "matched": list(delivery.matched) if delivery else matched,
        "other": verdict.other if verdict else nearest.event if nearest else None,
        "until": verdict.to_dict()["until"] if verdict else None,
        "note": explanation.note,
        "sequence": delivery.sequence if delivery else None,
    }


def _explainer(caller: Caller, subscriber: str) -> Explainer:
    interest = find_interest(caller, subscriber)
    return Explainer(caller.tenant.replays.of(interest)[0], interest.subscriber)


def _as_delivered(explanation: Explanation, delivery: Delivery | None) -> Explanation:
    """Return an explanation with the delivery in the store, which a replay may not repeat."""
    if (delivery is None) == (explanation.delivery is None):
        return replace(explanation, delivery=delivery)
    note = "it was decided by subscriptions, a policy or older publications that no longer exist"
    return replace(explanation, delivery=delivery, standing=None, note=note)


def _named(explanation: Explanation) -> list[str]:
    """Return the ids of the events that an explanation mentions, its own first."""
    choices = explanation.standing.choices if explanation.standing else ()
    rivals = [rival.event for choice in choices for rival in choice.chosen]
    compared = [verdict.other for verdict in explanation.rules if verdict.other]
    return [*dict.fromkeys([explanation.event, *rivals, *compared])]


def _event_form(event: Event) -> Form:
    """Return an event without its id."""
    form = event.to_dict()
    return {name: form[name] for name in ("published_at", "attributes", "content") if name in form}


def check_condition(tenant: Tenant, subscription: Subscription, examples: int) -> Form:
    """Return how many recent publications a condition matches, the newest of them, and advice.

    Advice names the predicates that hold for none of the publications, and a likely correction.
    """
    events = tenant.recent.events()
    matching = [event for event in events if subscription.matches(event)]
    profile = tenant.attributes.seen().profile
    parts = dict.fromkeys(part for conj in subscription.conjunctions for part in conj)
    advice = [
        {"predicate": render_predicate(part), "text": text}
        for part in parts
        if (text := profile.advice(part)) is not None
    ]
    newest = [{"event": event.id, **_event_form(event)} for event in matching[: -examples - 1 : -1]]
    counts = {"publications": len(events), "matched": len(matching)}
    return counts | {"examples": newest, "advice": advice}


def compare(tried: ReplayResult, saved: ReplayResult, recording: RecordedSteps, limit: int) -> Any:
    """Compare two replays: figures of both, what comes, goes and stays, and a timeline.

    Lists start with the newest. An event stays if both deliver it, at whatever time.
    """
    saved_events = {delivery.event for delivery in saved.deliveries}
    tried_events = {delivery.event for delivery in tried.deliveries}
    changes = {
        "comes": [delivery for delivery in tried.deliveries if delivery.event not in saved_events],
        "goes": [delivery for delivery in saved.deliveries if delivery.event not in tried_events],
        "stays": [delivery for delivery in tried.deliveries if delivery.event in saved_events],
    }
    return {
        "tried": tried.report.to_dict(),
        "saved": saved.report.to_dict(),
        **{name: _listed(deliveries, limit) for name, deliveries in changes.items()},
        "timeline": _timeline(tried, saved, recording),
    }


def _listed(deliveries: Sequence[Delivery], limit: int) -> dict[str, Any]:
    newest = islice(reversed(deliveries), limit)
    return {"count": len(deliveries), "items": [delivery.to_dict() for delivery in newest]}


def _timeline(tried: ReplayResult, saved: ReplayResult, recording: RecordedSteps) -> Any:
    """Return counts of publications and deliveries in equal intervals.

    None if there are too few.
    """
    if not recording.steps:
        return None
    published = [step.now.us for step in recording.steps]
    delivered = [delivery.delivered_us for delivery in (*tried.deliveries, *saved.deliveries)]
    start, end = published[0], max([published[-1], *delivered])
    if start == end:
        return None

    def counts(times: Iterable[int]) -> list[int]:
        bars, _ = np.histogram(np.fromiter(times, np.int64), _BARS, (start, end))
        return [int(bar) for bar in bars]

    return {
        "start": format_time(start),
        "seconds": (end - start) / SECOND_US / _BARS,
        "published": counts(published),
        "tried": counts(delivery.delivered_us for delivery in tried.deliveries),
        "saved": counts(delivery.delivered_us for delivery in saved.deliveries),
    }
