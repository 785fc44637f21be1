"""Mail: a digest as a message with text and HTML, which its reader can end with one click.

The standard library writes the headers that people may see. The rest is fixed, and written as it
is: an `EmailMessage` would parse every header again, which takes longer than sending the mail.
"""

from binascii import b2a_qp
from email.headerregistry import Address
from email.policy import EmailPolicy
from email.utils import format_datetime
from functools import lru_cache
from typing import Final

from tidings.channels.layouts import Digest, html_layout, text_layout
from tidings.channels.smtp import SmtpSettings
from tidings.model.values import moment

_POLICIES: Final = {utf8: EmailPolicy(linesep="\r\n", utf8=utf8) for utf8 in (False, True)}
_ENCODED_WORD: Final = "=?"
_LINE: Final = 78
_TEXT: Final = (
    'Content-Type: text/{}; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable'
)


def digest_mail(settings: SmtpSettings, to: str, digest: Digest, name: str, at_us: int) -> bytes:
    """Return a digest as a mail; a name that stays the same makes a repetition recognisable."""
    headers = _headers(settings, to, digest.heading, name, at_us)
    if digest.links.pause:
        # RFC 8058: a mail program posts to this address, without asking its reader again.
        headers.append(f"List-Unsubscribe: <{digest.links.pause}>")
        headers.append("List-Unsubscribe-Post: List-Unsubscribe=One-Click")
    # The same mail each time; and quoted-printable text never holds `=_`, whatever it says.
    boundary = f"=_{name}"
    headers.append(f'Content-Type: multipart/alternative; boundary="{boundary}"')
    text, html = _text_part("plain", text_layout(digest)), _text_part("html", html_layout(digest))
    parts = b"".join(b"--%b\r\n%b\r\n" % (boundary.encode(), part) for part in (text, html))
    return _joined(headers) + b"\r\n%b--%b--\r\n" % (parts, boundary.encode())


def code_mail(settings: SmtpSettings, to: str, text: str, name: str, at_us: int) -> bytes:
    """Return a mail with a code that verifies its address."""
    headers = _headers(settings, to, "Is this your address?", name, at_us)
    return _joined(headers) + _text_part("plain", text)


def message_id(settings: SmtpSettings, name: str) -> str:
    """Return the Message-ID of a mail.

    >>> message_id(SmtpSettings("h", "Tidings <t@films.example>", 25), "0f3c")
    '<0f3c@films.example>'
    """
    return f"<{name}@{settings.domain}>"


def _headers(settings: SmtpSettings, to: str, subject: str, name: str, at_us: int) -> list[str]:
    is_utf8 = not to.isascii()  # RFC 6531
    return [
        _address("From", settings.sender, is_utf8),
        _address("To", to, is_utf8),
        _subject(subject, is_utf8),
        f"Date: {format_datetime(moment(at_us))}",
        f"Message-ID: {message_id(settings, name)}",
        # RFC 3834: programs that answer mail by themselves leave this one alone.
        "Auto-Submitted: auto-generated",
        "MIME-Version: 1.0",
    ]


@lru_cache(maxsize=10_000)
def _address(name: str, value: str, is_utf8: bool) -> str:
    """Return a header with an address; cached, since most addresses get more than one mail."""
    username, _, domain = value.rpartition("@")
    is_bare = not value.endswith(">")  # as parsed, it could have ASCII only
    address = Address(username=username, domain=domain) if is_bare else value
    return _written(name, address, is_utf8)


def _subject(text: str, is_utf8: bool) -> str:
    """Return the header of a subject.

    >>> _subject("Big Fish", False), _subject("Größe", False)
    ('Subject: Big Fish', 'Subject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=')
    """
    header = f"Subject: {text}"
    is_plain = text.isascii() and text.isprintable() and _ENCODED_WORD not in text
    if is_plain and text == text.strip() and text and len(header) <= _LINE:
        return header
    return _written("Subject", text, is_utf8)


def _written(name: str, value: str | Address, is_utf8: bool) -> str:
    policy = _POLICIES[is_utf8]
    header = policy.fold(name, policy.header_factory(name, value))
    return str(header).removesuffix("\r\n")


def _text_part(kind: str, text: str) -> bytes:
    """Return headers and content of a text, in lines that every server passes on."""
    content = text.replace("\n", "\r\n").encode()
    return f"{_TEXT.format(kind)}\r\n\r\n".encode() + b2a_qp(content, istext=True)


def _joined(headers: list[str]) -> bytes:
    return "".join(f"{header}\r\n" for header in headers).encode()
