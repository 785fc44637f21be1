"""Publications."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool as in_thread

from tidings.model.records import Delivery
from tidings.service.access import Caller, PublisherCaller
from tidings.service.bodies import JSON_LINES, AnyBody, Body
from tidings.service.events import ARROW, CLOUD_EVENT, read_publications
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem
from tidings.service.routes.parameters import Limit
from tidings.service.tenant import Tenant
from tidings.store.protocol import Row

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
    found, seen = list[Delivery](), {query: last for query, last in before if last is not None}
    for query, last in store.written():
        first, limit = seen.get(query, -1) + 1, _MOST_DELIVERIES - len(found)
        if last is not None and last >= first:
            found += store.of_batches(query, first, last, limit)
    return [delivery.to_dict() for delivery in found]
