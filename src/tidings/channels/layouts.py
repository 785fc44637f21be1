"""Digests laid out as text, HTML, Slack blocks and a card of Teams.

Everything a card holds is text. HTML escapes it; Slack gets it in elements of rich text, and Teams
in runs of text, in which neither looks for markup. In plain text, nothing but the layout begins a
line at the margin.
"""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from tidings.channels.card import Card

_WIDTH: Final = 76
_INDENT: Final = "   "
_SUBJECT_CHARACTERS: Final = 120
_CHAT_TITLE: Final = 150
_CHAT_BYTES: Final = 24_000
"""Of a message: Teams refuses those above 28 kB."""
_SUMMARIES: Final = (300, 100, 0)
"""Characters of a summary in chat: the first that makes the message small enough."""
_PAUSE: Final = "Pause these messages"
_DISMISS: Final = "Not for me"
_SMALL: Final[dict[str, Any]] = {"isSubtle": True, "size": "Small"}
_FUNCTION: Final = re.compile(r"\{(?=\{)")
_STYLE: Final = {
    "body": "margin:0;padding:24px;background:#f4f5f7;color:#1c1e21;"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif",
    "page": "max-width:600px;margin:0 auto",
    "card": "margin:0 0 16px;padding:16px;background:#ffffff;border-radius:8px",
    "title": "margin:0;font-size:18px",
    "link": "color:#0b57d0",
    "image": "display:block;max-width:100%;margin:8px 0;border-radius:4px",
    "text": "margin:4px 0",
    "small": "margin:4px 0;font-size:13px;color:#5f6368",
}


class DigestLinks(NamedTuple):
    """Addresses of the service for one message: each is left out if there is none.

    `dismiss` has the "not for me" of a card, and `visit` the way to its link through the service,
    by sequence number.
    """

    pause: str | None = None
    dismiss: Mapping[int, str] = {}
    visit: Mapping[int, str] = {}
    opened: str | None = None

    def target(self, card: Card) -> str | None:
        """Return where the title of a card leads, if anywhere."""
        return self.visit.get(card.sequence, card.link) if card.link else None


class Digest(NamedTuple):
    """The cards of one message, best first, with its heading and links."""

    heading: str
    cards: Sequence[Card]
    links: DigestLinks = DigestLinks()

    @classmethod
    def of(cls, cards: Sequence[Card], links: DigestLinks | None = None) -> "Digest":
        """Return the digest of cards, headed by the first one's title.

        >>> Digest.of([Card(1, "Big Fish", None, None, None, "rank 1")]).heading
        'Big Fish'
        """
        heading, more = cards[0].title[:_SUBJECT_CHARACTERS], len(cards) - 1
        if more:
            heading += f", and {more} more"
        return cls(heading, cards, links or DigestLinks())


def text_layout(digest: Digest) -> str:
    """Return a digest as plain text."""
    blocks = [_text_card(place, card, digest) for place, card in enumerate(digest.cards, 1)]
    if digest.links.pause:
        blocks.append(f"{_PAUSE}: {digest.links.pause}")
    return "\n\n".join(blocks) + "\n"


def _text_card(place: int, card: Card, digest: Digest) -> str:
    lines = [f"{place}. {card.title}"]
    if card.summary:
        options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        lines += textwrap.wrap(card.summary, _WIDTH - len(_INDENT), **options)
    lines += [card.link] if card.link else []
    lines += [f"Why: {card.reason}"] if card.reason else []
    dismiss = digest.links.dismiss.get(card.sequence)
    lines += [f"{_DISMISS}: {dismiss}"] if dismiss else []
    return f"\n{_INDENT}".join(lines)


def html_layout(digest: Digest) -> str:
    """Return a digest as an HTML document without scripts, forms or styles from elsewhere."""
    heading, links = escape(digest.heading), digest.links
    cards = "\n".join(_html_card(card, links) for card in digest.cards)
    pause = _html_small(_html_link(links.pause, _PAUSE)) if links.pause else ""
    pixel = (
        f'<img src="{escape(links.opened)}" width="1" height="1" alt="">' if links.opened else ""
    )
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{heading}</title></head>\n'
        f'<body style="{escape(_STYLE["body"])}"><div style="{_STYLE["page"]}">\n'
        f"{cards}\n{pause}{pixel}</div></body></html>\n"
    )


def _html_card(card: Card, links: DigestLinks) -> str:
    title = escape(card.title)
    target = links.target(card)
    pieces = [
        f'<h2 style="{_STYLE["title"]}">{_html_link(target, title) if target else title}</h2>'
    ]
    if card.image:
        pieces.append(f'<img src="{escape(card.image)}" alt="" style="{_STYLE["image"]}">')
    if card.summary:
        pieces.append(f'<p style="{_STYLE["text"]}">{escape(card.summary)}</p>')
    if card.reason:
        pieces.append(_html_small(escape(card.reason)))
    if dismiss := links.dismiss.get(card.sequence):
        pieces.append(_html_small(_html_link(dismiss, _DISMISS)))
    return f'<div style="{_STYLE["card"]}">{"".join(pieces)}</div>'


