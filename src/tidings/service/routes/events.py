"""Publications."""

from fastapi import APIRouter, Request

from tidings.service.access import PublisherCaller
from tidings.service.bodies import JSON_LINES, AnyBody
from tidings.service.events import ARROW, CLOUD_EVENT, read_publications
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem

router = APIRouter(prefix="/v1", tags=["events"])
_NAMED = 100


_BODY = accepts("events", lines=JSON_LINES, columns=ARROW, cloud_event=[CLOUD_EVENT])


@router.post("/events", **_BODY, **answers("published", 202))
def publish(caller: PublisherCaller, body: AnyBody, request: Request) -> Form:
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
    return {**counts, "problems": problems}
