"""Subscribers and subscriptions: one by one, or all at once as JSON Lines."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.concurrency import run_in_threadpool as in_thread
from fastapi.responses import StreamingResponse

from tidings.errors import InvalidSubscription, StoreError, TidingsError
from tidings.formats.json_forms import loads_subscriber, loads_subscription, ordinary
from tidings.model.dead_letter import BadRecord
from tidings.policy import Subscriber
from tidings.service.access import AdminCaller, Caller, ReaderCaller
from tidings.service.bodies import JSON_LINES, AnyBody, Body, FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.parameters import Limit, PathId
from tidings.store.catalogue import Expected
from tidings.store.protocol import check_id
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION, Record

router = APIRouter(prefix="/v1", tags=["subscribers and subscriptions"])
Wait = Annotated[
    Literal["applied"] | None,
    Query(description="`applied`: wait until the pipeline uses the change."),
]
After = Annotated[str, Query(description="The last id of the previous page.", max_length=1_000)]
IfMatch = Annotated[
    Literal["*"] | None, Header(description="`*`: replace; refused if the record does not exist.")
]
IfNoneMatch = Annotated[
    Literal["*"] | None,
    Header(description="`*`: add; refused if another record with this id exists."),
]
_NAMED = 100


class PutOptions(NamedTuple):
    """Conditions on the existing record when one is put, and whether to wait for the pipeline."""

    expected: Expected
    wait: str | None


class Imported(NamedTuple):
    """The version of the catalogue with the imported records, and their counts."""

    version: int
    counts: Form


async def _put_options(
    wait: Wait = None, if_match: IfMatch = None, if_none_match: IfNoneMatch = None
) -> PutOptions:
    return PutOptions("existing" if if_match else "new" if if_none_match else "any", wait)


AnyPutOptions = Annotated[PutOptions, Depends(_put_options)]


@router.put("/subscribers/{id}", **accepts("subscriber"), **answers("change", 201, 200))
async def put_subscriber(
    caller: ReaderCaller, id: PathId, form: FormBody, response: Response, options: AnyPutOptions
) -> Form:
    """Add or replace a subscriber: its policy, its preferences, and whether it is paused.

    A subscriber may replace itself.
    """
    caller.check_is(id)
    form = {**form, "id": _same_id(form, id)}
    version = await in_thread(_put, caller, SUBSCRIBER, form, response, options.expected)
    return await _change(caller, version, options.wait)


@router.get("/subscribers/{id}", **answers("subscriber"))
def get_subscriber(caller: ReaderCaller, id: PathId) -> Form:
    """Return a subscriber; to itself, the default policy if there is no record yet."""
    caller.check_is(id)
    if caller.subscriber == id and caller.tenant.store.catalogue.get(SUBSCRIBER, id) is None:
        return Subscriber(id).to_dict()
    return _get(caller, SUBSCRIBER, id)


@router.delete("/subscribers/{id}", **answers("change"))
async def delete_subscriber(caller: AdminCaller, id: PathId, wait: Wait = None) -> Form:
    """Remove a subscriber with its subscriptions; its notifications stay until they are pruned."""
    return await _change(caller, await in_thread(_delete, caller, SUBSCRIBER, id), wait)


@router.post("/subscribers/{id}/pause", **answers("change"))
async def pause_subscriber(caller: ReaderCaller, id: PathId, wait: Wait = None) -> Form:
    """Pause a subscriber: its windows keep running, and what would be delivered is dropped."""
    return await _change(caller, await in_thread(_set_paused, caller, id, True), wait)


@router.post("/subscribers/{id}/resume", **answers("change"))
async def resume_subscriber(caller: ReaderCaller, id: PathId, wait: Wait = None) -> Form:
    """Resume a paused subscriber; what was dropped is not delivered later."""
    return await _change(caller, await in_thread(_set_paused, caller, id, False), wait)


@router.get("/subscribers", **answers("subscribers"))
def list_subscribers(caller: AdminCaller, after: After = "", limit: Limit = 100) -> Form:
    """Return subscribers in order of id."""
    return _page(caller, SUBSCRIBER, None, after, limit)


@router.put("/subscriptions/{id}", **accepts("subscription"), **answers("change", 201, 200))
async def put_subscription(
    caller: ReaderCaller, id: PathId, form: FormBody, response: Response, options: AnyPutOptions
) -> Form:
    """Add or replace a subscription.

    A subscriber may replace its own, and add others whose ids begin with its name and a colon:
    `ada:films`.
    """
    expected = options.expected
    if caller.role == "subscriber":
        expected = await in_thread(_own_expected, caller, id, form, expected)
    form = {**form, "id": _same_id(form, id)}
    version = await in_thread(_put, caller, SUBSCRIPTION, form, response, expected)
    return await _change(caller, version, options.wait)


@router.get("/subscriptions/{id}", **answers("subscription"))
def get_subscription(caller: ReaderCaller, id: PathId) -> Form:
    """Return a subscription."""
    _check_reach(caller, id)
    return _get(caller, SUBSCRIPTION, id)


@router.delete("/subscriptions/{id}", **answers("change"))
async def delete_subscription(caller: ReaderCaller, id: PathId, wait: Wait = None) -> Form:
    """Remove a subscription; a subscriber may remove its own."""
    await in_thread(_check_reach, caller, id)
    return await _change(caller, await in_thread(_delete, caller, SUBSCRIPTION, id), wait)


@router.get("/subscriptions", **answers("subscriptions"))
def list_subscriptions(
    caller: ReaderCaller,
    subscriber: Annotated[str | None, Query(max_length=1_000)] = None,
    after: After = "",
    limit: Limit = 100,
) -> Form:
    """Return subscriptions in order of id, of one subscriber or of all."""
    if caller.role == "subscriber":
        subscriber = subscriber or caller.subscriber
        caller.check_is(str(subscriber))
    return _page(caller, SUBSCRIPTION, subscriber, after, limit)


@router.post("/subscriptions:import", **accepts("records", lines=JSON_LINES), **answers("imported"))
async def import_records(caller: AdminCaller, body: AnyBody, wait: Wait = None) -> Form:
    """Add or replace subscriptions and subscribers, as JSON Lines or an array."""
    imported = await in_thread(_import, caller, body)
    return imported.counts | await _change(caller, imported.version, wait)


def _import(caller: Caller, body: Body) -> Imported:
    records, refused = list[Record](), list[BadRecord]()
    for line in body.records():
        if isinstance(line, BadRecord):
            refused.append(line)
            continue
        try:
            records.append(_load(caller, ordinary(line.form)))
        except TidingsError as error:
            refused.append(BadRecord({}, str(error), line.position))
    problems = [{"position": bad.position, "detail": bad.reason} for bad in refused[:_NAMED]]
    if refused and not records:
        raise HttpProblem(422, f"no record is accepted: {refused[0].reason}", problems=problems)
    version = caller.tenant.store.catalogue.load(records)
    counts = {"accepted": len(records), "refused": len(refused), "problems": problems}
    return Imported(version, counts)


@router.get("/subscriptions:export", **answers("lines", media_type=JSON_LINES[0]))
def export_records(caller: AdminCaller) -> StreamingResponse:
    """Return a consistent copy of all subscribers and subscriptions as JSON Lines, for `import`."""

    def lines() -> Iterator[str]:
        for entry in caller.tenant.store.history.as_of():
            yield f"{json.dumps(entry.form)}\n"

    return StreamingResponse(lines(), media_type=JSON_LINES[0])


def _check_reach(caller: Caller, name: str) -> None:
    """Refuse a subscriber that names another's subscription, as if it did not exist."""
    if caller.role == "subscriber" and not _owns(caller, name):
        raise _missing(SUBSCRIPTION)


