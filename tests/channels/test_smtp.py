"""SMTP: what the server says decides what becomes of a mail, and secrets stay secret."""

import smtplib
import socket
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import Mock

import pytest
from tests.channels.mailbox import PASSWORD, Mailbox, mail_server, make_certificate
from tests.ports import reserved_port

from tidings.channels.mail import code_mail
from tidings.channels.sender import SENT, Status
from tidings.channels.smtp import SmtpConnections, SmtpSettings, read_sender, send_mail
from tidings.channels.transport import Secret
from tidings.errors import InvalidForm

HERE = Path()
TO = "ada@example.org"


@pytest.fixture(scope="module", params=[["PIPELINING"], []], ids=["at once", "one by one"])
def box(request: pytest.FixtureRequest) -> Iterator[Mailbox]:
    with mail_server() as box:
        box.extensions = request.param
        yield box


def local(box: Mailbox, **more: Any) -> SmtpSettings:
    form = {"host": "127.0.0.1", "port": box.port, "security": "none", "from": "t@films.example"}
    return SmtpSettings.load(form | more, HERE)


def mail(settings: SmtpSettings) -> bytes:
    return code_mail(settings, TO, "Grüße\n", "name", 0)


def test_a_mail_arrives(box: Mailbox) -> None:
    settings = local(box)
    assert send_mail(settings, TO, mail(settings)) == SENT
    arrived, envelope = box.mails[-1], box.envelopes[-1]
    assert arrived.get_content().strip() == "Grüße"
    assert arrived["Message-ID"] == "<name@films.example>"
    assert (envelope.mail_from, envelope.rcpt_tos) == ("t@films.example", [TO])


@pytest.mark.parametrize(
    ("where", "answer", "status"),
    [
        ("recipients", "451 4.7.1 Greylisted", Status.FAILED),
        ("recipients", "550 5.1.1 No such user", Status.REFUSED),
        ("contents", "452 4.3.1 Full", Status.FAILED),
        ("contents", "554 5.7.1 Spam", Status.REFUSED),
    ],
)
def test_a_refusal_for_now_and_for_good(
    box: Mailbox, where: str, answer: str, status: Status
) -> None:
    settings, before = local(box), len(box.mails)
    getattr(box, where).append(answer)
    outcome = send_mail(settings, TO, mail(settings))
    assert outcome.status is status
    assert outcome.reason == f"the mail server answered {answer}"
    assert len(box.mails) == before


def test_a_server_that_repeats_a_login_does_not_show_it(box: Mailbox) -> None:
    settings = local(box)
    guarded = replace(settings, user="tidings-bot", password=Secret(value=PASSWORD))
    whole = b64encode(f"\0tidings-bot\0{PASSWORD}".encode()).decode()
    repeated = f"535 tidings-bot, {PASSWORD}, {b64encode(PASSWORD.encode()).decode()}, {whole}"
    refused = smtplib.SMTPAuthenticationError(535, repeated.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smtplib.SMTP, "login", Mock(side_effect=refused))
        outcome = send_mail(guarded, TO, mail(settings))
    assert outcome == (Status.FAILED, "the mail server answered 535 535 ***, ***, ***, ***", 0)


