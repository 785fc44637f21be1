"""Chats: what their answers mean."""

import pytest

from tidings.channels.chat import read_answer
from tidings.channels.guarded_post import PostAnswer
from tidings.channels.sender import SENT, Status
from tidings.model.values import SECOND_US

NOW_US = 1_700_000_000 * SECOND_US


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (PostAnswer(500, "internal_error"), Status.FAILED, "status 500: internal_error"),
        (PostAnswer(503, ""), Status.FAILED, "status 503"),
        (PostAnswer(404, "no_service"), Status.GONE, "status 404: no_service"),
        (PostAnswer(410, "channel_is_archived\n\x1b"), Status.GONE, "channel_is_archived"),
        (PostAnswer(0, "no answer within 15 s"), Status.FAILED, "no answer"),
        (PostAnswer(200, "Webhook message delivery failed"), Status.FAILED, "status 200"),
        (PostAnswer(302, ""), Status.FAILED, "status 302"),
    ],
)
def test_failures(answer: PostAnswer, status: Status, reason: str) -> None:
    outcome = read_answer(answer, NOW_US)
    assert outcome.status is status
    assert reason in outcome.reason


def test_success() -> None:
    assert read_answer(PostAnswer(200, "ok"), NOW_US) == SENT
    assert read_answer(PostAnswer(202, ""), NOW_US) == SENT


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", 7),
        ("0", 1),
        ("99999", 3_600),
        (None, 30),
        ("soon", 30),
        ("-5", 30),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 1),
        ("Tue, 14 Nov 99999999999999999999 22:14:20 GMT", 30),
    ],
)
def test_a_busy_chat_says_when(retry_after: str | None, seconds: int) -> None:
    outcome = read_answer(PostAnswer(429, "", retry_after), NOW_US)
    assert outcome.status is Status.LATER
    assert outcome.until_us == NOW_US + seconds * SECOND_US


def test_teams_says_it_in_the_text() -> None:
    text = "Webhook message delivery failed with error: the endpoint returned HTTP error 429"
    assert read_answer(PostAnswer(200, text), NOW_US).status is Status.LATER