def _html_link(address: str, escaped: str) -> str:
    return f'<a href="{escape(address)}" style="{_STYLE["link"]}">{escaped}</a>'


def _html_small(escaped: str) -> str:
    return f'<p style="{_STYLE["small"]}">{escaped}</p>'


def slack_layout(digest: Digest) -> dict[str, Any]:
    """Return a digest as a message of Slack: blocks of rich text, and a text for notifications."""
    return _small_enough(digest, _slack_message)


def _slack_message(digest: Digest, characters: int) -> dict[str, Any]:
    blocks = [_slack_card(card, digest.links, characters) for card in digest.cards]
    if digest.links.pause:
        blocks.append(_slack_block([_slack_link(digest.links.pause, _PAUSE)]))
    # Without markup: `<!channel>` would call everybody, and `<https://...|...>` hide an address.
    text = digest.heading.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text, "mrkdwn": False, "blocks": blocks, "unfurl_links": False}


def _slack_card(card: Card, links: DigestLinks, characters: int) -> dict[str, Any]:
    title: dict[str, Any] = {"type": "text", "text": card.title[:_CHAT_TITLE]}
    if target := links.target(card):
        title |= {"type": "link", "url": target}
    elements = [title | {"style": {"bold": True}}]
    if summary := _summary(card, characters):
        elements.append({"type": "text", "text": f"\n{summary}"})
    if card.reason:
        elements.append({"type": "text", "text": f"\n{card.reason}", "style": {"italic": True}})
    if dismiss := links.dismiss.get(card.sequence):
        elements += [{"type": "text", "text": "\n"}, _slack_link(dismiss, _DISMISS)]
    return _slack_block(elements)


def _slack_link(address: str, text: str) -> dict[str, Any]:
    return {"type": "link", "url": address, "text": text}


def _slack_block(elements: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def teams_layout(digest: Digest) -> dict[str, Any]:
    """Return a digest as a message of Teams: one Adaptive Card of runs of text."""
    return _small_enough(digest, _teams_message)


def _teams_message(digest: Digest, characters: int) -> dict[str, Any]:
    links = digest.links
    body = [block for card in digest.cards for block in _teams_card(card, links, characters)]
    if links.pause:
        body.append(_teams_block(_PAUSE, _teams_link(links.pause) | _SMALL))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    content_type = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": content_type, "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _teams_card(card: Card, links: DigestLinks, characters: int) -> list[dict[str, Any]]:
    title: dict[str, Any] = {"weight": "Bolder", "size": "Medium"}
    if target := links.target(card):
        title |= _teams_link(target)
    blocks = [_teams_block(card.title[:_CHAT_TITLE], title) | {"separator": True}]
    if summary := _summary(card, characters):
        blocks.append(_teams_block(summary, {}))
    if card.reason:
        blocks.append(_teams_block(card.reason, _SMALL))
    if dismiss := links.dismiss.get(card.sequence):
        blocks.append(_teams_block(_DISMISS, _teams_link(dismiss) | _SMALL))
    return blocks


def _teams_link(address: str) -> dict[str, Any]:
    return {"selectAction": {"type": "Action.OpenUrl", "url": address}}


def _teams_block(text: str, style: Mapping[str, Any]) -> dict[str, Any]:
    # `{{DATE(...)}}` is the one function that is looked for even here.
    run = {"type": "TextRun", "text": _FUNCTION.sub("{ ", text), **style}
    return {"type": "RichTextBlock", "inlines": [run]}


def _summary(card: Card, characters: int) -> str:
    return textwrap.shorten(card.summary or "", characters, placeholder="…") if characters else ""


def _small_enough(digest: Digest, layout: Any) -> dict[str, Any]:
    """Return the first layout, with shorter and shorter summaries, that a chat accepts."""
    for characters in _SUMMARIES:
        message: dict[str, Any] = layout(digest, characters)
        if message_bytes(message) <= _CHAT_BYTES:
            return message
    bare = [card._replace(reason="", link=None) for card in digest.cards]
    final: dict[str, Any] = layout(digest._replace(cards=bare), 0)
    return final


def message_bytes(message: Mapping[str, Any]) -> int:
    """Return the size of a message as it is sent."""
    return len(json.dumps(message, ensure_ascii=False).encode())


def all_layouts(digest: Digest) -> dict[str, Any]:
    """Return a digest in every layout, by name, with its heading."""
    return {
        "heading": digest.heading,
        "text": text_layout(digest),
        "html": html_layout(digest),
        "slack": slack_layout(digest),
        "teams": teams_layout(digest),
    }
