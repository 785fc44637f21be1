"""Tenants: each has its own store, engine, limits and metrics, and shares nothing."""

import logging
from collections.abc import Callable
from threading import Event as Flag
from threading import Lock, Thread
from typing import Final

from tidings.errors import StoreError, TidingsError
from tidings.service.attributes import RecentAttributes
from tidings.service.durable_engine import DurableEngine
from tidings.service.metrics import TenantMetrics
from tidings.service.problems import HttpProblem
from tidings.service.publication_writer import PublicationWriter
from tidings.service.recent_publications import RecentPublications, Replays
from tidings.service.request_waits import IsEnough, QuestionSlots, StepWaits
from tidings.service.samples import Sampler
from tidings.service.settings import ServiceSettings
from tidings.store import Store, open_store
from tidings.store.address import DEFAULT_TENANT

_LOG: Final = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 1.0
_START_S: Final = 5.0
"""How long requests wait for an engine that is replaying steps after a start."""
_STOP_S: Final = 10.0
_CATCH_UP_EVERY_S: Final = 0.1
_MANY_STEPS: Final = 10_000


class Tenant:
    """One tenant: a store, and an engine that follows the steps of its pipeline.

    The functions in `changed` are called, in a thread, after each commit to the store.
    """

    def __init__(self, name: str, store: Store, settings: ServiceSettings) -> None:
        self.name, self.store, self.settings = name, store, settings
        self.writer = PublicationWriter(store.publications)
        self.recent = RecentPublications(store, settings.recent)
        self.questions = QuestionSlots()
        self.replays = Replays(self.recent, settings.lateness)
        self.attributes = RecentAttributes(self.recent)
        self.metrics = TenantMetrics(store)
        self.sampler = Sampler(store, self.metrics)
        self._waits = StepWaits(store.log)
        self._is_behind, self._is_near, self._stop = Flag(), Flag(), Flag()
        self._is_behind.set()
        self.changed: list[Callable[[], None]] = [self._is_behind.set, self._waits.look]
        self._engine = DurableEngine(store, settings.lateness)
        self.metrics.add_rules(self._engine.quality)
        self._engine_lock = Lock()
        # Two threads: live streams do not wait while many steps are replayed after a start.
        self._threads = [
            Thread(target=work, name=f"tenant {name}", daemon=True)
            for work in (self._follow, self._keep_near)
        ]
        for thread in self._threads:
            thread.start()

    def engine(self) -> DurableEngine:
        """Return the engine, after all steps written so far.

        While it replays many steps because the service has just started, requests are refused.
        """
        if not self._is_near.wait(_START_S):
            detail = "the service has just started and is still replaying earlier steps; try again"
            raise HttpProblem(503, detail, headers={"Retry-After": "5"})
        return self._caught_up()

    def _caught_up(self) -> DurableEngine:
        with self._engine_lock:
            self._engine.catch_up()
            return self._engine

    async def wait_applied(self, version: int) -> bool:
        """Wait until the pipeline uses a version of the catalogue; return whether it does."""
        return await self.wait_for(lambda step: step.version >= version)

    async def wait_for(self, is_enough: IsEnough) -> bool:
        """Wait until the last step of the pipeline satisfies a condition.

        Return whether it does.
        """
        return await self._waits.until(is_enough, self.settings.wait_s)

    def close(self) -> None:
        """Stop following, and close the store."""
        self._stop.set()
        self._is_behind.set()
        for thread in self._threads:
            thread.join(_STOP_S)
        self.store.close()

    def _save_if_long(self, durable: DurableEngine) -> None:
        """Write a checkpoint if no pipeline does, as on Spark, which keeps its state elsewhere."""
        if durable.repeated > _MANY_STEPS:
            with self._engine_lock:
                self.store.log.save(durable.checkpoint())
                durable.repeated = 0

    def _follow(self) -> None:
        """Call the functions in `changed` after each commit."""
        watch, has_called = None, True
        while not self._stop.is_set():
            try:
                watch = watch or self.store.database.watch()
                if watch.wait(_LOOK_EVERY_S) or not has_called:
                    has_called = False  # until all of them could read the store
                    for call in self.changed:
                        call()
                    has_called = True
                self.sampler.take_if_due()
            except StoreError as error:
                _LOG.warning("tenant %s: the store cannot be followed: %s", self.name, error)
                self._stop.wait(_LOOK_EVERY_S)
        if watch is not None:
            watch.close()

    def _keep_near(self) -> None:
        """Keep the engine close to the pipeline, so that requests do not wait for it.

        It lags a little, because many steps together cost little more than one.
        """
        while not self._stop.is_set():
            self._is_behind.wait()
            self._is_behind.clear()
            try:
                self._save_if_long(self._caught_up())
                self._is_near.set()
                self._stop.wait(_CATCH_UP_EVERY_S)
            except TidingsError as error:
                _LOG.warning("tenant %s: steps cannot be repeated: %s", self.name, error)
                self._is_behind.set()
                self._stop.wait(_LOOK_EVERY_S)


class Tenants:
    """All tenants of a service, opened when they are first used."""

    def __init__(self, address: str, settings: ServiceSettings) -> None:
        self._address, self._settings = address, settings
        self._open: dict[str, Tenant] = {}
        self._lock = Lock()
        self.main = self.get(DEFAULT_TENANT)

    def get(self, name: str) -> Tenant:
        """Return a tenant."""
        with self._lock:
            if name not in self._open:
                store = open_store(self._address, tenant=name)
                self._open[name] = Tenant(name, store, self._settings.of_tenant(name))
            return self._open[name]

    def close(self) -> None:
        """Close all tenants."""
        with self._lock:
            for tenant in self._open.values():
                tenant.close()
            self._open.clear()
