"""SMTP: the settings of a mail server, and a pool of connections to it."""

import re
import smtplib
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.utils import parseaddr
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Final

from tidings.channels.card import plain_line
from tidings.channels.person_channel import read_mail_address
from tidings.channels.sender import SENT, Outcome, Status
from tidings.channels.transport import Secret, TransportForm
from tidings.errors import InvalidForm, TidingsError, described, shown
from tidings.formats.redaction import hider
from tidings.model import validate

Answer = tuple[int, bytes]
"""A code, and its text."""

STARTTLS: Final = "starttls"
TLS: Final = "tls"
PLAIN: Final = "none"
_PORTS: Final = {STARTTLS: 587, TLS: 465, PLAIN: 25}
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_KEYS: Final = ("host", "from", "port", "security", "user", "password", "ca_file")
_REASON_CHARACTERS: Final = 300
_OPERATION_S: Final = 10.0
_CLOSING: Final = 421
_GO_ON: Final = 354
_LEADING_DOT: Final = re.compile(rb"^\.", re.MULTILINE)
_NO_UTF8: Final = "the mail server has no SMTPUTF8, so it takes names of mailboxes in ASCII only"
_NOT_ASCII: Final = "logins to mail servers take a user and a password in ASCII only"


@dataclass(frozen=True)
class SmtpSettings:
    """A mail server, and the address that mail comes from."""

    host: str
    sender: str
    port: int
    security: str = STARTTLS
    user: str | None = field(default=None, repr=False)
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
        host, user, password = table.host("host"), table.optional("user"), table.secret("password")
        if (user is None) != (password is None):
            raise InvalidForm("user and password must be given together")
        if user is not None and security == PLAIN and host not in _LOCAL:
            raise InvalidForm("a password is only sent encrypted; set security to starttls or tls")
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
    if not address.rpartition("@")[0].isascii():
        raise InvalidForm(
            f"the name of the mailbox in `from` must be ASCII, so that every server can answer; "
            f"{shown(value)} is not"
        )
    return str(Address(plain_line(name), addr_spec=read_mail_address(address)))


def send_mail(settings: SmtpSettings, to: str, mail: bytes) -> Outcome:
    """Send one mail over its own connection; return the outcome."""
    connections = SmtpConnections(settings)
    try:
        return connections.send(to, mail)
    finally:
        connections.close_idle()


class _NoUtf8Error(Exception):
    """The server does not take the name of a mailbox."""


