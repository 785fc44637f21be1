"""Questions: who fits an event, why something was delivered or not, and what would have been."""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.formats.json_forms import (
    fields,
    loads_event,
    loads_policy,
    loads_subscription,
    ordinary,
)
from tidings.model import named_parts, validate
from tidings.model.limits import Limits
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.score import SCORERS, Scorer
from tidings.service.access import PublisherCaller, ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.questions import Interest, explain_delivery, find_interest, preview

router = APIRouter(prefix="/v1", tags=["questions"])
Name = Annotated[str, Query(min_length=1, max_length=1_000)]
_SOMEBODY = "preview"


class TargetQuestion(NamedTuple):
    """An event, and how many subscriptions to return, by which scorer."""

    event: Event
    k: int
    scorer: Scorer


@router.post("/target", **accepts("target_question"), **answers("target"))
def target(caller: PublisherCaller, form: FormBody) -> Form:
    """Return the k subscriptions that fit an event best, with their scores."""
    limits = caller.tenant.settings.limits
    question = load_form(lambda form: _target_question(form, limits), form)
    ranking = caller.tenant.engine().engine.target(*question)
    return {"items": [{"subscription": name, "score": score} for name, score in ranking]}


@router.get("/explain", **answers("explanation"))
def explain(caller: ReaderCaller, subscriber: Name, event: Name) -> Form:
    """Explain why a subscriber did or did not get one of the recent publications."""
    caller.check_is(subscriber)
    explanation = explain_delivery(caller.tenant, subscriber, event)
    return explanation.to_dict() | {"text": str(explanation)}


@router.post("/preview", **accepts("preview_question"), **answers("preview"))
def preview_deliveries(caller: ReaderCaller, form: FormBody) -> Form:
    """Return what a policy or a condition would have delivered from the recent publications.

    What is not given is that of the subscriber.
    """
    tenant = caller.tenant
    name = form.get("subscriber", caller.subscriber)
    if isinstance(name, str):
        caller.check_is(name)
    question = load_form(lambda form: _preview_question(form, tenant.settings.limits), form)
    own = find_interest(tenant, name) if name is not None else None
    if own is None and not question.subscriptions:
        raise HttpProblem(422, "give a subscriber, a condition `where`, or subscriptions")
    policy = question.policy or (own.subscriber.policy if own else Policy())
    subscriptions = question.subscriptions or (own.subscriptions if own else ())
    prefers = own.subscriber.prefers if own and not question.subscriptions else ()
    person = Subscriber(name or _SOMEBODY, policy, prefers)
    owned = [_owned_by(person.id, each) for each in subscriptions]
    deliveries = preview(tenant, Interest(person, owned))
    items = [delivery.to_dict() for delivery in deliveries[-1_000:]]
    return {"publications": len(tenant.recent.events()), "items": items}


class PreviewQuestion(NamedTuple):
    """A policy and subscriptions to try."""

    policy: Policy | None
    subscriptions: list[Subscription]


def _target_question(form: Form, limits: Limits) -> TargetQuestion:
    values = fields(form, "the question", ("event",), ("k", "scorer"))
    k = validate.count("k", values.get("k", 20), InvalidPolicy, low=1, high=1_000)
    scorer = named_parts.read(SCORERS, "scorer", values.get("scorer", "exact"))
    event = ordinary(values["event"])
    if isinstance(event, dict):
        event = {"id": "target", "published_at": 0, **event}
    return TargetQuestion(loads_event(event, limits), k, scorer)


def _preview_question(form: Form, limits: Limits) -> PreviewQuestion:
    names = ("subscriber", "policy", "where", "subscriptions")
    values = fields(form, "the question", (), names)
    validate.name("subscriber", values.get("subscriber", "x"), InvalidForm)
    policy = loads_policy(values["policy"], limits) if "policy" in values else None
    listed: Any = values.get("subscriptions", [])
    if not isinstance(listed, list) or len(listed) > 1_000:
        raise InvalidForm("`subscriptions` is a list of at most 1,000 subscriptions")
    if "where" in values:
        listed = [{"id": "where", "subscriber": _SOMEBODY, "where": values["where"]}, *listed]
    return PreviewQuestion(policy, [loads_subscription(each, limits) for each in listed])


def _owned_by(subscriber: str, subscription: Subscription) -> Subscription:
    form = subscription.to_dict() | {"subscriber": subscriber}
    return loads_subscription(form)
