"""Layouts: hostile text stays text, in plain text, HTML, Slack and Teams alike."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Delivery
from tidings.channels.card import Card, CardTemplate
from tidings.channels.layouts import (
    Digest,
    DigestLinks,
    html_layout,
    message_bytes,
    slack_layout,
    teams_layout,
    text_layout,
)

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title><a href='javascript:x'>",
    "&lt;b&gt;",
    "<!channel> <@U1> <https://evil.example|bank.example>",
    "*bold* _it_ ~s~ `c` > quote",
    "[bank](https://evil.example) **b** {{DATE(2026-01-01T00:00:00Z,SHORT)}} {{{x}}}",
    "a\r\nBcc: all@example.org\r\n\r\n2. Forged",
    "\n\n2. Forged\n   Why: rank 9",
    "\x1b[2J\u202egnp.exe",
]
hostile = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))
contents = st.fixed_dictionaries(
    {},
    optional={
        "title": hostile,
        "summary": hostile,
        "link": hostile | st.just("https://films.example/1?a=b&c=d"),
        "image": hostile | st.just("https://films.example/1.png"),
    },
)
digests = st.lists(contents, min_size=1, max_size=4).map(lambda forms: digest(*forms))
LINKS = DigestLinks(
    "https://t.example/pause?a&b", {1: "https://t.example/no/1"}, {}, "https://t.example/o"
)


def digest(*contents: Any, links: DigestLinks | None = None) -> Digest:
    template = CardTemplate.load()
    deliveries = [
        Delivery("ada", f"e{number}", 0.5, 1, {}, ("s1",), number, 0, json.dumps(content))
        for number, content in enumerate(contents, start=1)
    ]
    return Digest.of([template.card(delivery) for delivery in deliveries], links)


class Reader(HTMLParser):
    """What a browser would see of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = list[str]()
        self.attributes = list[tuple[str, str | None]]()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@given(digests)
def test_html_has_only_the_tags_of_the_layout(shown: Digest) -> None:
    reader = Reader()
    reader.feed(html_layout(shown))
    expected = ["html", "head", "meta", "title", "body", "div"]
    for card in shown.cards:
        expected += ["div", "h2", *["a"] * bool(card.link), *["img"] * bool(card.image)]
        expected += ["p"] * (bool(card.summary) + bool(card.reason))
    assert reader.tags == expected
    assert {name for name, _ in reader.attributes} <= {"href", "src", "alt", "style", "charset"}
    for name, value in reader.attributes:
        if name in ("href", "src"):
            assert str(value).startswith(("http://", "https://", "mailto:"))
    for card in shown.cards:
        assert card.title in reader.text
        assert (card.summary or "") in reader.text


@given(digests)
def test_only_the_layout_begins_a_line_of_text(shown: Digest) -> None:
    lines = text_layout(shown).splitlines()
    margin = [line for line in lines if line and not line.startswith("   ")]
    assert margin == [f"{place}. {card.title}" for place, card in enumerate(shown.cards, 1)]
    reasons = [line for line in lines if line.startswith("   Why: ")]
    assert len(reasons) >= len(shown.cards)
    assert all(
        character.isprintable() for line in lines for character in line if ord(character) < 160
    )


def leaves(form: Any) -> list[dict[str, Any]]:
    """Return all objects of a form."""
    if isinstance(form, list):
        return [leaf for item in form for leaf in leaves(item)]
    if not isinstance(form, dict):
        return []
    return [form, *(leaf for value in form.values() for leaf in leaves(value))]


@given(digests)
def test_slack_gets_text_where_it_looks_for_no_markup(shown: Digest) -> None:
    message = slack_layout(shown)
    kinds = {leaf["type"] for leaf in leaves(message["blocks"]) if "type" in leaf}
    assert kinds <= {"rich_text", "rich_text_section", "text", "link"}
    assert not set("<>") & set(message["text"])
    assert message["mrkdwn"] is False
    titles = [block["elements"][0]["elements"][0]["text"] for block in message["blocks"]]
    assert titles == [card.title for card in shown.cards]
    for leaf in leaves(message):
        if leaf.get("type") == "link":
            assert leaf["url"].startswith(("http://", "https://", "mailto:"))


@given(digests)
def test_teams_gets_text_where_it_looks_for_no_markup(shown: Digest) -> None:
    content = teams_layout(shown)["attachments"][0]["content"]
    blocks = content["body"]
    assert {leaf["type"] for leaf in leaves(blocks)} <= {
        "RichTextBlock",
        "TextRun",
        "Action.OpenUrl",
    }
    assert all("{{" not in leaf.get("text", "") for leaf in leaves(blocks))
    titles = [run["text"] for leaf in blocks if leaf.get("separator") for run in leaf["inlines"]]
    assert [title.replace("{ ", "{") for title in titles] == [
        card.title.replace("{ ", "{") for card in shown.cards
    ]


@pytest.mark.parametrize("layout", [slack_layout, teams_layout])
def test_a_chat_message_is_small_enough(layout: Any) -> None:
    wide = Card(
        1,
        "\U0001f41f" * 300,
        "\U0001f41f " * 500,
        "https://x.example/" + "y" * 1_900,
        None,
        "é" * 500,
    )
    assert message_bytes(layout(Digest.of([wide] * 10))) <= 28_000
    small = Card(1, "Big Fish", "long " * 100, None, None, "rank 1")
    assert "long long" in json.dumps(layout(Digest.of([small])))


def test_links_of_the_service_are_shown() -> None:
    shown = digest({"title": "a", "link": "https://x.example/"}, {"title": "b"}, links=LINKS)
    text, document = text_layout(shown), html_layout(shown)
    assert "Pause these messages: https://t.example/pause?a&b\n" in text
    assert text.count("Not for me: https://t.example/no/1\n") == 1
    assert 'href="https://t.example/pause?a&amp;b"' in document
    assert 'src="https://t.example/o"' in document
    assert shown.heading == "a, and 1 more"
    visited = shown._replace(links=LINKS._replace(visit={1: "https://t.example/v"}))
    assert 'href="https://x.example/"' not in html_layout(visited)


@pytest.mark.parametrize("layout", [slack_layout, teams_layout])
def test_chats_show_links_of_the_service(layout: Any) -> None:
    contents = {"title": "a", "link": "https://x.example/"}, {"title": "b"}
    shown = digest(*contents, links=LINKS._replace(visit={1: "https://t.example/v"}))
    found = [leaf["url"] for leaf in leaves(layout(shown)) if "url" in leaf]
    assert found == ["https://t.example/v", "https://t.example/no/1", LINKS.pause]
    words = [leaf.get("text") for leaf in leaves(layout(shown))]
    assert (words.count("Not for me"), words.count("Pause these messages")) == (1, 1)
    assert "https://t.example" not in json.dumps(layout(digest(*contents)))
