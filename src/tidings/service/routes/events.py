"""Publications."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request

from tidings.model.records import Delivery
from tidings.service.access import Caller, PublisherCaller
from tidings.service.bodies import JSON_LINES, AnyBody
from tidings.service.events import ARROW, CLOUD_EVENT, read_publications
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem
from tidings.service.routes.parameters import Limit
from tidings.store import NewPublication
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
    """Return the last publications that the pipeline has taken, the newest first."""
    events = caller.tenant.recent.events()[: -limit - 1 : -1]
    return {"items": [event.to_dict() for event in events]}


@router.post("/events", **_BODY, **answers("published", 202))
def publish(
    caller: PublisherCaller, body: AnyBody, request: Request, wait: WaitDelivered = None
) -> Form:
    """Publish one event, or many as JSON Lines, a JSON array, Arrow or CloudEvents.

    An event whose id was published before changes nothing, so every request may be repeated. What
    is accepted is durable. Records that are refused do not stop the others.
    """
    batch = read_publications(body, request.headers)
    before = caller.tenant.store.notifications.written() if wait else []
    new = caller.tenant.writer.accept(batch.publications) if batch.publications else []
    counts = {"accepted": sum(new), "repeated": len(new) - sum(new), "refused": len(batch.refused)}
    for result, count in counts.items():
        caller.tenant.metrics.publications.labels(result).inc(count)
    problems = [{"position": bad.position, "detail": bad.reason} for bad in batch.refused[:_NAMED]]
    if batch.refused and not new:
        raise HttpProblem(
            422, f"no event is accepted: {batch.refused[0].reason}", problems=problems
        )
    deliveries = {"deliveries": _deliveries(caller, batch.publications, before)} if wait else {}
    return {**counts, "problems": problems, **deliveries}


def _deliveries(
    caller: Caller, publications: list[NewPublication], before: list[Row]
) -> list[Form] | None:
    """Return what was delivered until the pipeline had taken publications; None if it has not.

    Publishers do not see it.
    """
    tenant, store = caller.tenant, caller.tenant.store
    numbers = store.publications.numbers([publication.event.id for publication in publications])
    if numbers and not tenant.wait_for(lambda step: step.upto >= max(numbers)):
        return None
    if caller.role != "admin":
        return []
    found, seen = list[Delivery](), {query: last for query, last in before if last is not None}
    for query, last in store.notifications.written():
        first, limit = seen.get(query, -1) + 1, _MOST_DELIVERIES - len(found)
        if last is not None and last >= first:
            found += store.notifications.of_batches(query, first, last, limit)
    return [delivery.to_dict() for delivery in found]
