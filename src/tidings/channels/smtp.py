"""SMTP: the settings of a mail server, and one mail handed to it."""

import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import parseaddr
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tidings.channels.card import plain_line
from tidings.channels.person_channel import read_mail_address
from tidings.channels.sender import SENT, Outcome, Status
from tidings.channels.transport import Secret, TransportForm
from tidings.errors import InvalidForm, described, shown
from tidings.model import validate

STARTTLS: Final = "starttls"
TLS: Final = "tls"
PLAIN: Final = "none"
_PORTS: Final = {STARTTLS: 587, TLS: 465, PLAIN: 25}
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_KEYS: Final = ("host", "from", "port", "security", "user", "password", "ca_file")
_REASON_CHARACTERS: Final = 300
_OPERATION_S: Final = 10.0


@dataclass(frozen=True)
class SmtpSettings:
    """A mail server, and the address that mail comes from."""

    host: str
    sender: str
    port: int
    security: str = STARTTLS
    user: str | None = None
    password: Secret | None = None
    ca_file: Path | None = None

    @classmethod
    def load(cls, form: Mapping[str, Any], base: Path) -> "SmtpSettings":
        """Read the table of a config; its files are relative to a folder.

        Passwords travel encrypted, or to this machine.
        """
        table = TransportForm(form, _KEYS)
        security = table.choice("security", tuple(_PORTS), STARTTLS)
        port = validate.count("port", form.get("port", _PORTS[security]), InvalidForm, high=65_535)
        host, user, password = table.text("host"), table.optional("user"), table.secret("password")
        if (user is None) != (password is None):
            raise InvalidForm("a user needs a password, and a password a user")
        if user is not None and security == PLAIN and host not in _LOCAL:
            raise InvalidForm("a password is sent with security starttls or tls, not without any")
        ca_file = table.optional("ca_file")
        trust = None if ca_file is None else base / ca_file
        sender = read_sender(table.text("from"))
        return cls(host, sender, port, security, user, password, trust)

    @property
    def domain(self) -> str:
        """The domain that mail comes from."""
        return parseaddr(self.sender)[1].rpartition("@")[2]


def read_sender(value: object) -> str:
    """Return an address that mail may come from: name@example.org, or with a name before it.

    >>> read_sender("Tidings for films <tidings@films.example>")
    'Tidings for films <tidings@films.example>'
    """
    name, address = parseaddr(value) if isinstance(value, str) else ("", "")
    if not address or "\n" in str(value) or "\r" in str(value):
        raise InvalidForm(f"`from` is written Name <name@example.org>, not {shown(value)}")
    return str(Address(plain_line(name), addr_spec=read_mail_address(address)))


def send_mail(settings: SmtpSettings, to: str, mail: EmailMessage) -> Outcome:
    """Hand a mail to the server; return what it says about it.

    What the server refuses for good (5xx) about the recipient or the mail is given up. Everything
    else, also a login that fails, may work another time.
    """
    try:
        with _connect(settings) as smtp:
            smtp.sendmail(parseaddr(settings.sender)[1], [to], mail.as_bytes())
    except smtplib.SMTPRecipientsRefused as error:
        code, text = error.recipients[to]
        return _answer(code, text, is_final=True)
    except smtplib.SMTPDataError as error:
        return _answer(error.smtp_code, error.smtp_error, is_final=True)
    except smtplib.SMTPResponseException as error:
        return _answer(error.smtp_code, error.smtp_error, is_final=False)
    except (smtplib.SMTPException, OSError, ValueError) as error:
        return Outcome(Status.FAILED, plain_line(described(error), _REASON_CHARACTERS))
    return SENT


def _connect(settings: SmtpSettings) -> smtplib.SMTP:
    """Return a connection that is encrypted and logged in, as the settings want it."""
    where = (settings.host, settings.port)
    smtp: smtplib.SMTP
    if settings.security == TLS:
        trust = _trust(settings.ca_file)
        smtp = smtplib.SMTP_SSL(*where, timeout=_OPERATION_S, context=trust)
    else:
        smtp = smtplib.SMTP(*where, timeout=_OPERATION_S)
    try:
        if settings.security == STARTTLS:
            smtp.starttls(context=_trust(settings.ca_file))
        if settings.user is not None and settings.password is not None:
            smtp.login(settings.user, settings.password.reveal())
    except BaseException:
        smtp.close()
        raise
    return smtp


@lru_cache
def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """Return what is trusted; to read it takes longer than a mail."""
    return ssl.create_default_context(cafile=ca_file)


def _answer(code: int, text: bytes | str, *, is_final: bool) -> Outcome:
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    refused = is_final and 500 <= code < 600
    reason = plain_line(f"the mail server says {code} {words}", _REASON_CHARACTERS)
    return Outcome(Status.REFUSED if refused else Status.FAILED, reason)
