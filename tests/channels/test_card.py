"""Cards: sensible without a template, and nothing but text and checked links with one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Delivery
from tidings.channels.card import Card, CardTemplate, check_link, plain_line
from tidings.errors import InvalidForm


def delivery(content: Any = None, event: str = "e1", rank: float = 0.5) -> Delivery:
    text = None if content is None else json.dumps(content)
    return Delivery("ada", event, rank, 1, {}, ("s1", "s2"), 7, 0, text)


def test_the_usual_fields_are_shown() -> None:
    content = {
        "name": "Big Fish",
        "description": "A son\n\nlearns.",
        "url": "https://films.example/7?a=b&c=ü",
        "image": "http://films.example/7.png",
    }
    assert CardTemplate.load().card(delivery(content, rank=0.123456)) == Card(
        7,
        "Big Fish",
        "A son learns.",
        "https://films.example/7?a=b&c=%C3%BC",
        "http://films.example/7.png",
        "rank 0.123, because of s1, s2",
    )


def test_without_content_the_event_is_named() -> None:
    card = CardTemplate.load().card(delivery(), {"s1": "genre = 'drama'"})
    assert card == Card(7, "e1", None, None, None, "rank 0.5, because of genre = 'drama', s2")
    assert CardTemplate.load().card(delivery(event="\x00")).title == "(no title)"


def test_a_template_sees_content_and_delivery() -> None:
    form = {
        "title": "{{title}} for {{delivery.subscriber}}",
        "link": "https://x.example/{{kind}}/{{delivery.event}}?q={{title}}",
        "reason": "{{#delivery.matched}}[{{.}}]{{/delivery.matched}}",
    }
    template = CardTemplate.load(form)
    content = {"title": "a&b/c", "kind": "../..", "delivery": {"subscriber": "mallory"}}
    card = template.card(delivery(content))
    assert card.title == "a&b/c for ada"
    assert card.link == "https://x.example/..%2F../e1?q=a%26b%2Fc"
    assert card.reason == "[s1][s2]"
    assert CardTemplate.load(template.to_dict()).to_dict() == template.to_dict()


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"titel": "x"}, "unknown field 'titel'; expected one of: 'title', 'summary'"),
        ({"title": "\n{{"}, "title: line 2: a tag is opened"),
        ({"reason": 7}, "reason: a template is a text"),
        ([], "an object of texts"),
    ],
)
def test_a_wrong_template_is_refused(form: Any, reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        CardTemplate.load(form)


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "http://",
        "https://user:secret@evil.example/",
        'https://a.example/"onclick="x',
        "https://a.example/a|b",
        "https://a.example/ b",
        "https://[evil/",
        "mailto:a@b.example?bcc=c@d.example",
        "mailto:a@b.example\r\nBcc: x",
        "https://a.example/" + "x" * 2_000,
        "",
    ],
)
def test_other_links_are_left_out(text: str) -> None:
    assert check_link(text) is None


def test_good_links_stay() -> None:
    for link in ("https://a.example/b?c=d%20e#f", "http://127.0.0.1:80/", "mailto:a.b+c@d.example"):
        assert check_link(link) == link
    assert check_link("mailto:a@b.example", ("http", "https")) is None


@given(st.text())
def test_a_line_is_one_line_that_can_be_seen(text: str) -> None:
    line = plain_line(text)
    assert len(line.splitlines()) <= 1
    assert all(ord(character) >= 0x20 for character in line)
    line.encode()
    assert plain_line(line) == line
