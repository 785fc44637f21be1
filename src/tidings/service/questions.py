"""Questions about the recent publications, answered by replay.

Deliveries are a function of the sequence of publications. So the recent ones, published again to an
engine with one subscriber, show what it got, why, and what it would have got with another policy;
whichever engine has delivered.
"""

from dataclasses import replace

from tidings.engine.engine import Engine
from tidings.engine.explain import Explanation
from tidings.model.records import Subscription
from tidings.model.values import moment
from tidings.policy import Subscriber
from tidings.service.durable_engine import new_engine
from tidings.service.problems import HttpProblem
from tidings.service.recent import Interest, RecentStream
from tidings.service.tenant import Tenant
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION


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
    stream = tenant.recent.stream()
    if all(recent.id != event for recent in stream.events):
        detail = "there is no such event among the recent publications that the pipeline has taken"
        raise HttpProblem(404, detail, error="InvalidEvent")
    engine = _replay(tenant, find_interest(tenant, subscriber), stream)
    explanation = engine.explain(subscriber, event)
    delivery = tenant.store.notifications.get(subscriber, event)
    if (delivery is None) == (explanation.delivery is None):
        return replace(explanation, delivery=delivery)
    note = "it was decided by subscriptions, a policy or older publications that are gone by now"
    return replace(explanation, delivery=delivery, standing=None, note=note)


def _replay(tenant: Tenant, interest: Interest, stream: RecentStream) -> Engine:
    """Return an engine with one subscriber that has taken the recent publications."""
    engine = new_engine(tenant.settings.lateness, remember=len(stream.events))
    engine.subscribe(interest.subscriber)
    engine.add_many(interest.subscriptions)
    engine.publish_many(stream.events)
    if stream.step.clock_us is not None:
        engine.advance(moment(stream.step.clock_us))
    return engine
