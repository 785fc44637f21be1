"""Feeds for any feed reader, as Atom or JSON Feed, at a secret address that can be changed."""

import time
from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Request, Response

from tidings.model.values import SECOND_US
from tidings.service.access import Gate, ReaderCaller
from tidings.service.feed_documents import ATOM, JSON_FEED, write_atom, write_json_feed
from tidings.service.openapi import answers
from tidings.service.path_ids import PathId
from tidings.service.problems import Form, HttpProblem
from tidings.service.routes.deliveries import check_known
from tidings.store.feed_addresses import FeedOwner

router = APIRouter(tags=["feeds for readers"])
Secret = Annotated[str, Path(min_length=1, max_length=100)]
Known = Annotated[str | None, Header(alias="If-None-Match", max_length=200)]
_ENTRIES: Final = 50
_WRITERS: Final = {ATOM: write_atom, JSON_FEED: write_json_feed}
_NOT_MODIFIED: Final = {304: {"description": "Nothing is new."}}


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
    content = _WRITERS[media_type](owner.tenant, owner.subscriber, deliveries, template)
    return Response(content, headers=headers, media_type=media_type)
