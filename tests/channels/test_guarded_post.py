"""Posts to addresses from outside: only where the rules allow, never redirected, never logged."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from tests.ports import reserved_port
from tests.service.receiving import receiver

from tidings.channels import guarded_post
from tidings.channels.guarded_post import PostAnswer, open_http, post
from tidings.channels.webhook_target import TargetRules

HERE = TargetRules.of(["*"], ["127.0.0.0/8"])
PUBLIC = TargetRules.of(["*"], [])


def sent(
    url: str,
    rules: TargetRules = HERE,
    body: bytes = b"{}",
    headers: Mapping[str, str] = {"Content-Type": "application/json"},
) -> PostAnswer:
    async def once() -> PostAnswer:
        async with open_http() as http:
            return await post(http, url, rules, body, headers)

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("status", "away", "success"),
    [
        (0, True, False),
        (199, False, False),
        (200, False, True),
        (204, False, True),
        (299, False, True),
        (300, False, False),
        (404, False, False),
        (500, False, False),
        (501, False, False),
        (502, True, False),
        (503, True, False),
        (504, True, False),
        (505, False, False),
    ],
)
def test_an_answer_is_that_of_somebody_or_of_nobody(status: int, away: bool, success: bool) -> None:
    answer = PostAnswer(status, "")
    assert (answer.is_away, answer.is_success) == (away, success)
    assert not answer._replace(allowed=False).is_away


def test_the_body_and_the_headers_arrive() -> None:
    with receiver() as hook:
        answer = sent(hook.url, body="{ä}".encode(), headers={"X-Test": "1", "Host": "other"})
        assert answer == PostAnswer(200, "", None)
        [received] = hook.received
    assert received.body == "{ä}".encode()
    assert received.headers["x-test"] == "1"
    assert received.headers["user-agent"] == "Tidings"


def test_a_name_is_resolved_and_sent_as_the_host() -> None:
    with receiver() as hook:
        url = hook.url.replace("127.0.0.1", "127.1")
        assert sent(url, TargetRules.of(["127.1"], ["127.0.0.1/32"])).is_success
        assert hook.received[0].headers["host"] == f"127.1:{hook.server_port}"


@pytest.mark.parametrize("status", [201, 400, 410, 500, 503])
def test_the_status_is_that_of_the_receiver(status: int) -> None:
    with receiver() as hook:
        hook.statuses[:] = [status]
        assert sent(hook.url) == PostAnswer(status, "", None)


def test_a_redirection_is_an_answer_and_not_followed() -> None:
    with receiver() as hook:
        hook.statuses[:] = [302]
        answer = sent(hook.url)
        assert (answer.status, answer.is_success) == (302, False)
        assert len(hook.received) == 1


@pytest.mark.parametrize(
    ("url", "rules"),
    [
        ("http://127.0.0.1:9/", PUBLIC),
        ("http://10.0.0.1/", HERE),
        ("ftp://films.example/", HERE),
        ("http://ann:Sw0rdfish@films.example/", HERE),
        ("http://films.example/", TargetRules.of(["*.other.example"], [])),
        ("nonsense", HERE),
    ],
)
def test_what_the_rules_forbid_is_not_sent(url: str, rules: TargetRules) -> None:
    answer = sent(url, rules)
    assert (answer.status, answer.allowed, answer.is_away) == (0, False, False)
    assert answer.text
    assert "Sw0rdfish" not in answer.text


def test_rules_hold_for_a_receiver_that_would_answer() -> None:
    with receiver() as hook:
        assert sent(hook.url, PUBLIC).allowed is False
        assert hook.received == []


def test_where_nobody_listens_the_reason_is_told() -> None:
    with reserved_port() as port:
        answer = sent(f"http://127.0.0.1:{port}/")
    assert (answer.status, answer.allowed, answer.is_away) == (0, True, True)
    assert answer.text


def test_a_receiver_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(url: str) -> PostAnswer:
        async with open_http() as http:
            monkeypatch.setattr(guarded_post, "ATTEMPT_S", 0.01)
            return await post(http, url, HERE, b"", {})

    with receiver() as hook, hook.hold.on():
        assert asyncio.run(once(hook.url)) == PostAnswer(0, "no answer within 0.01 s")


def test_no_log_shows_where_a_message_went(caplog: pytest.LogCaptureFixture) -> None:
    with receiver() as hook, caplog.at_level(logging.DEBUG):
        assert sent(f"{hook.url}/Sw0rdfish").is_success
        logging.getLogger("httpx2").info("another request")
    assert "Sw0rdfish" not in caplog.text
    assert "another request" in caplog.text


class Answer:
    """An answer whose text comes in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces, self.read = pieces, 0

    async def aiter_raw(self, size: int) -> Any:
        for piece in self.pieces:
            self.read += 1
            yield piece


@pytest.mark.parametrize(
    ("pieces", "text", "read"),
    [
        ((), "", 0),
        ((b"ab", b"c"), "abc", 2),
        ((b"x" * 600, b"y" * 600, b"z"), "x" * 600 + "y" * 400, 2),
        ((b"x" * 1_000, b"y"), "x" * 1_000, 1),
        ((b"\xff\xfe",), "\ufffd\ufffd", 1),
    ],
)
def test_only_the_beginning_of_a_text_is_read(
    pieces: tuple[bytes, ...], text: str, read: int
) -> None:
    answer: Any = Answer(*pieces)
    assert asyncio.run(guarded_post._beginning(answer)) == text
    assert answer.read == read
