"""Mails: read back by the standard library, they hold what a digest holds, and nothing else."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP, default
from typing import Any

from hypothesis import given
from tests.channels.test_layouts import LINKS, digest, digests

from tidings.channels.layouts import Digest, html_layout, text_layout
from tidings.channels.mail import digest_mail
from tidings.channels.smtp import SmtpSettings

SETTINGS = SmtpSettings("localhost", "Films & more <t@films.example>", 25)


def arrived(shown: Digest) -> EmailMessage:
    mail = digest_mail(SETTINGS, "ada@example.org", shown, "0f3c", 1_700_000_000_000_000)
    read: Any = message_from_bytes(mail, policy=default)
    assert isinstance(read, EmailMessage)
    return read


def parts(mail: EmailMessage) -> list[EmailMessage]:
    return [part for part in mail.iter_parts() if isinstance(part, EmailMessage)]


def test_a_mail_has_all_that_mail_programs_want() -> None:
    mail = arrived(digest({"title": "Größe & so"}, links=LINKS))
    assert mail["From"].addresses[0].display_name == "Films & more"
    assert mail["To"] == "ada@example.org"
    assert mail["Subject"] == "Größe & so"
    assert mail["Date"].datetime.isoformat() == "2023-11-14T22:13:20+00:00"
    assert mail["Message-ID"] == "<0f3c@films.example>"
    assert mail["List-Unsubscribe"] == "<https://t.example/pause?a&b>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]


def test_long_addresses_are_sent_as_they_are() -> None:
    """And are not encoded like text, which no mail program would decode."""
    pause = "https://tidings.example/readers/" + "a1b2" * 40
    shown = digest({}, links=LINKS._replace(pause=pause))
    settings = SmtpSettings("localhost", f"t@{'films.' * 20}example", 25)
    lines = digest_mail(settings, "a@b.example", shown, "0f" * 24, 0).split(b"\r\n")
    assert f"List-Unsubscribe: <{pause}>".encode() in lines
    assert f"Message-ID: <{'0f' * 24}@{'films.' * 20}example>".encode() in lines


def test_without_an_address_of_the_service_there_is_nothing_to_click() -> None:
    mail = arrived(digest({}))
    assert "List-Unsubscribe" not in mail
    assert "List-Unsubscribe-Post" not in mail


@given(digests)
def test_hostile_text_changes_no_header_and_no_part(shown: Digest) -> None:
    mail = arrived(shown)
    assert set(mail.keys()) == {
        *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"),
        "Content-Type",
    }
    assert mail["To"] == "ada@example.org"
    assert mail["Subject"] == shown.heading
    text, document = mail.iter_parts()
    assert isinstance(text, EmailMessage)
    assert isinstance(document, EmailMessage)
    assert text.get_content().replace("\r\n", "\n") == text_layout(shown)
    assert document.get_content().replace("\r\n", "\n") == html_layout(shown)


@given(digests)
def test_a_mail_reads_as_one_of_the_standard_library(shown: Digest) -> None:
    written = EmailMessage(policy=SMTP)
    written["From"], written["To"] = SETTINGS.sender, "ada@example.org"
    written["Subject"] = shown.heading
    written.set_content(text_layout(shown), cte="quoted-printable")
    written.add_alternative(html_layout(shown), subtype="html", cte="quoted-printable")
    read, mail = message_from_bytes(written.as_bytes(), policy=default), arrived(shown)
    assert isinstance(read, EmailMessage)
    assert all(mail[name] == read[name] for name in ("From", "To", "Subject"))
    assert [part.get_content() for part in parts(mail)] == [
        part.get_content() for part in parts(read)
    ]


def test_a_mail_that_is_sent_again_is_the_same() -> None:
    shown = digest({"title": "--=_0f3c", "summary": "x" * 75 + " --=_0f3c--" * 9})
    mails = {digest_mail(SETTINGS, "a@b.example", shown, "0f3c", 0) for _ in range(3)}
    assert len(mails) == 1
    assert len(list(arrived(shown).iter_parts())) == 2


@given(digests)
def test_lines_are_as_short_as_servers_want(shown: Digest) -> None:
    mail = digest_mail(SETTINGS, "ada@example.org", shown, "0f3c", 0)
    lines = mail.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    assert all(line.isascii() for line in lines)
