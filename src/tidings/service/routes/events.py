"""Publications."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request

from tidings.service.access import Caller, PublisherCaller
from tidings.service.bodies import JSON_LINES, AnyBody
from tidings.service.events import ARROW, CLOUD_EVENT, read_publications
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem
from tidings.store import Publication
from tidings.store.engine_log import QUERY

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


@router.post("/events", **_BODY, **answers("published", 202))
def publish(
    caller: PublisherCaller, body: AnyBody, request: Request, wait: WaitDelivered = None
) -> Form:
    """Publish one event, or many as JSON Lines, a JSON array, Arrow or CloudEvents.

    An event whose id was published before changes nothing, so every request may be repeated. What
    is accepted is durable. Records that are refused do not stop the others.
    """
    batch = read_publications(body, request.headers)
    new = caller.tenant.writer.accept(batch.publications) if batch.publications else []
    counts = {"accepted": sum(new), "repeated": len(new) - sum(new), "refused": len(batch.refused)}
    for result, count in counts.items():
        caller.tenant.metrics.publications.labels(result).inc(count)
    problems = [{"position": bad.position, "detail": bad.reason} for bad in batch.refused[:_NAMED]]
    if batch.refused and not new:
        raise HttpProblem(
            422, f"no event is accepted: {batch.refused[0].reason}", problems=problems
        )
    deliveries = {"deliveries": _deliveries(caller, batch.publications)} if wait else {}
    return {**counts, "problems": problems, **deliveries}


def _deliveries(caller: Caller, publications: list[Publication]) -> list[Form] | None:
    """Return what publications have caused, if the pipeline takes them in time.

    That is what was delivered by the steps that took them. Publishers do not see it.
    """
    tenant, store = caller.tenant, caller.tenant.store
    taken = store.publications.numbers([publication.event.id for publication in publications])
    if taken and not tenant.wait_for(lambda step: step.upto >= max(taken)):
        return None
    if not taken or caller.role != "admin":
        return []
    steps = store.log.steps_of(min(taken), max(taken))
    found = store.notifications.of_batches(QUERY, *steps, limit=_MOST_DELIVERIES)
    return [delivery.to_dict() for delivery in found]
