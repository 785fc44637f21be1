"""Publications."""

from fastapi import APIRouter, Request, Response

from tidings.service.access import PublisherCaller
from tidings.service.bodies import AnyBody
from tidings.service.events import MEDIA_TYPES, read_publications
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form

router = APIRouter(tags=["events"])
_NAMED = 100


@router.post("/events", **accepts("event", *MEDIA_TYPES), **answers("published", 202, 422))
def publish(caller: PublisherCaller, body: AnyBody, request: Request, response: Response) -> Form:
    """Publish one event, or many as JSON Lines, a JSON array, Arrow or CloudEvents.

    An event whose id was published before changes nothing, so every request may be repeated. What
    is accepted is durable. Records that are refused do not stop the others.
    """
    batch = read_publications(body, request.headers)
    new = caller.tenant.writer.accept(batch.publications) if batch.publications else []
    if batch.refused and not new:
        response.status_code = 422
    problems = [{"position": bad.position, "detail": bad.reason} for bad in batch.refused[:_NAMED]]
    return {
        "accepted": sum(new),
        "repeated": len(new) - sum(new),
        "refused": len(batch.refused),
        "problems": problems,
    }
