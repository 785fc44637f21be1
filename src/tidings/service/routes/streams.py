"""Live notifications as server-sent events."""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse

from tidings.errors import StoreError
from tidings.service.access import Gate, ReaderCaller
from tidings.service.live import LivePush, LiveStream
from tidings.service.openapi import answers
from tidings.service.problems import HttpProblem
from tidings.service.routes.deliveries import check_known
from tidings.service.routes.parameters import PathId
from tidings.store.protocol import FOREVER

router = APIRouter(prefix="/v1", tags=["deliveries"])
LastEventId = Annotated[
    int | None, Header(ge=0, le=FOREVER, description="The last id that was received.")
]
Start = Annotated[
    int | None,
    Query(ge=0, le=FOREVER, description="Where to start without a Last-Event-ID."),
]


@router.get(
    "/notifications/{subscriber}/stream", **answers("stream", media_type="text/event-stream")
)
def stream(
    caller: ReaderCaller,
    subscriber: PathId,
    request: Request,
    after: Start = None,
    last_event_id: LastEventId = None,
) -> EventSourceResponse:
    """Return a subscriber's notifications as server-sent events, live.

    It starts after the `Last-Event-ID`; without one, after the number `after`; without that, with
    the first unread notification. Comments are heartbeats.
    """
    check_known(caller, subscriber)
    live: LivePush = request.app.state.live
    inboxes = live.of(caller.tenant)
    inboxes.check_room(subscriber)
    open_stream = LiveStream()
    beat_s = caller.tenant.settings.heartbeat_s
    return EventSourceResponse(
        inboxes.follow(subscriber, after if last_event_id is None else last_event_id, open_stream),
        ping=beat_s,
        sep="\n",
        send_timeout=2 * beat_s,
        data_sender_callable=partial(_close_when_revoked, open_stream, request, beat_s),
    )


async def _close_when_revoked(open_stream: LiveStream, request: Request, beat_s: float) -> None:
    """End a stream when its token is no longer valid."""
    gate: Gate = request.app.state.gate
    live: LivePush = request.app.state.live
    while True:
        await live.wait_for_revocation(beat_s)
        try:
            await asyncio.to_thread(gate.admit_again, request)
        except HttpProblem:
            open_stream.close()
            return
        except StoreError:  # the next request will report it
            continue
