"""Mail that comes back: its deliveries are given up, and the third ends the channel."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.channels.bounces import Bounce, note_bounce, read_bounce
from tidings.errors import InvalidForm
from tidings.store import Store, open_store
from tidings.store.channels import ChannelDraft
from tidings.store.digests import SENT, FixedDigest

REPORT = """\
From: MAILER-DAEMON@mx.example
To: t@films.example
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

Sorry.
--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; ada@example.org
Action: {action}
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 No such
 user

--B
Content-Type: {kind}

From: t@films.example
Message-ID: <{id}@films.example>
Subject: x

{body}
--B--
"""


def report(name: str = "abc", action: str = "failed", kind: str = "message/rfc822") -> bytes:
    body = "Hello" if kind == "message/rfc822" else ""
    return REPORT.format(id=name, action=action, kind=kind, body=body).encode()


@pytest.mark.parametrize("kind", ["message/rfc822", "text/rfc822-headers"])
def test_a_report_names_the_mail_and_the_reason(kind: str) -> None:
    expected = Bounce("abc", "it came back: smtp; 550 5.1.1 No such user")
    assert read_bounce(report(kind=kind)) == expected
    assert read_bounce(report(kind=kind).replace(b"\n", b"\r\n")) == expected


def test_a_delay_is_no_bounce() -> None:
    assert read_bounce(report(action="delayed")) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"Subject: Out of office\n\nI am away.",
        b"\xff\xfe\x00",
        report().replace(b"Message-ID", b"X-Other"),
        report().replace(b"<abc@", b"<a b c@"),
        b"x" * 1_000_001,
    ],
)
def test_another_mail_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidForm):
        read_bounce(content)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def test_what_came_back_is_given_up(store: Store) -> None:
    key = store.channels.put(ChannelDraft("mail", "home", "ada"), 0).key
    for first in (1, 2, 3):
        sequences = (first * 10, first * 10 + 1)
        store.digests.fix(FixedDigest(key, first, first, first, sequences, f"id{first}", 0, SENT))
    assert note_bounce(store, Bounce("unknown", "x")) is None
    for first in (1, 2, 3):
        assert note_bounce(store, Bounce(f"id{first}", "gone")) is not None
        channel = store.channels.get(key)
        assert channel is not None
        assert (channel.disabled == "gone") == (first == 3)
    failures = store.channels.failures(key)
    assert [(failure.number, failure.next_us) for failure in failures] == [
        (number, None) for number in (10, 11, 20, 21, 30, 31)
    ]
