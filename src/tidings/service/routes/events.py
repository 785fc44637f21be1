"""Publications: read from JSON, JSON Lines, Arrow or CloudEvents, and written together."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool as in_thread

from tidings.errors import InvalidEvent, StoreError, TidingsError
from tidings.formats.cloud_events import event_form, header_attributes
from tidings.formats.files import read_events
from tidings.formats.json_forms import loads_event, ordinary
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Delivery, Event, publication_order
from tidings.model.values import format_duration
from tidings.service.access import Caller, PublisherCaller
from tidings.service.bodies import JSON, JSON_LINES, AnyBody, Body, NumberedForm
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.parameters import Limit
from tidings.service.settings import ServiceSettings
from tidings.service.tenant import Tenant
from tidings.store import NewPublication
from tidings.store.protocol import Row, check_id

ARROW: Final = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")
CLOUD_EVENT: Final = "application/cloudevents+json"
CLOUD_EVENTS: Final = "application/cloudevents-batch+json"
MEDIA_TYPES: Final = (JSON, *JSON_LINES, *ARROW, CLOUD_EVENT, CLOUD_EVENTS)
_MAGIC: Final = b"ARROW1\0\0"
Read = Callable[[Any, ServiceSettings], NewPublication]
router = APIRouter(prefix="/v1", tags=["events"])
_NAMED = 100
_MOST_DELIVERIES = 10_000
WaitDelivered = Annotated[
    Literal["delivered"] | None,
    Query(
        description="`delivered`: wait until the pipeline has taken the events, and return what "
        "they have caused; null if that takes long."
    ),
]
_BODY = accepts("events", lines=JSON_LINES, columns=ARROW, cloud_event=[CLOUD_EVENT])


@router.get("/events", **answers("recent_events"))
def recent_events(caller: PublisherCaller, limit: Limit = 20) -> Form:
    """Return the last publications that the pipeline has processed, newest first."""
    events = caller.tenant.recent.events()[: -limit - 1 : -1]
    return {"items": [event.to_dict() for event in events]}


@router.post("/events", **_BODY, **answers("published", 202))
async def publish(
    caller: PublisherCaller, body: AnyBody, request: Request, wait: WaitDelivered = None
) -> Form:
    """Publish one event, or many as JSON Lines, a JSON array, Arrow or CloudEvents.

    An event whose id was published before changes nothing, so every request may be repeated.
    Accepted events are durable. Refused records do not stop the others.
    """
    before = await in_thread(caller.tenant.store.notifications.written) if wait else []
    accepted = await in_thread(_accept, caller, body, request.headers)
    if not wait:
        return accepted.counts
    return accepted.counts | {"deliveries": await _deliveries(caller, accepted.ids, before)}


class Accepted(NamedTuple):
    """The ids of the publications of a request, and the counts of all its records."""

    ids: list[str]
    counts: Form


def _accept(caller: Caller, body: Body, headers: Mapping[str, str]) -> Accepted:
    """Write the publications of a request."""
    batch = read_publications(body, headers)
    new = caller.tenant.writer.accept(batch.publications) if batch.publications else []
    counts = {"accepted": sum(new), "repeated": len(new) - sum(new), "refused": len(batch.refused)}
    for result, count in counts.items():
        caller.tenant.metrics.publications.labels(result).inc(count)
    problems = [{"position": bad.position, "detail": bad.reason} for bad in batch.refused[:_NAMED]]
    if batch.refused and not new:
        raise HttpProblem(
            422, f"no event is accepted: {batch.refused[0].reason}", problems=problems
        )
    ids = [publication.event.id for publication in batch.publications]
    return Accepted(ids, {**counts, "problems": problems})


async def _deliveries(caller: Caller, ids: list[str], before: list[Row]) -> list[Form] | None:
    """Return what was delivered until the pipeline had processed publications, or None.

    Callers with the role publisher get an empty list.
    """
    numbers = await in_thread(caller.tenant.store.publications.numbers, ids)
    last = max(numbers, default=0)
    if not await caller.tenant.wait_for(lambda step: step.upto >= last):
        return None
    return [] if caller.role != "admin" else await in_thread(_written_since, caller.tenant, before)


def _written_since(tenant: Tenant, before: list[Row]) -> list[Form]:
    """Return the deliveries written since an earlier call of `written`, up to a maximum."""
    store = tenant.store.notifications
    last_read = {query: last for query, last in before if last is not None}
    deliveries = list[Delivery]()
    for query, last in store.written():
        first, limit = last_read.get(query, -1) + 1, _MOST_DELIVERIES - len(deliveries)
        if last is not None and last >= first:
            deliveries += store.of_batches(query, first, last, limit)
    return [delivery.to_dict() for delivery in deliveries]


class PublicationBatch(NamedTuple):
    """The accepted publications of a request, in order, and the refused ones."""

    publications: list[NewPublication]
    refused: list[BadRecord]


def read_publications(body: Body, headers: Mapping[str, str]) -> PublicationBatch:
    """Read the publications of a request.

    An error in a single event refuses the request; among several, refused ones do not stop the
    others.
    """
    body.check_type(*MEDIA_TYPES)
    if body.media_type in ARROW:
        return _batch(_arrow_events(body), body.settings)
    if body.media_type in JSON_LINES:
        return _batch(body.records(), body.settings)
    form = body.json()
    context = header_attributes(headers) if "ce-specversion" in headers else {}
    if context:
        form = {**context, "data": form}
    is_cloud = bool(context) or body.media_type in (CLOUD_EVENT, CLOUD_EVENTS)
    read = _read_cloud_event if is_cloud else _read
    if isinstance(form, list) and body.media_type != CLOUD_EVENT:
        records = map(NumberedForm._make, enumerate(body.limited(form), start=1))
        return _batch(records, body.settings, read)
    return PublicationBatch([load_form(lambda form: read(form, body.settings), form)], [])


def _batch(
    records: Iterable[NumberedForm | BadRecord], settings: ServiceSettings, read: Read | None = None
) -> PublicationBatch:
    """Read several records; if all have a time, they are sorted by it, as in a file."""
    publications, refused = list[NewPublication](), list[BadRecord]()
    for record in records:
        if isinstance(record, BadRecord):
            refused.append(record)
            continue
        try:
            publications.append((read or _read)(record.form, settings))
        except TidingsError as error:
            refused.append(BadRecord({}, str(error), record.position))
    if all(publication.timed for publication in publications):
        publications.sort(key=lambda publication: publication_order(publication.event))
    return PublicationBatch(publications, refused)


def _read(record: Any, settings: ServiceSettings) -> NewPublication:
    """Read an event or its form; one without a time gets the time of its acceptance."""
    now_us = time.time_ns() // 1_000
    if isinstance(record, Event):
        event, timed = record, True
    else:
        form = ordinary(record)
        timed = not isinstance(form, dict) or form.get("published_at") is not None
        event = loads_event(form if timed else {**form, "published_at": 0}, settings.limits)
    try:
        check_id("the id of an event", event.id)
    except StoreError as error:
        raise InvalidEvent(str(error)) from None
    ahead_us = event.published_us - now_us
    if ahead_us > settings.future_us:
        raise InvalidEvent(
            f"event {event.id} is published {format_duration(ahead_us)} ahead of the clock; "
            f"{format_duration(settings.future_us)} is allowed"
        )
    return NewPublication(event, timed)


def _arrow_events(body: Body) -> Iterator[NumberedForm | BadRecord]:
    """Yield the rows of an Arrow stream, or of a file, which is a stream between two marks."""
    content = body.content
    if not content.startswith(_MAGIC):
        content = _MAGIC + content
    with TemporaryDirectory(prefix="tidings-") as folder:
        path = Path(folder, "body.arrow")
        path.write_bytes(content)
        try:
            rows = read_events(path, limits=body.settings.limits)
            for position, row in enumerate(body.limited(rows), start=1):
                yield row if isinstance(row, BadRecord) else NumberedForm(position, row)
        except TidingsError as error:
            # The rest is advice on the config of a run, which a request does not have.
            reason = str(error).partition("; say in [source]")[0].replace(str(path), "the body")
            raise HttpProblem(400, reason) from None


def _read_cloud_event(form: Any, settings: ServiceSettings) -> NewPublication:
    return _read(event_form(form), settings)
