"""Where a person reads: an address book of verified addresses, and what goes where and when."""

import secrets
import time
from typing import Any, Final

from fastapi import APIRouter, Response

from tidings.channels.person_channel import KINDS, MAIL, PersonChannel, read_address
from tidings.channels.person_senders import NO_MAIL, send_code
from tidings.channels.sender import Status
from tidings.channels.webhook_target import shorten_url
from tidings.errors import InvalidForm
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.values import SECOND_US, format_time
from tidings.service.access import Caller, ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.path_ids import PathId
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.deliveries import check_known
from tidings.store.address_codes import CodeAnswer
from tidings.store.channels import Channel, ChannelDraft

router = APIRouter(prefix="/v1/subscribers/{subscriber}/channels", tags=["channels"])
_LISTED: Final = 100
_SECRET_BYTES: Final = 32
_REFUSALS: Final = {
    CodeAnswer.WRONG: "this is not the code that was sent",
    CodeAnswer.EXPIRED: "there is no valid code: it is an hour old, was tried five times or never "
    "sent; ask for another",
}


@router.get("", **answers("channels"))
def list_channels(caller: ReaderCaller, subscriber: PathId) -> Form:
    """Return where a subscriber reads, in order of id."""
    check_known(caller, subscriber)
    return {"items": [_state(caller, channel) for channel in _of(caller, subscriber)]}


@router.put("/{id}", **accepts("channel"), **answers("channel_state", 201, 200))
def put_channel(
    caller: ReaderCaller, subscriber: PathId, id: PathId, form: FormBody, response: Response
) -> Form:
    """Add a channel, or change one; it is used when its address is verified.

    An administrator may vouch for an address with `verified`.
    """
    check_known(caller, subscriber)
    vouched = load_form(lambda form: _vouched(form, caller), form)
    plain = {name: value for name, value in form.items() if name != "verified"}
    settings, rules = caller.tenant.settings, caller.tenant.settings.people.rules
    kind = form.get("kind")
    if kind in KINDS and "address" in form:
        load_form(lambda text: read_address(kind, text, rules), form["address"], "/address")
    person = load_form(lambda form: PersonChannel.load(form, rules), plain)
    if person.kind == MAIL and settings.mail is None:
        raise HttpProblem(409, NO_MAIL)
    known = {channel.id: channel for channel in _of(caller, subscriber)}
    old = known.get(id)
    if old is None and len(known) >= settings.channels:
        raise HttpProblem(409, f"the subscriber has {settings.channels} channels, the most allowed")
    if old is not None and old.kind != person.kind:
        raise HttpProblem(409, f"the channel is of the kind {old.kind}; remove it first")
    saved = _settings(person, old, vouched)
    draft = ChannelDraft(person.kind, id, subscriber, saved)
    channel = caller.tenant.store.channels.put(draft, _now_us())
    response.status_code = 201 if old is None else 200
    return _state(caller, channel)


@router.get("/{id}", **answers("channel_state"))
def get_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Return a channel: whether it is verified, how far it has come, and what it gave up."""
    return _state(caller, _find(caller, subscriber, id))


@router.delete("/{id}", **answers("removed"))
def delete_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Remove a channel, with what is still to be sent."""
    channel = _find(caller, subscriber, id)
    return {"removed": caller.tenant.store.channels.remove(channel.key)}


