"""Chats: messages to the incoming webhooks of Slack, Teams and compatible chats."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final

from tidings.channels.card import plain_line
from tidings.channels.guarded_post import PostAnswer
from tidings.channels.layouts import Digest, slack_layout, teams_layout
from tidings.channels.person_channel import SLACK, TEAMS
from tidings.channels.sender import SENT, Outcome, Status
from tidings.model.values import SECOND_US, time_us

JSON_HEADERS: Final = {"Content-Type": "application/json"}
KEY_HEADER: Final = "Idempotency-Key"
_LAYOUTS: Final[Mapping[str, Callable[[Digest], dict[str, Any]]]] = {
    SLACK: slack_layout,
    TEAMS: teams_layout,
}
_GONE: Final = (404, 410)
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_FIRST_PAUSE_S: Final = 30
_LONGEST_PAUSE_S: Final = 3_600
_REASON_CHARACTERS: Final = 200
_TEAMS_FAILURE: Final = "delivery failed"
"""In an answer of Teams with status 200."""


def chat_body(kind: str, digest: Digest) -> bytes:
    """Return a digest as the body of a request to a chat."""
    return json.dumps(_LAYOUTS[kind](digest), ensure_ascii=False).encode()


def read_answer(answer: PostAnswer, now_us: int) -> Outcome:
    """Return the outcome of an answer; a chat that is too busy says when to try again."""
    refuses = _TEAMS_FAILURE in answer.text.lower()
    if answer.is_success and not refuses:
        return SENT
    is_busy = answer.status == _TOO_MANY or (refuses and str(_TOO_MANY) in answer.text)
    if is_busy or (answer.status == _UNAVAILABLE and answer.retry_after):
        return Outcome(Status.LATER, until_us=now_us + _pause_us(answer.retry_after, now_us))
    if not answer.status:
        return Outcome(Status.FAILED, answer.text)
    words = plain_line(answer.text, _REASON_CHARACTERS)
    reason = f"the chat answers with status {answer.status}{': ' if words else ''}{words}"
    return Outcome(Status.GONE if answer.status in _GONE else Status.FAILED, reason)


def _pause_us(retry_after: str | None, now_us: int) -> int:
    """Return the pause that an answer asks for: seconds, or a date."""
    text = (retry_after or "").strip()
    pause_us = _FIRST_PAUSE_S * SECOND_US
    if text.isdecimal() and len(text) < 10:
        pause_us = int(text) * SECOND_US
    elif text:
        with suppress(OverflowError, TypeError, ValueError):
            pause_us = time_us(parsedate_to_datetime(text)) - now_us
    return min(max(pause_us, SECOND_US), _LONGEST_PAUSE_S * SECOND_US)
