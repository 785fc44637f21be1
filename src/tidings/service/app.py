"""The ASGI application of a store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import FastAPI

from tidings.service.access import Gate
from tidings.service.live import LivePush
from tidings.service.metrics import RequestMeter
from tidings.service.openapi import describe
from tidings.service.problems import answer_problems
from tidings.service.routes import (
    channels,
    deliveries,
    events,
    operations,
    page,
    questions,
    reader_feeds,
    reader_links,
    records,
    streams,
    templates,
    webhooks,
)
from tidings.service.routes.parameters import SlashesInIds
from tidings.service.settings import LOOPBACK, ServiceSettings
from tidings.service.tenant import Tenants


def create_app(
    address: str, settings: ServiceSettings | None = None, host: str = "127.0.0.1"
) -> FastAPI:
    """Return the application of the store at an address, to be served at `host`."""
    chosen = settings or ServiceSettings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tenants = Tenants(address, chosen)
        app.state.gate = Gate(tenants, chosen, is_local=host in LOOPBACK)
        app.state.live = LivePush(tenants.main)
        try:
            yield
        finally:
            tenants.close()

    app = FastAPI(
        title="Tidings",
        version=version("tidings"),
        summary="Ranked publish/subscribe: the k best events for each subscriber.",
        lifespan=lifespan,
        docs_url=None,  # the framework's own page loads scripts from other sites
        redoc_url=None,
    )
    app.state.settings = chosen
    for module in (
        records,
        events,
        deliveries,
        streams,
        reader_feeds,
        webhooks,
        channels,
        reader_links,
        templates,
        questions,
        operations,
        page,
    ):
        app.include_router(module.router)
    app.add_middleware(RequestMeter)
    app.add_middleware(SlashesInIds)
    answer_problems(app)
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    return app
