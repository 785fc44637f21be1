"""Actions of readers from a message, without a token: pause it, "not for me", open a link.

Mail scanners follow links, so links that change something first ask for confirmation, on a page
with one button. Mail programs that support RFC 8058 post to the same address directly.
"""

import hmac
import time
from base64 import b64decode
from html import escape
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tidings.channels.card import CardTemplate
from tidings.channels.reader_links import ACTIONS, PAUSE, PREFIX, seal
from tidings.model.values import SECOND_US
from tidings.service.access import Gate
from tidings.service.problems import HttpProblem
from tidings.store import Store
from tidings.store.channels import Channel
from tidings.store.marks import NOT_FOR_ME, OPENED, READ
from tidings.store.protocol import FOREVER

router = APIRouter(prefix=PREFIX, include_in_schema=False)
Word = Annotated[str, Path(max_length=200)]
Number = Annotated[int, Path(ge=0, le=FOREVER)]
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
}
_QUESTIONS: Final = {
    PAUSE: ("Pause these messages?", "Pause"),
    NOT_FOR_ME: ("Is this not for you?", "Not for me"),
}
_DONE: Final = {
    PAUSE: "No more messages will be sent to this address until you resume it.",
    NOT_FOR_ME: "Noted. Thank you.",
}
_PIXEL: Final = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


class ReaderAction(NamedTuple):
    """An action of a reader on a channel, from an address that was checked."""

    store: Store
    channel: Channel
    action: str
    number: int
    template: CardTemplate

    @property
    def subscriber(self) -> str:
        """The owner of the channel."""
        return str(self.channel.subscriber)

    def mark(self, sequences: list[int], mark: str) -> None:
        """Mark notifications of the channel's owner."""
        now_us = time.time_ns() * SECOND_US // 10**9
        self.store.marks.add(self.subscriber, sequences, mark, self.channel.id, now_us)


@router.get("/{tenant}/{key}/{action}/{number}/{sealed}")
def look(
    request: Request, tenant: Word, key: Word, action: Word, number: Number, sealed: Word
) -> Response:
    """Open a link or a picture, or ask for confirmation before changing something."""
    reader_action = _check(request, tenant, key, action, number, sealed)
    if action == OPENED:
        digest = reader_action.store.digests.get(key, number)
        reader_action.mark(list(digest.sequences) if digest else [], OPENED)
        return Response(_PIXEL, media_type="image/gif", headers=_HEADERS)
    if action == READ:
        return _visit(reader_action)
    question, label = _QUESTIONS[action]
    button = f'<form method="post"><button>{escape(label)}</button></form>'
    return _page(question, button)


@router.post("/{tenant}/{key}/{action}/{number}/{sealed}")
def act(
    request: Request, tenant: Word, key: Word, action: Word, number: Number, sealed: Word
) -> Response:
    """Pause a channel, or mark a notification."""
    reader_action = _check(request, tenant, key, action, number, sealed)
    if action not in _DONE:
        raise HttpProblem(404, "there is nothing to do at this address")
    if action == PAUSE:
        reader_action.store.channels.pause(key, time.time_ns() * SECOND_US // 10**9)
    else:
        reader_action.mark([number], NOT_FOR_ME)
    return _page(_DONE[action], "")


def _check(
    request: Request, tenant: str, key: str, action: str, number: int, sealed: str
) -> ReaderAction:
    """Return the action of an address; all invalid ones are refused in the same way."""
    gate: Gate = request.app.state.gate
    nothing = HttpProblem(404, "there is nothing at this address")
    # Only tenants with a token exist; opening another one would create it.
    if action not in ACTIONS or tenant not in gate.tenants.main.store.tokens.tenants():
        raise nothing
    opened = gate.tenants.get(tenant)
    store = opened.store
    channel = store.channels.get(key)
    secret = channel.settings.get("secret") if channel is not None else None
    expected = seal(str(secret or ""), action, number)
    if not hmac.compare_digest(expected.encode(), sealed.encode(errors="replace")) or not secret:
        raise nothing
    assert channel is not None  # it has a secret
    request.state.tenant = opened
    gate.check_rate(f"reader {key}")  # only now, since made-up keys would fill the memory
    return ReaderAction(store, channel, action, number, opened.settings.template)


def _visit(reader_action: ReaderAction) -> Response:
    """Mark a notification as read, and redirect to its link, which is looked up, not passed."""
    notifications = reader_action.store.notifications.after(
        reader_action.subscriber, max(0, reader_action.number - 1), limit=1
    )
    link = None
    if notifications and notifications[0].sequence == reader_action.number:
        link = reader_action.template.card(notifications[0]).link
    if link is None:
        raise HttpProblem(404, "there is nothing at this address")
    reader_action.mark([reader_action.number], READ)
    return RedirectResponse(link, 303, headers=_HEADERS)


def _page(text: str, button: str) -> Response:
    style = "margin:15vh auto;max-width:30em;text-align:center;font:18px system-ui,sans-serif"
    document = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Tidings</title>'
        '<meta name="viewport" content="width=device-width"></head>'
        f'<body style="{style}"><p>{escape(text)}</p>{button}</body></html>'
    )
    return HTMLResponse(document, headers=_HEADERS)
