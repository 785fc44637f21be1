"""The output of the commands on stores, line by line."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from tidings.app.output.store_output import (
    print_addresses,
    print_channels,
    print_failures,
    print_inbox,
    print_letters,
    print_records,
    print_tokens,
)
from tidings.app.terminal import SafeConsole
from tidings.model.records import Delivery
from tidings.store.channels import FailedDelivery
from tidings.store.dead_letters import StoredLetter
from tidings.store.notifications import Inbox
from tidings.store.tokens import Token

SECOND = 1_000_000


def printed(write: Callable[..., None], *arguments: Any, **more: Any) -> list[list[str]]:
    """Return the cells of each line that a function prints: they are two blanks apart."""
    page = io.StringIO()
    write(SafeConsole(file=page, width=300), *arguments, **more)
    lines = [line.strip() for line in page.getvalue().splitlines()]
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in lines
        if line.strip(" ─")
    ]


def test_subscribers_have_their_policies() -> None:
    records = [{"id": "ada", "policy": {"k": 3}}, {"id": "bob", "paused": True}]
    assert printed(print_records, "subscriber", records, more=False) == [
        ["Subscriber", "Paused", "Policy"],
        ["ada", '{"k": 3}'],
        ["bob", "yes", "{}"],
        ["2 subscribers"],
    ]


def test_subscriptions_have_their_conditions_and_weights() -> None:
    records = [
        {"id": "s1", "subscriber": "ada", "where": "n = 1", "prefrank": 0.5},
        {"id": "s2", "subscriber": "ada", "any": [["n = 1", 2]], "score": 3},
        {"id": "s3", "damage": "no JSON"},
    ]
    assert printed(print_records, "subscription", records, more=False) == [
        ["Subscription", "Subscriber", "Condition", "Weight"],
        ["s1", "ada", "n = 1", "0.5"],
        ["s2", "ada", '[["n = 1", 2]]', "3"],
        ["s3", '"no JSON"'],
        ["3 subscriptions"],
    ]


def test_a_page_says_how_to_continue() -> None:
    [*_, last] = printed(print_records, "subscriber", [{"id": "ada"}], more=True)
    assert last == ["1 subscriber; continue with --after ada"]


@pytest.mark.parametrize(
    ("write", "arguments", "words"),
    [
        (print_inbox, ([], Inbox(0, 0)), "0 notifications, 0 unread"),
        (print_letters, ([], 7), "7 letters waiting"),
        (print_addresses, ([],), "0 channels"),
        (print_channels, ([],), "0 channels"),
        (print_tokens, ([],), "0 tokens"),
        (print_failures, ([],), "0 messages"),
    ],
)
def test_without_rows_there_is_no_table(
    write: Callable[..., None], arguments: tuple[Any, ...], words: str
) -> None:
    assert printed(write, *arguments) == [[words]]


def test_without_records_there_is_no_table() -> None:
    assert printed(print_records, "subscriber", [], more=False) == [["0 subscribers"]]


def test_unread_notifications_are_marked() -> None:
    deliveries = [
        Delivery(
            "ada",
            f"e{n}",
            0.123456,
            1,
            {},
            ("s1", "s2"),
            n,
            n * SECOND,
            '{"t":1}' if n == 2 else None,
        )
        for n in (1, 2)
    ]
    assert printed(print_inbox, deliveries, Inbox(2_000, 1)) == [
        ["Number", "Event", "Rank", "Delivered", "Matched by", "Content"],
        ["1", "e1", "0.1235", "1970-01-01T00:00:01Z", "s1, s2"],
        ["*", "2", "e2", "0.1235", "1970-01-01T00:00:02Z", "s1, s2", '{"t":1}'],
        ["2,000 notifications, 1,999 unread"],
    ]


def test_letters_have_their_reasons() -> None:
    letter = StoredLetter(7, "dead", {"id": "e1"}, "no [good]", "q", 0, None)
    assert printed(print_letters, [letter], 1) == [
        ["Letter", "Reason", "Record"],
        ["7", "no [good]", '{"id": "e1"}'],
        ["1 letter waiting"],
    ]


ADDRESS: dict[str, Any] = {
    "subscriber": "ada",
    "id": "m",
    "address": "a@b.example",
    "every": "day",
    "at": ["08:00", "18:00"],
    "sent": 1_234,
    "waiting": 5,
    "disabled": None,
    "verified": True,
    "paused": False,
    "failures": 0,
    "reason": None,
}


@pytest.mark.parametrize(
    ("changes", "when", "state"),
    [
        ({}, "08:00, 18:00", "working"),
        ({"every": "hour"}, "every hour", "working"),
        ({"failures": 2, "reason": "busy"}, "08:00, 18:00", "failing: busy"),
        ({"paused": True, "failures": 2}, "08:00, 18:00", "paused"),
        ({"verified": False, "paused": True}, "08:00, 18:00", "not verified"),
        ({"disabled": "gone", "verified": False}, "08:00, 18:00", "disabled: gone"),
    ],
)
def test_addresses_have_a_state_in_a_few_words(
    changes: dict[str, Any], when: str, state: str
) -> None:
    assert printed(print_addresses, [ADDRESS | changes]) == [
        ["Subscriber", "Channel", "Address", "When", "State", "Sent", "Waiting"],
        ["ada", "m", "a@b.example", when, state, "1,234", "5"],
        ["1 channel"],
    ]


def test_tokens_are_shown_without_what_they_lack() -> None:
    tokens = [
        Token("t1", "admin", "default", None, "", 0, None, None),
        Token("t2", "subscriber", "films", "ada", "phone", 0, SECOND, 2 * SECOND),
    ]
    assert printed(print_tokens, tokens) == [
        ["Token", "Role", "Tenant", "Subscriber", "Label", "Expires", "Revoked"],
        ["t1", "admin", "default"],
        [
            *("t2", "subscriber", "films", "ada", "phone"),
            *("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"),
        ],
        ["2 tokens"],
    ]


CHANNEL: dict[str, Any] = {
    "id": "out",
    "kind": "sqs",
    "subscriber": None,
    "state": "working",
    "sent": 1_000,
    "waiting": 0,
    "given_up": 0,
    "failures": 0,
    "reason": None,
    "given_up_reason": None,
    "next_at": None,
}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, []),
        ({"failures": 1, "state": "failing", "reason": "busy", "next_at": "T"}, ["busy"]),
        ({"state": "disabled", "reason": "gone"}, ["gone"]),
        ({"state": "disabled", "reason": None}, []),
        ({"waiting": 2, "next_at": "08:00"}, ["due at 08:00"]),
        ({"waiting": 0, "next_at": "08:00"}, []),
        ({"waiting": 2}, []),
        ({"given_up_reason": "too long"}, ["given up: too long"]),
        ({"state": "disabled", "reason": "gone", "given_up_reason": "gone"}, ["gone"]),
        (
            {"failures": 1, "reason": "busy", "given_up_reason": "too long"},
            ["busy; given up: too long"],
        ),
    ],
)
def test_channels_say_why_messages_were_not_sent(changes: dict[str, Any], why: list[str]) -> None:
    form = CHANNEL | changes
    header, row, last = printed(print_channels, [form])
    assert header == [
        *("Channel", "Kind", "Subscriber", "State", "Sent", "Waiting", "Given up", "Reason")
    ]
    assert row == ["out", "sqs", form["state"], "1,000", str(form["waiting"]), "0", *why]
    assert last == ["1 channel"]


def test_failures_say_when_they_are_tried_again() -> None:
    failures = [FailedDelivery(1, 2, SECOND, "busy"), FailedDelivery(2, 9, None, "too [long]")]
    assert printed(print_failures, failures) == [
        ["Message", "Attempts", "Again at", "Reason"],
        ["1", "2", "1970-01-01T00:00:01Z", "busy"],
        ["2", "9", "given up", "too [long]"],
        ["2 messages"],
    ]
