"""Questions: targets of an event, explanations of deliveries, and previews of policies."""

import gc
from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple

from fastapi import APIRouter, Query

from tidings.errors import InvalidForm, InvalidPolicy, TidingsError, shown
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
from tidings.service.access import AnyCaller, Caller, PublisherCaller, ReaderCaller
from tidings.service.attributes import AttributeQuery
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, find_position, load_form
from tidings.service.questions import (
    DecisionQuery,
    check_condition,
    compare,
    explain_delivery,
    find_interest,
    list_decisions,
)
from tidings.service.recent_publications import Interest
from tidings.service.routes.parameters import PathId
from tidings.store.protocol import FOREVER

router = APIRouter(prefix="/v1", tags=["questions"])
Name = Annotated[str, Query(min_length=1, max_length=1_000)]
Show = Annotated[
    Literal["all", "matched", "unsent", "unmatched"],
    Query(description="`unsent`: those that matched but were not delivered."),
]
_SOMEBODY = "preview"
_EXAMPLES = 5
_NOBODY: Final = {"id": "condition", "subscriber": _SOMEBODY}
_NOTHING: Final[Form] = {"examples": [], "advice": []}


class TargetQuestion(NamedTuple):
    """An event, how many subscriptions to return and by which scorer; `others` explains more."""

    event: Event
    k: int
    scorer: Scorer
    others: int | None


@router.post("/target", **accepts("target_question"), **answers("target"))
async def target(caller: PublisherCaller, form: FormBody) -> Form:
    """Return the k subscriptions that fit an event best, with their scores.

    With `others`, a number, each one is explained, and so are that many runners-up: what they lack.
    """
    return await caller.ask(_target, caller, form)


def _target(caller: Caller, form: Form) -> Form:
    limits = caller.tenant.settings.limits
    question = load_form(lambda form: _target_question(form, limits), form)
    engine = caller.tenant.engine().engine
    if question.others is None:
        ranking = engine.target(*question[:3])
        return {"items": [{"subscription": name, "score": score} for name, score in ranking]}
    placements = [placement.to_dict() for placement in engine.explain_targets(*question)]
    best = [
        placement for placement in placements if (placement["position"] or FOREVER) <= question.k
    ]
    return {"items": best, "others": placements[len(best) :]}


@router.get("/explain", **answers("explanation"))
async def explain(caller: ReaderCaller, subscriber: Name, event: Name) -> Form:
    """Explain why a subscriber did or did not get one of the recent publications."""
    caller.check_is(subscriber)
    return await caller.ask(explain_delivery, caller, subscriber, event)


@router.get("/decisions/{subscriber}", **answers("decisions"))
async def decisions(
    caller: ReaderCaller,
    subscriber: PathId,
    show: Show = "matched",
    before: Annotated[str | None, Query(min_length=1, max_length=1_000)] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="The maximum number to return.")] = 20,
) -> Form:
    """Return the outcomes of recent publications for a subscriber, newest first, with reasons.

    To continue, pass the event in `next` as `before`.
    """
    caller.check_is(subscriber)
    query = DecisionQuery(show, before, limit)
    return await caller.ask(list_decisions, caller, subscriber, query)


@router.get("/attributes", **answers("attributes"))
def attributes(
    caller: AnyCaller,
    name: Annotated[str | None, Query(min_length=1, max_length=1_000)] = None,
    contains: Annotated[str, Query(max_length=100)] = "",
    limit: Annotated[int, Query(ge=1, le=100, description="How many values of each.")] = 20,
) -> Form:
    """Return the attributes of the recent publications with their most frequent values.

    With `name`, only that attribute; with `contains`, only values that contain a text, ignoring
    case.
    """
    recent = caller.tenant.attributes.seen()
    query = AttributeQuery(name, contains, limit)
    return {"publications": recent.events, "items": recent.find(query)}


@router.post("/conditions:check", **accepts("condition_question"), **answers("condition_answer"))
async def check(caller: AnyCaller, form: FormBody) -> Form:
    """Return how many recent publications match a condition, with examples and advice.

    A condition that cannot be parsed is a valid question, too: the answer has a `problem` with its
    position.
    """
    return await caller.ask(_check, caller, form)


def _check(caller: Caller, form: Form) -> Form:
    question = load_form(_check_question, form)
    try:
        wish = loads_subscription({**question, **_NOBODY}, caller.tenant.settings.limits)
    except TidingsError as error:
        detail = str(error).removeprefix(f"subscription {_NOBODY['id']}: ")
        problem = {"detail": detail, "position": find_position(question, "/where")}
        return {"problem": problem, "publications": None, "matched": None} | _NOTHING
    return {"problem": None} | check_condition(caller.tenant, wish, _EXAMPLES)


