"""Health and metrics."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from tidings.service.access import AdminCaller, Gate
from tidings.service.openapi import answers
from tidings.service.problems import Form

router = APIRouter(tags=["operations"])


@router.get("/health", **answers("health"))
def health(request: Request) -> Form:
    """Return whether the service can read its store; anyone may ask."""
    gate: Gate = request.app.state.gate
    gate.tenants.main.store.publications.last()
    return {"status": "ok"}


@router.get("/metrics", **answers("metrics", media_type="text/plain"))
def metrics(caller: AdminCaller) -> Response:
    """Return the metrics of the caller's tenant, in the format of Prometheus."""
    return Response(generate_latest(caller.tenant.metrics.registry), media_type=CONTENT_TYPE_LATEST)
