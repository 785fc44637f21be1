"""The address book of a subscriber: verified addresses, and what goes where and when."""

import time
from typing import Final

from fastapi import APIRouter, Response

from tidings.channels import address_book
from tidings.channels.person_channel import KINDS, MAIL, PersonChannel, read_address
from tidings.channels.person_senders import NO_MAIL, send_code
from tidings.channels.sender import Status
from tidings.errors import InvalidForm
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.values import SECOND_US
from tidings.service.access import Caller, ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.deliveries import check_known
from tidings.service.routes.parameters import PathId
from tidings.store.address_codes import CodeAnswer
from tidings.store.channels import Channel

router = APIRouter(prefix="/v1/subscribers/{subscriber}/channels", tags=["channels"])
_REFUSALS: Final = {
    CodeAnswer.WRONG: "this is not the code that was sent",
    CodeAnswer.EXPIRED: "there is no valid code: it has expired, was tried five times or was never "
    "sent; request another",
}


@router.get("", **answers("channels"))
def list_channels(caller: ReaderCaller, subscriber: PathId) -> Form:
    """Return the channels of a subscriber, in order of id, and the kinds that can be added."""
    check_known(caller, subscriber)
    store, mail = caller.tenant.store, caller.tenant.settings.mail
    channels = address_book.entries(store, subscriber)
    return {
        "items": [address_book.entry_state(store, channel) for channel in channels],
        "kinds": [kind for kind in KINDS if kind != MAIL or mail is not None],
    }


@router.put("/{id}", **accepts("channel"), **answers("channel_state", 201, 200))
def put_channel(
    caller: ReaderCaller, subscriber: PathId, id: PathId, form: FormBody, response: Response
) -> Form:
    """Add or change a channel; it is used once its address is verified.

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
    store = caller.tenant.store
    known = address_book.entries(store, subscriber)
    old = next((channel for channel in known if channel.id == id), None)
    if old is None and len(known) >= settings.channels:
        raise HttpProblem(
            409, f"the subscriber has {settings.channels} channels, which is the maximum"
        )
    if old is not None and old.kind != person.kind:
        raise HttpProblem(409, f"the channel is of the kind {old.kind}; remove it first")
    draft = address_book.EntryDraft(subscriber, id, person, vouched)
    channel = address_book.put_entry(store, draft, _now_us())
    response.status_code = 201 if old is None else 200
    return address_book.entry_state(store, channel)


@router.get("/{id}", **answers("channel_state"))
def get_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Return a channel: whether it is verified, its progress, and what it has given up."""
    channel = _find(caller, subscriber, id)
    return address_book.entry_state(caller.tenant.store, channel)


@router.delete("/{id}", **answers("removed"))
def delete_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Remove a channel, together with its unsent messages."""
    channel = _find(caller, subscriber, id)
    return {"removed": caller.tenant.store.channels.remove(channel.key)}


@router.post("/{id}/code", **answers("channel_state"))
def request_code(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Send a code to the address, at most five a day; pass it to `verify` within an hour."""
    channel = _find(caller, subscriber, id)
    if address_book.is_verified(channel):
        raise HttpProblem(409, "the address is already verified")
    person, now_us = PersonChannel.of(channel.settings), _now_us()
    code = caller.tenant.store.address_codes.make(channel.key, person.address, now_us)
    if code is None:
        raise HttpProblem(409, "this address received five codes within a day; try again tomorrow")
    outcome = send_code(caller.tenant.settings.people, person, code, channel.key, now_us)
    if outcome.status is not Status.SENT:
        reason = outcome.reason or "the chat is too busy"
        raise HttpProblem(409, f"the code could not be sent: {reason}")
    return get_channel(caller, subscriber, id)


@router.post("/{id}/verify", **accepts("channel_code"), **answers("channel_state"))
def verify_channel(caller: ReaderCaller, subscriber: PathId, id: PathId, form: FormBody) -> Form:
    """Verify the address with the code that was sent to it; the channel starts with what is new."""
    channel = _find(caller, subscriber, id)
    code = load_form(_code, form)
    store, now_us = caller.tenant.store, _now_us()
    answer = store.address_codes.check(channel.key, code, now_us)
    if answer is not CodeAnswer.RIGHT:
        raise HttpProblem(409, _REFUSALS[answer], pointer="/code")
    address_book.set_verified(store, channel, now_us)
    return get_channel(caller, subscriber, id)


@router.post("/{id}/pause", **answers("channel_state"))
def pause_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Pause sending to this address; notifications stay in the inbox."""
    caller.tenant.store.channels.pause(_find(caller, subscriber, id).key, _now_us())
    return get_channel(caller, subscriber, id)


@router.post("/{id}/resume", **answers("channel_state"))
def resume_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Resume sending, starting with what is delivered from now on."""
    address_book.resume_entry(caller.tenant.store, _find(caller, subscriber, id))
    return get_channel(caller, subscriber, id)


@router.post("/{id}/retry", **answers("channel_state"))
def retry_channel(caller: ReaderCaller, subscriber: PathId, id: PathId) -> Form:
    """Retry at once what was given up."""
    caller.tenant.store.channels.retry(_find(caller, subscriber, id).key)
    return get_channel(caller, subscriber, id)


def _vouched(form: Form, caller: Caller) -> bool:
    vouched = form.get("verified")
    if vouched is None:
        return False
    if caller.role != "admin":
        raise InvalidForm("only an administrator may set `verified`; request a code instead")
    validate.flag("verified", vouched, InvalidForm)
    return bool(vouched)


def _code(form: Form) -> str:
    return validate.name("`code`", fields(form, "the code", ("code",))["code"], InvalidForm)


def _find(caller: Caller, subscriber: str, name: str) -> Channel:
    check_known(caller, subscriber)
    channel = address_book.find_entry(caller.tenant.store, subscriber, name)
    if channel is None:
        raise HttpProblem(404, "there is no such channel")
    return channel


def _now_us() -> int:
    return time.time_ns() * SECOND_US // 10**9