def _owns(caller: Caller, name: str) -> bool:
    entry = caller.tenant.store.catalogue.get(SUBSCRIPTION, name)
    return entry is not None and (entry.form or {}).get("subscriber") == caller.subscriber


def _own_expected(caller: Caller, name: str, form: Form, expected: Expected) -> Expected:
    """Refuse a subscriber that puts another's subscription, or uses an id that another could have.

    The part of a new id before its last colon is the name of its owner, so the ids of two
    subscribers never collide, and a refusal does not reveal whether an id is taken.
    """
    if form.get("subscriber") != caller.subscriber:
        detail = "a token with the role subscriber may change only its own subscriptions"
        raise HttpProblem(403, detail, pointer="/subscriber")
    if _owns(caller, name):
        return expected if expected == "new" else "existing"
    if name.rpartition(":")[0] != caller.subscriber:
        detail = (
            "a token of the role subscriber replaces its own subscriptions, or adds one whose id "
            f"is {caller.subscriber}: and a name without a colon"
        )
        raise HttpProblem(403, detail, pointer="/id")
    # If an admin has given such an id to another subscriber, it is refused as existing.
    return expected if expected == "existing" else "new"


def _load(caller: Caller, form: Any) -> Record:
    """Read a subscription, which names its subscriber, or a subscriber."""
    limits = caller.tenant.settings.limits
    is_subscription = isinstance(form, dict) and "subscriber" in form
    record = (loads_subscription if is_subscription else loads_subscriber)(form, limits)
    try:
        check_id("an id", record.id)
        check_id("a subscriber", getattr(record, "subscriber", record.id))
    except StoreError as error:
        raise TidingsError(str(error)) from None
    return record


