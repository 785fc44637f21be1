"""Channels of people: what they take, and when it goes."""

from typing import Any

import pytest

from tidings import Delivery
from tidings.channels.person_channel import PersonChannel, read_mail_address
from tidings.channels.webhook_target import TargetRules
from tidings.errors import InvalidForm
from tidings.model.values import format_time, parse_time_us

RULES = TargetRules.of(["*"], [])


def load(**form: Any) -> PersonChannel:
    return PersonChannel.load({"kind": "mail", "address": "a@b.example", **form}, RULES)


def delivery(rank: float = 0.5, *matched: str, at: str = "2026-03-02T12:00:00Z") -> Delivery:
    return Delivery("ada", "e", rank, 1, {}, matched, 1, parse_time_us(at))


def test_mail_comes_in_the_morning_and_chat_at_once() -> None:
    assert (load().every, load().at) == ("day", ("08:00",))
    chat = PersonChannel.load({"kind": "slack", "address": "https://hooks.example/x"}, RULES)
    assert chat.every == "delivery"
    person = load(at="17:30", days=["Friday", "mon"], interests=["s1"], label="Home")
    assert PersonChannel.of({"person": person.to_dict()}) == person


@pytest.mark.parametrize(
    ("form", "at", "due"),
    [
        ({}, "2026-03-02T07:59:59Z", "2026-03-02T08:00:00Z"),
        ({}, "2026-03-02T08:00:00Z", "2026-03-03T08:00:00Z"),
        ({"zone": "Europe/Athens"}, "2026-03-02T05:00:00Z", "2026-03-02T06:00:00Z"),
        ({"zone": "Europe/Athens"}, "2026-03-28T07:00:00Z", "2026-03-29T05:00:00Z"),  # summer
        ({"at": ["08:00", "18:00"]}, "2026-03-02T08:00:00Z", "2026-03-02T18:00:00Z"),
        ({"days": ["fri"]}, "2026-03-02T08:00:00Z", "2026-03-06T08:00:00Z"),
        ({"every": "hour"}, "2026-03-02T08:10:00Z", "2026-03-02T09:00:00Z"),
        ({"every": "delivery"}, "2026-03-02T08:10:00Z", "2026-03-02T08:10:00Z"),
    ],
)
def test_a_message_goes_at_the_end_of_its_period(form: Any, at: str, due: str) -> None:
    person, now_us = load(**form), parse_time_us(at)
    due_us = person.due_us(delivery(at=at), None, now_us)
    assert format_time(due_us) == format_time(parse_time_us(due))
    if form.get("every") != "delivery":
        later = person.due_us(delivery(at="2020-01-01"), now_us, now_us)
        assert later == due_us  # one message a period, however old the events are
    assert person.due_us(delivery(at="2020-01-01"), None, now_us) <= now_us


def test_what_a_channel_takes() -> None:
    assert load().takes(delivery(0.0))
    urgent, rest = load(min_rank=0.9), load(below_rank=0.9)
    for rank in (0.0, 0.89, 0.9, 0.95, 7.0):
        assert urgent.takes(delivery(rank)) != rest.takes(delivery(rank))
    named = load(interests=["s1", "s2"])
    assert [named.takes(delivery(0.5, *names)) for names in (["s2", "s9"], ["s9"], [])] == [1, 0, 0]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a",
            "@b.example",
            "a@",
            "a@b@c.example",
            "a b@c.example",
            "a@b..example",
            "a\u202eb@b.example",
            "é\u00a0@b.example",
        ),
        *(
            "a@b.example\r\nBcc: c@d.example",
            "a\n@b.example",
            "<a@b.example>",
            "a@-",
            ".a@b.example",
        ),
        *(
            "x" * 65 + "@b.example",
            "é" * 33 + "@b.example",
            "a@" + "b" * 64 + ".example",
            None,
            7,
            ["a@b.example"],
        ),
    ],
)
def test_other_texts_are_no_mailboxes(text: Any) -> None:
    with pytest.raises(InvalidForm, match=r"name@example\.org"):
        read_mail_address(text)


@pytest.mark.parametrize(
    "url",
    ["https://u:SECRET@hooks.example/", "https://hooks.example/#SECRET", "SECRET", "ht!p://SECRET"],
)
def test_the_address_of_a_chat_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidForm) as caught:
        PersonChannel.load({"kind": "teams", "address": url}, RULES)
    assert "SECRET" not in str(caught.value)


def test_mailboxes_keep_their_names() -> None:
    for text in ("a.b+c@d.example", "O'Neil!x@example.org", "ada@localhost"):
        assert read_mail_address(text) == text
    assert read_mail_address("Ada@EXAMPLE.org") == "Ada@example.org"
    for text in (
        "jörg@example.org",
        "δοκιμή@example.org",
        "संपर्क@example.org",
        "用户@example.org",
    ):
        assert read_mail_address(text) == text
    assert read_mail_address("jo\u0308rg@example.org") == "jörg@example.org"
