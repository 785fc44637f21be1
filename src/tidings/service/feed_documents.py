"""Notifications as documents for feed readers: Atom (RFC 4287) and JSON Feed 1.1.

They show the cards of the service's template, as mail and chats do. Content of an event is always
text, never markup, and characters that XML cannot represent are left out.
"""

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID, uuid5
from xml.etree import ElementTree as ET

from tidings.channels.card import CardTemplate
from tidings.model.records import Delivery
from tidings.model.values import format_time

ATOM: Final = "application/atom+xml"
JSON_FEED: Final = "application/feed+json"
_NAMESPACE: Final = "http://www.w3.org/2005/Atom"
_IDS: Final = UUID("8d1c3f4e-5a47-4b0c-9e38-5d2f0d6a7c11")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEFAULT: Final = CardTemplate.load()


class FeedEntry(NamedTuple):
    """The part of a notification that a feed reader shows; ids are the same in every document."""

    id: str
    title: str
    link: str | None
    summary: str | None
    time: str


def read_entry(tenant: str, delivery: Delivery, template: CardTemplate) -> FeedEntry:
    """Return the entry of a notification, rendered with a template."""
    card = template.card(delivery)
    name = _urn(tenant, delivery.subscriber, delivery.event)
    return FeedEntry(name, card.title, card.link, card.summary, delivery.delivered_at)


def write_atom(
    tenant: str,
    subscriber: str,
    deliveries: Sequence[Delivery],
    template: CardTemplate = _DEFAULT,
) -> bytes:
    """Return an Atom document of notifications, newest first."""
    feed = ET.Element("feed", xmlns=_NAMESPACE)
    updated = deliveries[0].delivered_at if deliveries else format_time(0)
    _add(feed, "id", _urn(tenant, subscriber))
    _add(feed, "title", f"Tidings for {subscriber}")
    _add(feed, "updated", updated)
    _add(ET.SubElement(feed, "author"), "name", "Tidings")
    for entry in (read_entry(tenant, delivery, template) for delivery in deliveries):
        element = ET.SubElement(feed, "entry")
        _add(element, "id", entry.id)
        _add(element, "title", entry.title)
        _add(element, "updated", entry.time)
        if entry.link:
            ET.SubElement(element, "link", href=_clean(entry.link))
        _add(element, "content", entry.summary or entry.title)
    document: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def write_json_feed(
    tenant: str,
    subscriber: str,
    deliveries: Sequence[Delivery],
    template: CardTemplate = _DEFAULT,
) -> bytes:
    """Return a JSON Feed of notifications, newest first."""
    items = [
        {
            "id": entry.id,
            "title": entry.title,
            "content_text": entry.summary or entry.title,
            "date_published": entry.time,
        }
        | ({"url": entry.link} if entry.link else {})
        for entry in (read_entry(tenant, delivery, template) for delivery in deliveries)
    ]
    form = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"Tidings for {subscriber}",
        "items": items,
    }
    return json.dumps(form, ensure_ascii=False).encode(errors="replace")


def _add(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = _clean(text)


def _clean(text: str) -> str:
    return _NOT_XML.sub("", text)


def _urn(*names: str) -> str:
    return uuid5(_IDS, json.dumps(names)).urn
