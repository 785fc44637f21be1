"""Feeds for any feed reader, at a secret address that can be changed: Atom and JSON Feed 1.1.

They show the cards of the service's template, as mail and chats do. Content of an event is always
text, never markup, and characters that XML cannot represent are left out.
"""

import json
import re
import time
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple
from uuid import UUID, uuid5
from xml.etree import ElementTree as ET

from fastapi import APIRouter, Header, Path, Request, Response

from tidings.channels.card import CardTemplate
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US, format_time
from tidings.service.access import Gate, ReaderCaller
from tidings.service.openapi import answers
from tidings.service.problems import Form, HttpProblem
from tidings.service.routes.deliveries import check_known
from tidings.service.routes.parameters import PathId
from tidings.store.feed_addresses import FeedOwner

ATOM: Final = "application/atom+xml"
JSON_FEED: Final = "application/feed+json"
_NAMESPACE: Final = "http://www.w3.org/2005/Atom"
_IDS: Final = UUID("8d1c3f4e-5a47-4b0c-9e38-5d2f0d6a7c11")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEFAULT: Final = CardTemplate.load()
_ENTRIES: Final = 50
_NOT_MODIFIED: Final = {304: {"description": "Nothing is new."}}
router = APIRouter(tags=["feeds for readers"])
Secret = Annotated[str, Path(min_length=1, max_length=100)]
Known = Annotated[str | None, Header(alias="If-None-Match", max_length=200)]


@router.post("/v1/feeds/{subscriber}/address", **answers("feed_address", 201))
def change_address(caller: ReaderCaller, subscriber: PathId, request: Request) -> Form:
    """Replace the secret address of a feed with a new one, which is shown only once."""
    check_known(caller, subscriber)
    gate: Gate = request.app.state.gate
    addresses = gate.tenants.main.store.feed_addresses
    now_us = time.time_ns() * SECOND_US // 10**9
    secret = addresses.change(FeedOwner(caller.tenant.name, subscriber), now_us)
    return {"atom": f"/feeds/{secret}.atom", "json": f"/feeds/{secret}.json"}


@router.delete("/v1/feeds/{subscriber}/address", **answers("removed"))
def remove_address(caller: ReaderCaller, subscriber: PathId, request: Request) -> Form:
    """Revoke the secret address of a feed."""
    check_known(caller, subscriber)
    gate: Gate = request.app.state.gate
    owner = FeedOwner(caller.tenant.name, subscriber)
    return {"removed": gate.tenants.main.store.feed_addresses.remove(owner)}


_ATOM: Final = answers("feed_document", media_type=ATOM)
_JSON: Final = answers("feed_document", media_type=JSON_FEED)


@router.get("/feeds/{secret}.atom", **_ATOM | {"responses": _ATOM["responses"] | _NOT_MODIFIED})
def atom(request: Request, secret: Secret, known: Known = None) -> Response:
    """Return the newest notifications of the owner of this address, as Atom."""
    return _document(request, secret, known, ATOM)


@router.get("/feeds/{secret}.json", **_JSON | {"responses": _JSON["responses"] | _NOT_MODIFIED})
def json_feed(request: Request, secret: Secret, known: Known = None) -> Response:
    """Return the newest notifications of the owner of this address, as JSON Feed."""
    return _document(request, secret, known, JSON_FEED)


def _document(request: Request, secret: str, known: str | None, media_type: str) -> Response:
    gate: Gate = request.app.state.gate
    owner = gate.tenants.main.store.feed_addresses.find(secret)
    if owner is None:
        raise HttpProblem(404, "there is no feed at this address")
    gate.check_rate(f"feed {owner}")
    tenant = request.state.tenant = gate.tenants.get(owner.tenant)
    deliveries = tenant.store.notifications.newest(owner.subscriber, _ENTRIES)
    tag = f'W/"{deliveries[0].sequence if deliveries else 0}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "private, max-age=60",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
    }
    if known == tag:
        return Response(status_code=304, headers=headers)
    template = tenant.settings.template
    write = write_atom if media_type == ATOM else write_json_feed
    content = write(owner.tenant, owner.subscriber, deliveries, template)
    return Response(content, headers=headers, media_type=media_type)


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
