"""Marks on notifications: opened, read, and "not for me"."""

import time

from fastapi import APIRouter

from tidings.errors import InvalidForm
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.values import SECOND_US
from tidings.service.access import ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.deliveries import Sequence, check_known
from tidings.service.routes.parameters import Limit, PathId
from tidings.store.marks import MARKS
from tidings.store.protocol import FOREVER

router = APIRouter(prefix="/v1/notifications", tags=["deliveries"])


@router.get("/{subscriber}/marks", **answers("marks"))
def list_marks(
    caller: ReaderCaller, subscriber: PathId, after: Sequence = 0, limit: Limit = 100
) -> Form:
    """Return the marks of a subscriber's notifications, in order of sequence."""
    check_known(caller, subscriber)
    marks = caller.tenant.store.marks.of(subscriber, after, limit)
    return {"items": [mark.to_dict() for mark in marks]}


@router.post("/{subscriber}/marks", **accepts("mark"), **answers("marked"))
def add_mark(caller: ReaderCaller, subscriber: PathId, form: FormBody) -> Form:
    """Mark a notification; a mark that it already has is unchanged."""
    check_known(caller, subscriber)
    sequence, mark = load_form(_read, form)
    store, now_us = caller.tenant.store, time.time_ns() * SECOND_US // 10**9
    if sequence > store.notifications.inbox(subscriber).last:
        raise HttpProblem(409, f"there is no notification {sequence}", pointer="/sequence")
    return {"marked": bool(store.marks.add(subscriber, [sequence], mark, None, now_us))}


def _read(form: Form) -> tuple[int, str]:
    values = fields(form, "the mark", ("sequence", "mark"))
    sequence = validate.count("sequence", values["sequence"], InvalidForm, high=FOREVER)
    return sequence, validate.choice("mark", values["mark"], MARKS, InvalidForm)
