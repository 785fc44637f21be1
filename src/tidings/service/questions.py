"""Questions about the recent publications, answered by replay.

Deliveries are a function of the sequence of publications. So the recent ones, published again to an
engine with one subscriber, show what it got, why, and what it would have got with another policy;
whichever engine has delivered.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tidings.engine.engine import Engine
from tidings.engine.explain import Explanation
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import moment
from tidings.policy import Subscriber
from tidings.service.durable_engine import new_engine
from tidings.service.problems import HttpProblem
from tidings.service.tenant import Tenant
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION


class Interest(NamedTuple):
    """A subscriber and its subscriptions."""

    subscriber: Subscriber
    subscriptions: Sequence[Subscription]


def find_interest(tenant: Tenant, subscriber: str) -> Interest:
    """Return what a subscriber wants at present; who only owns subscriptions has the default."""
    catalogue, most = tenant.store.catalogue, tenant.settings.subscriptions
    entry = catalogue.get(SUBSCRIBER, subscriber)
    owned = [each.record for each in catalogue.page(SUBSCRIPTION, subscriber, limit=most)]
    subscriptions = [record for record in owned if isinstance(record, Subscription)]
    if entry is None and not subscriptions:
        raise HttpProblem(404, "there is no such subscriber")
    record = entry.record if entry else None
    person = record if isinstance(record, Subscriber) else Subscriber(subscriber)
    return Interest(person, subscriptions)


def explain_delivery(tenant: Tenant, subscriber: str, event: str) -> Explanation:
    """Explain why a subscriber did or did not get a recent publication."""
    events = tenant.recent.events()
    if all(recent.id != event for recent in events):
        detail = "there is no such event among the recent publications that the pipeline has taken"
        raise HttpProblem(404, detail, error="InvalidEvent")
    engine, _ = _replay(tenant, find_interest(tenant, subscriber), events)
    explanation = engine.explain(subscriber, event)
    delivery = tenant.store.notifications.get(subscriber, event)
    if (delivery is None) == (explanation.delivery is None):
        return replace(explanation, delivery=delivery)
    note = "it was decided by subscriptions, a policy or older publications that are gone by now"
    return replace(explanation, delivery=delivery, standing=None, note=note)


def preview(tenant: Tenant, interest: Interest) -> list[Delivery]:
    """Return what a subscriber would have got from the recent publications."""
    return _replay(tenant, interest, tenant.recent.events())[1]


def _replay(
    tenant: Tenant, interest: Interest, events: Sequence[Event]
) -> tuple[Engine, list[Delivery]]:
    engine = new_engine(tenant.settings.lateness, remember=len(events))
    engine.subscribe(interest.subscriber)
    engine.add_many(interest.subscriptions)
    deliveries = engine.publish_many(events)
    clock_us = tenant.store.log.last().clock_us
    if clock_us is not None:
        deliveries += engine.advance(moment(clock_us))
    return engine, deliveries