class SmtpConnections:
    """A pool of connections to one mail server; each sends one mail after another.

    A connection serves one thread at a time. Idle ones are closed by `close_idle`, and when as many
    have called `release` as `retain`.
    """

    def __init__(self, settings: SmtpSettings) -> None:
        self._settings = settings
        self._sender = parseaddr(settings.sender)[1]
        self._lock = Lock()
        self._idle = list[smtplib.SMTP]()
        self._owners = 0

    def retain(self) -> None:
        """Add an owner; while there is one, connections stay open between mails."""
        with self._lock:
            self._owners += 1

    def release(self) -> None:
        """Remove an owner; after the last one, close the idle connections."""
        with self._lock:
            self._owners -= 1
            ended = not self._owners
        if ended:
            self.close_idle()

    def send(self, to: str, mail: bytes) -> Outcome:
        """Send a mail; return the outcome.

        A mail that the server rejects permanently (5xx), for its recipient or its content, is given
        up. Everything else, including a failed login, may succeed later.
        """
        outcome = self._outcome(to, mail)
        return outcome if outcome is SENT else outcome._replace(reason=self._hide(outcome.reason))

    def _hide(self, text: str) -> str:
        """Hide the login in an answer of the server, which may repeat what it refuses."""
        user, secret = self._settings.user, self._settings.password
        if user is None or secret is None:
            return text
        try:
            password = secret.reveal()
        except TidingsError:  # it is not set, so it was never sent
            return text
        plain = (user, password, f"\0{user}\0{password}")
        return hider(
            [*plain, *(b64encode(part.encode(errors="replace")).decode() for part in plain)]
        )(text)

    def _outcome(self, to: str, mail: bytes) -> Outcome:
        try:
            self._deliver(to, mail)
        except smtplib.SMTPRecipientsRefused as error:
            code, text = error.recipients[to]
            return _answer(code, text, is_final=True)
        except smtplib.SMTPDataError as error:
            return _answer(error.smtp_code, error.smtp_error, is_final=True)
        except smtplib.SMTPResponseException as error:
            return _answer(error.smtp_code, error.smtp_error, is_final=False)
        except _NoUtf8Error:
            return Outcome(Status.REFUSED, _NO_UTF8)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            reason = f"{self._settings.host}:{self._settings.port}: {described(error)}"
            return Outcome(Status.FAILED, plain_line(reason, _REASON_CHARACTERS))
        return SENT

    def _deliver(self, to: str, mail: bytes) -> None:
        """Send a mail over an open connection, or over a new one.

        A server ends connections that were idle for long or have carried many mails. It says so
        before it takes the next mail, so another connection can send that mail without a copy.
        """
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            smtp = idle or _connect(self._settings)
            try:
                try:
                    _send_envelope(smtp, self._sender, to, len(mail))
                except smtplib.SMTPServerDisconnected:
                    if idle is None:
                        raise
                    continue
                except smtplib.SMTPSenderRefused as error:
                    if idle is None or error.smtp_code != _CLOSING:
                        raise
                    continue
                return _send_content(smtp, mail)
            finally:
                self._keep(smtp)

    def _keep(self, smtp: smtplib.SMTP) -> None:
        """Keep a connection for the next mail if it is still open and has an owner."""
        with self._lock:
            if smtp.sock is not None and self._owners:
                self._idle.append(smtp)
                return
        _quit(smtp)

    def close_idle(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for smtp in idle:
            _quit(smtp)


def _send_envelope(smtp: smtplib.SMTP, sender: str, to: str, size: int) -> None:
    """Send the envelope of a mail; the server then waits for its content.

    Most servers take all commands at once (RFC 2920), which saves two of three round trips. One
    that closes the connection instead has not taken the mail.
    """
    smtp.ehlo_or_helo_if_needed()
    options = [f"SIZE={size}"] if smtp.has_extn("size") else []
    smtp.command_encoding = "ascii"
    if not to.isascii():  # RFC 6531
        if not smtp.has_extn("smtputf8"):
            raise _NoUtf8Error
        options += ["SMTPUTF8", "BODY=8BITMIME"]
        smtp.command_encoding = "utf-8"
    mail = " ".join((f"MAIL FROM:{smtplib.quoteaddr(sender)}", *options))
    commands = (mail, f"RCPT TO:{smtplib.quoteaddr(to)}", "DATA")
    at_once = smtp.has_extn("pipelining")
    if at_once:
        smtp.send("".join(f"{command}\r\n" for command in commands))
    answers = list[Answer]()
    for command in commands:
        if not at_once:
            smtp.putcmd(command)
        answers.append(smtp.getreply())
        if answers[-1][0] == _CLOSING or not (at_once or _has_agreed(answers)):
            break
    refused = next((n for n in range(len(answers)) if not _has_agreed(answers[: n + 1])), None)
    if refused is not None:
        _cancel(smtp, answers)
        code, text = answers[refused]
        raise (
            smtplib.SMTPSenderRefused(code, text, sender),
            smtplib.SMTPRecipientsRefused({to: (code, text)}),
            smtplib.SMTPDataError(code, text),
        )[refused]


def _has_agreed(answers: Sequence[Answer]) -> bool:
    """Return whether the last answer accepts its command."""
    return answers[-1][0] in ((250,), (250, 251), (_GO_ON,))[len(answers) - 1]


def _cancel(smtp: smtplib.SMTP, answers: Sequence[Answer]) -> None:
    """End a mail of which the server has refused a part."""
    if answers[-1][0] == _CLOSING:
        smtp.close()
        return
    with suppress(smtplib.SMTPServerDisconnected):
        if answers[-1][0] == _GO_ON:  # although it has no recipient: it refuses the empty mail
            smtp.send(b".\r\n")
            smtp.getreply()
        smtp.rset()


def _send_content(smtp: smtplib.SMTP, mail: bytes) -> None:
    smtp.send(_LEADING_DOT.sub(b"..", mail) + b".\r\n")
    code, text = smtp.getreply()
    if code != 250:
        _cancel(smtp, [(code, text)])
        raise smtplib.SMTPDataError(code, text)


def _quit(smtp: smtplib.SMTP) -> None:
    """End a connection, whatever the server answers."""
    with suppress(smtplib.SMTPException, OSError):
        if smtp.sock is not None:
            smtp.quit()
    smtp.close()


def _connect(settings: SmtpSettings) -> smtplib.SMTP:
    """Return a connection, encrypted and logged in as the settings require."""
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
            _log_in(smtp, settings.user, settings.password.reveal())
    except BaseException:
        smtp.close()
        raise
    return smtp


def _log_in(smtp: smtplib.SMTP, user: str, password: str) -> None:
    try:
        smtp.login(user, password)
    except UnicodeError:  # its text shows a part of the password
        raise smtplib.SMTPException(_NOT_ASCII) from None


@lru_cache
def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """Return the trusted certificates, cached because reading them takes longer than a mail."""
    return ssl.create_default_context(cafile=ca_file)


def _answer(code: int, text: bytes | str, *, is_final: bool) -> Outcome:
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    refused = is_final and 500 <= code < 600
    start = f"the mail server answered {code}" if code >= 0 else "no mail server answered, but:"
    reason = plain_line(f"{start} {words}", _REASON_CHARACTERS)
    return Outcome(Status.REFUSED if refused else Status.FAILED, reason)
