"""Webhooks: the notifications of a subscriber, sent to an address."""

import time
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from tidings.channels.address_book import failure_form
from tidings.channels.webhook_target import read_url
from tidings.errors import InvalidForm
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.values import SECOND_US, format_time
from tidings.service.access import Caller, ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.deliveries import check_known
from tidings.service.routes.parameters import PathId
from tidings.store.webhooks import Webhook

router = APIRouter(prefix="/v1", tags=["webhooks"])
Owner = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=1_000,
        description="The owner, if several subscribers use the same id.",
    ),
]
_OLD_SECRET_US: Final = 24 * 3_600 * SECOND_US
_LISTED: Final = 100


@router.put("/webhooks/{id}", **accepts("webhook"), **answers("webhook_state", 201, 200))
def put_webhook(caller: ReaderCaller, id: PathId, form: FormBody, response: Response) -> Form:
    """Send what a subscriber receives from now on to a URL, or change the URL.

    The answer for a new webhook has the `secret` that signs its messages. It is not shown again.
    """
    subscriber = load_form(lambda form: _subscriber(form, caller), form)
    check_known(caller, subscriber)
    settings = caller.tenant.settings
    url = load_form(lambda form: read_url(form.get("url"), settings.rules), form)
    webhooks = caller.tenant.store.webhooks
    is_new = not webhooks.find(id, subscriber)
    most = settings.webhooks
    if is_new and len(webhooks.of(subscriber)) >= most:
        raise HttpProblem(409, f"the subscriber has {most} webhooks, which is the maximum")
    webhook = webhooks.put(subscriber, id, str(url), _now_us())
    response.status_code = 201 if is_new else 200
    return _state(caller, webhook) | ({"secret": webhook.secret} if is_new else {})


@router.get("/webhooks/{id}", **answers("webhook_state"))
def get_webhook(caller: ReaderCaller, id: PathId, subscriber: Owner = None) -> Form:
    """Return a webhook: its progress, what will be retried, and what was given up."""
    return _state(caller, _find(caller, id, subscriber))


@router.get("/webhooks", **answers("webhooks"))
def list_webhooks(caller: ReaderCaller, subscriber: Owner = None) -> Form:
    """Return the webhooks of a subscriber, or of all, in order of id."""
    webhooks = caller.tenant.store.webhooks.of(_owner(caller, subscriber))
    return {"items": [_state(caller, webhook) for webhook in webhooks]}


@router.delete("/webhooks/{id}", **answers("removed"))
def delete_webhook(caller: ReaderCaller, id: PathId, subscriber: Owner = None) -> Form:
    """Remove a webhook, together with its unsent messages."""
    return {"removed": caller.tenant.store.webhooks.remove(_find(caller, id, subscriber).key)}


@router.post("/webhooks/{id}/secret", **answers("webhook_secret"))
def change_secret(caller: ReaderCaller, id: PathId, subscriber: Owner = None) -> Form:
    """Change the secret; for a day, messages are signed with the previous one as well."""
    webhook = _find(caller, id, subscriber)
    until_us = _now_us() + _OLD_SECRET_US
    return {"secret": caller.tenant.store.webhooks.change_secret(webhook.key, until_us)}


@router.post("/webhooks/{id}/retry", **answers("webhook_state"))
def retry_webhook(caller: ReaderCaller, id: PathId, subscriber: Owner = None) -> Form:
    """Retry at once everything that failed, including what was given up."""
    webhook = _find(caller, id, subscriber)
    caller.tenant.store.channels.retry(webhook.key)
    return _state(caller, _find(caller, id, webhook.subscriber))


def _subscriber(form: Form, caller: Caller) -> str:
    required = ("url",) if caller.subscriber else ("subscriber", "url")
    optional = ("id", "subscriber") if caller.subscriber else ("id",)
    values = fields(form, "the webhook", required, optional)
    return validate.name("`subscriber`", values.get("subscriber", caller.subscriber), InvalidForm)


def _owner(caller: Caller, subscriber: str | None) -> str | None:
    """Return the owner that a caller refers to; a subscriber has only its own webhooks."""
    if caller.role == "subscriber":
        caller.check_is(subscriber or str(caller.subscriber))
        return caller.subscriber
    return subscriber


def _find(caller: Caller, name: str, subscriber: str | None) -> Webhook:
    webhooks = caller.tenant.store.webhooks.find(name, _owner(caller, subscriber))
    if not webhooks:
        raise HttpProblem(404, "there is no such webhook")
    if len(webhooks) > 1:
        raise HttpProblem(409, "several subscribers have a webhook with this id; pass a subscriber")
    return webhooks[0]


def _state(caller: Caller, webhook: Webhook) -> Form:
    store = caller.tenant.store
    failed = [
        failure_form(failure) for failure in store.channels.failures(webhook.key, limit=_LISTED)
    ]
    last = store.notifications.inbox(webhook.subscriber).last
    return {
        "id": webhook.id,
        "subscriber": webhook.subscriber,
        "url": webhook.url,
        "created_at": format_time(webhook.created_us),
        "sequence": webhook.sequence,
        "waiting": max(0, last - webhook.sequence),
        "failures": webhook.failures,
        "disabled": webhook.disabled,
        "failed": failed,
    }


def _now_us() -> int:
    return time.time_ns() * SECOND_US // 10**9
