"""A mail server for tests: a real one that keeps what it gets, and refuses what it is told to."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.service.receiving import Hold

PASSWORD = "a secret password"


class Mailbox:
    """What a server got; the next of `senders`, `recipients` or `contents` answers, not 250."""

    def __init__(self) -> None:
        self.port = 0
        self.mails = list[EmailMessage]()
        self.raw = list[bytes]()
        self.envelopes = list[Envelope]()
        self.sessions = list[Session]()
        self.senders = list[str]()
        self.recipients = list[str]()
        self.contents = list[str]()
        self.hold = Hold()
        self.extensions = ["PIPELINING"]

    async def handle_EHLO(  # noqa: N802
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        host: str,
        answers: list[str],
    ) -> list[str]:
        session.host_name = host
        return [*answers[:1], *(f"250-{name}" for name in self.extensions), *answers[1:]]

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.senders:
            return self.senders.pop(0)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - the name that the library looks for
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.recipients:
            return self.recipients.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.contents and not (answer := self.contents.pop(0)).startswith("250"):
            return answer
        content = envelope.content
        assert isinstance(content, bytes)
        mail = message_from_bytes(content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.raw.append(content)
        self.sessions.append(session)
        self.envelopes.append(envelope)
        self.mails.append(mail)
        if self.hold.is_on():
            await asyncio.to_thread(self.hold.wait)
        return "250 OK"


def _authenticate(
    server: Any, session: Any, envelope: Any, mechanism: str, data: Any
) -> AuthResult:
    right = (data.login, data.password) == (b"tidings", PASSWORD.encode())
    return AuthResult(success=right, handled=False)


@contextmanager
def mail_server(
    certificate: Path | None = None, *, utf8: bool = False, port: int = 0
) -> Iterator[Mailbox]:
    """Run a server in a thread; with a certificate, it wants STARTTLS and a password."""
    box, loop = Mailbox(), asyncio.new_event_loop()
    options: dict[str, Any] = {"loop": loop, "hostname": "localhost", "enable_SMTPUTF8": utf8}
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        options |= {"tls_context": context, "require_starttls": True, "auth_required": True}
        options |= {"authenticator": _authenticate}
    started, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = await loop.create_server(lambda: SMTP(box, **options), "127.0.0.1", port)
        box.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield box
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


def make_certificate(folder: Path) -> Path:
    """Write a certificate of localhost, with its key, that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "server.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    return path
