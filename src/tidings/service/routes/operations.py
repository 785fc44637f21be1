"""Operations: health, metrics, figures over time, and letters that can be published again."""

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from tidings.errors import InvalidForm
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.values import SECOND_US, format_time
from tidings.service.access import AdminCaller, Gate
from tidings.service.bodies import FormBody
from tidings.service.conditions_report import report_conditions
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, load_form
from tidings.service.routes.parameters import Limit
from tidings.store.engine_log import IndexVersion
from tidings.store.protocol import FOREVER
from tidings.store.records import SUBSCRIBER, SUBSCRIPTION

router = APIRouter(tags=["operations"])
Kind = Annotated[Literal["dead", "late"], Query(description="Dead letters or late events.")]
AfterLetter = Annotated[
    int, Query(ge=0, le=FOREVER, description="The last id of the previous page.")
]
_MOST_LETTERS = 1_000
_MOST_SET_ASIDE = 20


@router.get("/health", **answers("health"))
def health(request: Request) -> Form:
    """Return whether the service can read its store; needs no token."""
    gate: Gate = request.app.state.gate
    gate.tenants.main.store.publications.last()
    return {"status": "ok"}


@router.get("/metrics", **answers("metrics", media_type="text/plain"))
def metrics(caller: AdminCaller) -> Response:
    """Return the metrics of the caller's tenant, in the format of Prometheus."""
    return Response(generate_latest(caller.tenant.metrics.registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/operations", **answers("operations"))
def operations(caller: AdminCaller) -> Form:
    """Return the state of the caller's tenant: figures, backlogs, failures, and samples."""
    tenant, now_us = caller.tenant, _now_us()
    figures = tenant.sampler.take()
    aside = tenant.engine().engine.set_aside
    catalogue = tenant.store.catalogue
    return {
        "time": format_time(now_us),
        "pipeline": tenant.sampler.pipeline_state(figures),
        "publications": {
            "last": figures.published,
            "taken": figures.taken,
            "waiting": figures.waiting,
            "lag_s": figures.lag_s(now_us),
        },
        "delivered": figures.delivered,
        "subscribers": catalogue.count(SUBSCRIBER),
        "subscriptions": catalogue.count(SUBSCRIPTION),
        "index": {
            "version": figures.version,
            "applied": figures.applied,
            "step": figures.step,
            "files": [_index_form(version) for version in tenant.store.log.index_versions()],
        },
        "letters": {"late": figures.late, "dead": figures.dead},
        "set_aside": {
            "count": len(aside),
            "items": [
                {"subscriber": name, "reason": aside[name]}
                for name in sorted(aside)[:_MOST_SET_ASIDE]
            ],
        },
        "webhooks": figures.webhooks._asdict(),
        "samples": tenant.sampler.to_dict(),
    }


def _index_form(built: IndexVersion) -> Form:
    form = built._asdict()
    return form | {"built_at": format_time(form.pop("built_us"))}


@router.get("/v1/operations/conditions", **answers("conditions"))
async def conditions(caller: AdminCaller, limit: Limit = 20) -> Form:
    """Return which subscriptions match the most recent publications, are slow, or match none."""
    return await caller.ask(report_conditions, caller.tenant, limit)


@router.get("/v1/letters", **answers("letters"))
def list_letters(
    caller: AdminCaller, kind: Kind = "dead", after: AfterLetter = 0, limit: Limit = 100
) -> Form:
    """Return pending letters, oldest first, with the reasons."""
    page = caller.tenant.store.letters.page(kind, after, limit, waiting=True)
    last = page[-1].id if len(page) == limit else None
    return {"items": [letter.to_dict() for letter in page], "next": last}


@router.post("/v1/letters:retry", **accepts("retry_question"), **answers("retried"))
def retry_letters(caller: AdminCaller, form: FormBody) -> Form:
    """Publish the events of letters again, with the current time; letters without an event stay."""
    ids = load_form(_ids, form)
    outcome = caller.tenant.store.letters.publish_again(ids, _now_us())
    problems = [{"id": number, "detail": reason} for number, reason in outcome.refused.items()]
    return {"published": outcome.published, "problems": problems}


def _ids(form: Form) -> list[int]:
    ids = fields(form, "the question", ("ids",), ())["ids"]
    if not isinstance(ids, list) or not 1 <= len(ids) <= _MOST_LETTERS:
        raise InvalidForm(f"`ids` is a list of 1 to {_MOST_LETTERS:,} letters")
    return [validate.count("an id", number, InvalidForm, low=0, high=FOREVER) for number in ids]


def _now_us() -> int:
    return time.time_ns() * SECOND_US // 10**9
