"""Deliveries to subscribers: the feed on demand, and durable notifications with their marks."""

import time
from typing import Annotated

from fastapi import APIRouter, Query

from tidings.errors import InvalidForm, StoreError, TidingsError
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.values import SECOND_US
from tidings.service.access import Caller, ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.parameters import Limit, PathId
from tidings.store import Inbox
from tidings.store.marks import MARKS
from tidings.store.protocol import FOREVER
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION

router = APIRouter(prefix="/v1", tags=["deliveries"])
Sequence = Annotated[
    int, Query(ge=0, le=FOREVER, description="The last sequence number that the caller has.")
]


@router.get("/feeds/{subscriber}", **answers("deliveries"))
def feed(caller: ReaderCaller, subscriber: PathId) -> Form:
    """Return the current list of a subscriber, on demand."""
    check_known(caller, subscriber)
    try:
        deliveries = caller.tenant.engine().engine.feed(subscriber)
    except TidingsError:  # the pipeline has not processed it yet
        deliveries = []
    return {"items": [delivery.to_dict() for delivery in deliveries]}


@router.get("/notifications/{subscriber}", **answers("notifications"))
def notifications(
    caller: ReaderCaller, subscriber: PathId, after: Sequence = 0, limit: Limit = 100
) -> Form:
    """Return notifications after a sequence number, in order, and how far they have been read."""
    check_known(caller, subscriber)
    store = caller.tenant.store.notifications
    items = [delivery.to_dict() for delivery in store.after(subscriber, after, limit)]
    inbox = store.inbox(subscriber)
    last = items[-1]["sequence"] if items else after
    return {"items": items, "next": last if last < inbox.last else None, "inbox": _form(inbox)}


@router.post("/notifications/{subscriber}/read", **accepts("read_mark"), **answers("inbox"))
def mark_read(caller: ReaderCaller, subscriber: PathId, form: FormBody) -> Form:
    """Mark notifications as read up to a sequence number; the mark never moves back."""
    check_known(caller, subscriber)
    sequence = load_form(_sequence, form)
    try:
        return _form(caller.tenant.store.notifications.mark_read(subscriber, sequence))
    except StoreError:
        last = caller.tenant.store.notifications.inbox(subscriber).last
        if sequence <= last:
            raise
        detail = f"there is no notification {sequence}; the last is {last}"
        raise HttpProblem(409, detail, pointer="/sequence") from None


@router.get("/notifications/{subscriber}/marks", **answers("marks"))
def list_marks(
    caller: ReaderCaller, subscriber: PathId, after: Sequence = 0, limit: Limit = 100
) -> Form:
    """Return the marks of a subscriber's notifications, in order of sequence."""
    check_known(caller, subscriber)
    marks = caller.tenant.store.marks.of(subscriber, after, limit)
    return {"items": [mark.to_dict() for mark in marks]}


@router.post("/notifications/{subscriber}/marks", **accepts("mark"), **answers("marked"))
def add_mark(caller: ReaderCaller, subscriber: PathId, form: FormBody) -> Form:
    """Mark a notification; a mark that it already has is unchanged."""
    check_known(caller, subscriber)
    sequence, mark = load_form(_numbered_mark, form)
    store, now_us = caller.tenant.store, time.time_ns() * SECOND_US // 10**9
    if sequence > store.notifications.inbox(subscriber).last:
        raise HttpProblem(409, f"there is no notification {sequence}", pointer="/sequence")
    return {"marked": bool(store.marks.add(subscriber, [sequence], mark, None, now_us))}


def check_known(caller: Caller, subscriber: str) -> None:
    """Refuse a caller that may not see a subscriber, and a subscriber that does not exist.

    A subscriber with a token exists, even before it has any interest.
    """
    caller.check_is(subscriber)
    store = caller.tenant.store
    if (
        caller.subscriber is None
        and store.catalogue.get(SUBSCRIBER, subscriber) is None
        and not store.notifications.inbox(subscriber).last
        and not store.catalogue.count(SUBSCRIPTION, subscriber)
    ):
        raise HttpProblem(404, "there is no such subscriber")


def _sequence(form: Form) -> int:
    value = fields(form, "the mark", ("sequence",))["sequence"]
    return validate.count("sequence", value, InvalidForm, low=0, high=FOREVER)


def _numbered_mark(form: Form) -> tuple[int, str]:
    values = fields(form, "the mark", ("sequence", "mark"))
    sequence = validate.count("sequence", values["sequence"], InvalidForm, high=FOREVER)
    return sequence, validate.choice("mark", values["mark"], MARKS, InvalidForm)


def _form(inbox: Inbox) -> Form:
    return {"last": inbox.last, "read": inbox.read, "unread": inbox.unread}