def _put(caller: Caller, kind: str, form: Form, response: Response, expected: Expected) -> int:
    """Put a record; return the version of the catalogue that has it."""
    limits, catalogue = caller.tenant.settings.limits, caller.tenant.store.catalogue
    loads = loads_subscriber if kind == SUBSCRIBER else loads_subscription
    record = load_form(lambda form: loads(form, limits), form)
    is_new = catalogue.get(kind, record.id) is None
    if is_new and kind == SUBSCRIPTION:
        most = caller.tenant.settings.subscriptions
        if catalogue.count(kind, record.subscriber) >= most:
            raise HttpProblem(
                409, f"the subscriber has {most:,} subscriptions, which is the maximum"
            )
    response.status_code = 201 if is_new else 200
    try:
        return catalogue.put_as(expected, record)
    except InvalidSubscription as error:
        raise HttpProblem(412, str(error), error="InvalidSubscription") from None


def _get(caller: Caller, kind: str, name: str) -> Form:
    entry = caller.tenant.store.catalogue.get(kind, name)
    if entry is None:
        raise _missing(kind)
    return dict(entry.form or {})


def _delete(caller: Caller, kind: str, name: str) -> int:
    """Remove a record; return the version of the catalogue without it."""
    catalogue = caller.tenant.store.catalogue
    if not catalogue.remove(kind, name):
        raise _missing(kind)
    return catalogue.version()


def _set_paused(caller: Caller, name: str, paused: bool) -> int:
    """Pause or resume a subscriber; return the version of the catalogue that says so."""
    caller.check_is(name)
    store = caller.tenant.store
    try:
        return (store.pause if paused else store.resume)(name)
    except InvalidSubscription:
        raise _missing(SUBSCRIBER) from None


def _page(caller: Caller, kind: str, subscriber: str | None, after: str, limit: int) -> Form:
    entries = caller.tenant.store.catalogue.page(kind, subscriber, after, limit + 1)
    items = [dict(entry.form or {}) for entry in entries[:limit]]
    return {"items": items, "next": items[-1]["id"] if len(entries) > limit else None}


async def _change(caller: Caller, version: int, wait: str | None) -> Form:
    """Return the version of a change, and whether the pipeline is known to use it."""
    applied = await caller.tenant.wait_applied(version) if wait else None
    return {"version": version, "applied": applied}


def _same_id(form: Form, name: str) -> str:
    if form.get("id", name) != name:
        raise HttpProblem(422, "the id in the body differs from that in the path", pointer="/id")
    return name


def _missing(kind: str) -> HttpProblem:
    return HttpProblem(404, f"there is no such {kind}")