def test_a_login_that_is_not_ascii_is_not_shown(box: Mailbox) -> None:
    settings = local(box, user="tidings", password="schlüssel")
    refused = UnicodeEncodeError("ascii", "schlüssel", 4, 5, "ordinal not in range(128)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smtplib.SMTP, "login", Mock(side_effect=refused))
        outcome = send_mail(settings, TO, mail(settings))
    assert outcome.status is Status.FAILED
    assert outcome.reason.endswith("take a user and a password in ASCII only")


def test_mails_share_a_connection(box: Mailbox) -> None:
    settings, before = local(box), len(box.sessions)
    connections = SmtpConnections(settings)
    connections.retain()
    for _ in range(3):
        assert connections.send(TO, mail(settings)) == SENT
    box.recipients.append("550 5.1.1 No such user")
    assert connections.send(TO, mail(settings)).status is Status.REFUSED
    assert connections.send(TO, mail(settings)) == SENT
    assert len({id(session) for session in box.sessions[before:]}) == 1
    connections.release()
    assert connections.send(TO, mail(settings)) == SENT
    assert box.sessions[-1] is not box.sessions[-2]


def test_a_connection_that_the_server_has_ended_is_replaced(box: Mailbox) -> None:
    settings, before = local(box), len(box.mails)
    connections = SmtpConnections(settings)
    connections.retain()
    assert connections.send(TO, mail(settings)) == SENT
    box.senders.append("421 4.7.0 Too many mails on this connection")
    assert connections.send(TO, mail(settings)) == SENT
    assert box.sessions[-1] is not box.sessions[-2]
    box.senders += ["421 4.3.2 Shutting down"] * 2  # a new connection is refused as well
    assert connections.send(TO, mail(settings)).status is Status.FAILED
    connections.release()
    assert len(box.mails) == before + 2


def test_a_server_that_was_restarted_gets_the_next_mail() -> None:
    with reserved_port() as port:
        with mail_server(port=port) as first:
            settings = local(first)
            connections = SmtpConnections(settings)
            connections.retain()
            assert connections.send(TO, mail(settings)) == SENT
        with mail_server(port=port) as second:
            assert connections.send(TO, mail(settings)) == SENT
            assert len(second.mails) == 1
            connections.release()


def test_a_mailbox_may_have_any_letters_where_the_server_allows_it(box: Mailbox) -> None:
    to = "jörg@example.org"
    with mail_server(utf8=True) as modern:
        settings = local(modern)
        letter = code_mail(settings, to, "Grüße\n", "name", 0)
        assert send_mail(settings, to, letter) == SENT
        assert modern.envelopes[-1].rcpt_tos == [to]
        assert f"To: {to}".encode() in modern.raw[-1]
    outcome = send_mail(local(box), to, code_mail(local(box), to, "Grüße\n", "name", 0))
    assert outcome.status is Status.REFUSED
    assert "SMTPUTF8" in outcome.reason


def test_a_server_that_is_down_is_tried_again() -> None:
    stopped = Mailbox()
    with reserved_port() as stopped.port:
        settings = local(stopped)
        outcome = send_mail(settings, TO, mail(settings))
    assert outcome.status is Status.FAILED
    assert f"127.0.0.1:{settings.port}: ConnectionRefusedError" in outcome.reason


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"security": "starttls"}, "STARTTLS extension not supported"),
        ({"security": "tls"}, "SSLError"),
        ({"user": "tidings", "password": PASSWORD}, "AUTH extension not supported"),
    ],
)
def test_a_server_that_cannot_do_what_is_set_is_tried_again(
    box: Mailbox, more: dict[str, str], reason: str
) -> None:
    """It is not the recipient's fault, and may be mended."""
    settings, before = local(box, **more), len(box.mails)
    outcome = send_mail(settings, TO, mail(settings))
    assert outcome.status is Status.FAILED
    assert reason in outcome.reason
    assert PASSWORD not in outcome.reason
    assert len(box.mails) == before


def test_what_answers_may_be_no_mail_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        foreign = Mailbox()
        foreign.port = server.getsockname()[1]

        def greet() -> None:
            with server.accept()[0] as connection:
                connection.sendall(b'INFO {"port": 4222}\r\n')

        greeter = Thread(target=greet)
        greeter.start()
        outcome = send_mail(local(foreign), TO, mail(local(foreign)))
        greeter.join(60)
    assert outcome == (Status.FAILED, 'no mail server answered, but: {"port": 4222}', 0)


def test_passwords_travel_encrypted_to_a_server_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with mail_server(certificate) as box:
        form = {"host": "localhost", "port": box.port, "from": "t@films.example", "user": "tidings"}
        secret = {"password": {"env": "MAIL_PASSWORD"}, "ca_file": certificate.name}
        settings = SmtpSettings.load(form | secret, tmp_path)
        assert settings.security == "starttls"
        assert send_mail(settings, TO, mail(settings)) == SENT
        assert PASSWORD not in repr(settings)
        unknown = SmtpSettings.load(form | {"password": PASSWORD}, tmp_path)
        outcome = send_mail(unknown, TO, mail(unknown))
        assert outcome.status is Status.FAILED
        assert "certificate" in outcome.reason
        wrong = SmtpSettings.load(form | secret | {"password": "wrong secret"}, tmp_path)
        assert "wrong secret" not in repr(wrong)
        outcome = send_mail(wrong, TO, mail(wrong))
        assert outcome.status is Status.FAILED  # not the fault of the recipient
        assert "535" in outcome.reason
        assert "wrong secret" not in outcome.reason
        assert len(box.mails) == 1
    monkeypatch.delenv("MAIL_PASSWORD")
    outcome = send_mail(settings, TO, mail(settings))
    assert outcome.status is Status.FAILED


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"host": "h"}, "from is missing"),
        ({"host": "h", "from": "x"}, "written name@example.org"),
        ({"host": "h", "from": "a@b.example", "port": 0}, "port is a whole number"),
        ({"host": "h", "from": "a@b.example", "security": "ssl"}, "security is one of"),
        ({"host": "h", "from": "a@b.example", "user": "u"}, "must be given together"),
        ({"host": "h", "from": "a@b.example", "pass": "p"}, "unknown key 'pass'"),
        (
            {"host": "h", "from": "a@b.example", "security": "none", "user": "u", "password": "p"},
            "starttls or tls",
        ),
    ],
)
def test_wrong_settings_are_refused(form: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        SmtpSettings.load(form, HERE)


@pytest.mark.parametrize("text", ["", "x", "a@b.example\r\nBcc: c@d.example", 7, "a b@c.example"])
def test_a_sender_is_one_address(text: Any) -> None:
    with pytest.raises(InvalidForm):
        read_sender(text)


def test_ports_follow_the_security() -> None:
    form = {"host": "h", "from": "Films <a@b.example>"}
    ports = [
        SmtpSettings.load(form | {"security": word}, HERE).port
        for word in ("starttls", "tls", "none")
    ]
    assert ports == [587, 465, 25]