@router.post("/preview", **accepts("preview_question"), **answers("preview"))
async def preview_deliveries(caller: ReaderCaller, form: FormBody) -> Form:
    """Return what a policy or a condition would have delivered from the recent publications.

    Anything left out is taken from the subscriber. With `compare`, the answer says how this differs
    from what the subscriber gets with its saved policy and subscriptions.
    """
    return await caller.ask(_preview, caller, form)


def _preview(caller: Caller, form: Form) -> Form:
    tenant = caller.tenant
    name = form.get("subscriber", caller.subscriber)
    if isinstance(name, str):
        caller.check_is(name)
    question = load_form(lambda form: _preview_question(form, tenant.settings.limits), form)
    saved = find_interest(caller, name) if name is not None else None
    if saved is None and question.compare:
        raise HttpProblem(422, "`compare` needs a subscriber", pointer="/subscriber")
    if saved is None and not question.subscriptions:
        raise HttpProblem(422, "pass a subscriber, a condition `where`, or subscriptions")
    tried = question.interest(saved)
    replay, *before = tenant.replays.of(tried, *([saved] if question.compare and saved else []))
    policy = tried.subscriber.policy
    distance = policy.diversify.distance  # by which both are measured
    result = replay.run(policy, distance)
    items = [delivery.to_dict() for delivery in result.deliveries[-question.limit :]]
    answer = {"publications": len(replay.recording.steps), "items": items}
    if before and saved:
        by_saved = before[0].run(saved.subscriber.policy, distance)
        answer["comparison"] = compare(result, by_saved, replay.recording, question.limit)
    _settle_memory()
    return answer


@cache
def _settle_memory() -> None:
    """Exempt everything loaded so far from garbage collection, once.

    The first preview has loaded the kernels. A collection that visits all their objects stops every
    request for 200 ms or more, and would slow down one in twenty moves of a slider.
    """
    gc.collect()
    gc.freeze()


class PreviewQuestion(NamedTuple):
    """A policy and subscriptions to try, and how many deliveries of each kind to return."""

    policy: Policy | None
    subscriptions: list[Subscription]
    compare: bool
    limit: int

    def interest(self, saved: Interest | None) -> Interest:
        """Return what to try; anything left out is taken from what is saved."""
        owner = saved.subscriber if saved else Subscriber(_SOMEBODY)
        policy = self.policy or owner.policy
        if not self.subscriptions:
            subscriptions = saved.subscriptions if saved else ()
            return Interest(Subscriber(owner.id, policy, owner.prefers), subscriptions)
        owned = [_owned_by(owner.id, subscription) for subscription in self.subscriptions]
        return Interest(Subscriber(owner.id, policy), owned)


def _check_question(form: Form) -> Form:
    values = fields(form, "the question", ("where",))
    if not isinstance(values["where"], str):
        raise InvalidForm(f"`where` is a condition, not {shown(values['where'])}")
    return values


def _target_question(form: Form, limits: Limits) -> TargetQuestion:
    values = fields(form, "the question", ("event",), ("k", "scorer", "others"))
    k = validate.count("k", values.get("k", min(20, limits.k)), InvalidPolicy)
    limits.check("k", k, "k", InvalidPolicy)
    scorer = named_parts.read(SCORERS, "scorer", values.get("scorer", "exact"))
    event = ordinary(values["event"])
    if isinstance(event, dict):
        event = {"id": "target", "published_at": 0, **event}
    others = values.get("others")
    if others is not None:
        validate.count("others", others, InvalidForm, low=0, high=100)
    return TargetQuestion(loads_event(event, limits), k, scorer, others)


def _preview_question(form: Form, limits: Limits) -> PreviewQuestion:
    names = ("subscriber", "policy", "where", "subscriptions", "compare", "limit")
    values = fields(form, "the question", (), names)
    validate.name("subscriber", values.get("subscriber", "x"), InvalidForm)
    policy = loads_policy(values["policy"], limits) if "policy" in values else None
    compares = values.get("compare", False)
    validate.flag("compare", compares, InvalidForm)
    limit = validate.count("limit", values.get("limit", 1_000), InvalidForm, low=1, high=1_000)
    listed: Any = values.get("subscriptions", [])
    if not isinstance(listed, list) or len(listed) > 1_000:
        raise InvalidForm("`subscriptions` is a list of at most 1,000 subscriptions")
    if "where" in values:
        listed = [{"id": "where", "subscriber": _SOMEBODY, "where": values["where"]}, *listed]
    subscriptions = [loads_subscription(form, limits) for form in listed]
    ids = [subscription.id for subscription in subscriptions]
    if len(set(ids)) < len(ids):
        raise InvalidForm(f"subscription {shown(max(ids, key=ids.count))} is listed twice")
    return PreviewQuestion(policy, subscriptions, compares, limit)


def _owned_by(subscriber: str, subscription: Subscription) -> Subscription:
    form = subscription.to_dict() | {"subscriber": subscriber}
    return loads_subscription(form)
