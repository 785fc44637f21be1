"""Bounced mail: delivery reports (RFC 3464), passed on by the mail server."""

import re
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import default
from typing import Any, Final, NamedTuple

from tidings.channels.card import plain_line
from tidings.errors import InvalidForm
from tidings.store import Store
from tidings.store.digests import FixedDigest

_MOST_BYTES: Final = 1_000_000
_REASON_CHARACTERS: Final = 300
_NAME: Final = re.compile(r"<([\w.-]{1,200})@[^<>@\s]{1,255}>")


class Bounce(NamedTuple):
    """A bounced mail: its id, and the reason."""

    id: str
    reason: str


def read_bounce(content: bytes) -> Bounce | None:
    """Return the bounce of a report; None if it reports a delay or a success.

    Anything else that is not such a report is refused.
    """
    if len(content) > _MOST_BYTES:
        raise InvalidForm(f"a delivery report has at most {_MOST_BYTES:,} bytes")
    try:
        return _read(content)
    except InvalidForm:
        raise
    except Exception as error:  # noqa: BLE001 - the parser of mail fails in many ways
        raise InvalidForm(f"this mail cannot be read: {type(error).__name__}") from None


def _read(content: bytes) -> Bounce | None:
    report: Any = message_from_bytes(content, policy=default)
    parts = [part for part in report.walk() if isinstance(part, Message)]
    status = next((part for part in parts if _kind(part) == "message/delivery-status"), None)
    if status is None:
        raise InvalidForm("this mail is not a delivery report (multipart/report, RFC 3464)")
    fields = [block for block in status.walk() if block is not status]
    failed = [block for block in fields if str(block.get("Action", "")).strip() == "failed"]
    if not failed:
        return None
    names = [_NAME.search(str(mail.get("Message-ID", ""))) for mail in _originals(parts)]
    name = next((match[1] for match in names if match), None)
    if name is None:
        raise InvalidForm("this report does not contain the Message-ID of the bounced mail")
    reason = failed[0].get("Diagnostic-Code") or failed[0].get("Status") or "no reason given"
    return Bounce(name, plain_line(f"it came back: {reason}", _REASON_CHARACTERS))


def note_bounce(store: Store, bounce: Bounce) -> FixedDigest | None:
    """Mark the deliveries of a bounced mail as given up; return it, or None if it is unknown."""
    digest = store.digests.find(bounce.id)
    if digest is not None:
        store.digests.note_bounce(digest, bounce.reason)
    return digest


def _kind(part: Message) -> str:
    return part.get_content_type()


def _originals(parts: list[Message]) -> list[Any]:
    """Return the parts of a report with the original: the whole mail, or its headers."""
    whole = [inner for part in parts if _kind(part) == "message/rfc822" for inner in _inner(part)]
    headers = [
        message_from_bytes(part.get_content().encode(errors="replace"), policy=default)
        for part in parts
        if _kind(part) == "text/rfc822-headers" and isinstance(part, EmailMessage)
    ]
    return whole + headers


def _inner(part: Message) -> list[Any]:
    payload = part.get_payload()
    return payload if isinstance(payload, list) else []