@router.post("/{id}/code", **answers("channel_state"))
def request_code(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Send a code to the address, at most five a day; `verify` takes it, within an hour."""
    channel = _find(caller, subscriber, id)
    if channel.settings.get("verified_us"):
        raise HttpProblem(409, "the address is verified already")
    person, now_us = PersonChannel.of(channel.settings), _now_us()
    code = caller.tenant.store.address_codes.make(channel.key, person.address, now_us)
    if code is None:
        detail = "this address got five codes within a day; try again tomorrow"
        raise HttpProblem(429, detail, headers={"Retry-After": "86400"})
    outcome = send_code(caller.tenant.settings.people, person, code, channel.key, now_us)
    if outcome.status is not Status.SENT:
        reason = outcome.reason or "the chat is too busy"
        raise HttpProblem(409, f"the code could not be sent: {reason}")
    return _state(caller, channel)


@router.post("/{id}/verify", **accepts("channel_code"), **answers("channel_state"))
def verify_channel(caller: ReaderCaller, subscriber: PathId, id: PathId, form: FormBody) -> Form:
    """Verify the address by the code that was sent to it; the channel begins with what is new."""
    channel = _find(caller, subscriber, id)
    code = load_form(_code, form)
    store, now_us = caller.tenant.store, _now_us()
    answer = store.address_codes.check(channel.key, code, now_us)
    if answer is not CodeAnswer.RIGHT:
        raise HttpProblem(409, _REFUSALS[answer], pointer="/code")
    store.channels.change_settings(channel.key, {"verified_us": now_us})
    store.channels.skip_waiting(channel.key)
    return get_channel(caller, subscriber, id)


@router.post("/{id}/pause", **answers("channel_state"))
def pause_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Send nothing to this address for now; it stays in the inbox."""
    caller.tenant.store.channels.pause(_find(caller, subscriber, id).key, _now_us())
    return get_channel(caller, subscriber, id)


@router.post("/{id}/resume", **answers("channel_state"))
def resume_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Send again, beginning with what is delivered from now on."""
    channels, channel = caller.tenant.store.channels, _find(caller, subscriber, id)
    if channel.paused_us is not None:
        channels.skip_waiting(channel.key)
    channels.resume(channel.key)
    return get_channel(caller, subscriber, id)


@router.post("/{id}/retry", **answers("channel_state"))
def retry_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Send what was given up again, at once."""
    caller.tenant.store.channels.retry(_find(caller, subscriber, id).key)
    return get_channel(caller, subscriber, id)


def _settings(person: PersonChannel, old: Channel | None, vouched: bool) -> dict[str, Any]:
    """Return what is saved: another address is not verified, and its links are others."""
    kept = dict(old.settings) if old is not None else {}
    is_same = bool(kept) and PersonChannel.of(kept).address == person.address
    verified_us = kept.get("verified_us") if is_same else None
    secret = kept["secret"] if is_same else secrets.token_urlsafe(_SECRET_BYTES)
    return {
        "person": person.to_dict(),
        "secret": secret,
        "verified_us": verified_us or (_now_us() if vouched else None),
    }


def _vouched(form: Form, caller: Caller) -> bool:
    vouched = form.get("verified")
    if vouched is None:
        return False
    if caller.role != "admin":
        raise InvalidForm("`verified` is what an administrator may say; ask for a code")
    validate.flag("verified", vouched, InvalidForm)
    return bool(vouched)


def _code(form: Form) -> str:
    return validate.name("`code`", fields(form, "the code", ("code",))["code"], InvalidForm)


def _of(caller: Caller, subscriber: str) -> list[Channel]:
    found = caller.tenant.store.channels.find(subscriber=subscriber)
    return [channel for channel in found if channel.kind in KINDS]


def _find(caller: Caller, subscriber: str, name: str) -> Channel:
    check_known(caller, subscriber)
    found = [channel for channel in _of(caller, subscriber) if channel.id == name]
    if not found:
        raise HttpProblem(404, "there is no such channel")
    return found[0]


def _state(caller: Caller, channel: Channel) -> Form:
    store, person = caller.tenant.store, PersonChannel.of(channel.settings)
    backlog = store.channels.backlog(channel.key)
    failed = [_failure(*failure) for failure in store.channels.failures(channel.key, _LISTED)]
    form = person.to_dict() | {"at": list(person.at), "days": list(person.days)}
    if person.kind != MAIL:  # who knows it can write to the chat
        form["address"] = shorten_url(person.address)
    return form | {
        "id": channel.id,
        "subscriber": channel.subscriber,
        "interests": list(person.interests),
        "created_at": format_time(channel.created_us),
        "verified": bool(channel.settings.get("verified_us")),
        "paused": channel.paused_us is not None,
        "sent": channel.sent,
        "waiting": backlog.waiting,
        "failures": channel.failures,
        "reason": channel.reason,
        "disabled": channel.disabled,
        "failed": failed,
    }


def _failure(sequence: int, attempts: int, next_us: int | None, reason: str) -> Form:
    again = None if next_us is None else format_time(next_us)
    return {"sequence": sequence, "attempts": attempts, "next_at": again, "reason": reason}


def _now_us() -> int:
    return time.time_ns() * SECOND_US // 10**9
