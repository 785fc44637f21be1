"""The pipeline of a service on Spark: publications of a store in, notifications out.

It is a `tidings run` whose source, subscriptions and sink are one store. After each batch, and when
the index has new subscriptions, it writes a step, so that the service knows how far the pipeline
is. A second source provides times, which a thread writes while no publication is waiting, so that
periods and quiet hours end even if nothing is published.
"""

import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread
from typing import Final

from tidings.app.config import STORE, Config, SinkConfig
from tidings.app.run.output_folder import INDEX, OutputFolder
from tidings.app.run.plan import RunPlan
from tidings.app.run.spark import run_spark
from tidings.app.serve.config import ServeConfig
from tidings.app.signals import StopActions
from tidings.errors import StoreError
from tidings.formats.event_source import TABLE, SparkSource
from tidings.index_files.manifest import Manifest
from tidings.index_files.versions import IndexFolder
from tidings.model.limits import UNLIMITED, Limits
from tidings.model.values import SECOND_US, parse_duration_us
from tidings.service.durable_engine import needs_clock
from tidings.service.pipeline import PATIENCE_US
from tidings.service.retention import Retention
from tidings.service.tenant_threads import declare_channels
from tidings.store import Store, open_store
from tidings.store.address import DEFAULT_TENANT, Address, read_address
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import QUERY, IndexVersion
from tidings.store.records import SUBSCRIBER, CatalogueEntry

TRIGGER: Final = "0.1s"
_LOG: Final = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 0.05
_TICK_S: Final = 5.0
"""Each tick is a small batch of the query."""


def run_spark_pipeline(config: ServeConfig, tenant: str = DEFAULT_TENANT) -> None:
    """Run the pipeline of a tenant until SIGTERM.

    The state of the query is kept in a folder, by default near the store.
    """
    address = read_address(config.store).of_tenant(tenant)
    path = _folder(config, address, tenant)
    with open_store(address) as opened:
        declare_channels(opened, tenant, config.settings)
        steps = SparkSteps(opened)
        retention = Retention(opened, config.settings.keep_us)
        plan = _plan(address, path, config.settings.lateness, opened.log.last().upto)
        plan.folder.begin()
        stop = Flag()
        index = IndexFolder(plan.folder.path / INDEX)
        clock = SparkClock(opened, config.settings.lateness)
        threads = [
            Thread(target=_watch_index, args=(index, steps, stop), daemon=True),
            Thread(target=_tell_time, args=(clock, stop), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            for batch in run_spark(plan, StopActions()):
                reached = batch.measures["reached"]
                tick = reached.get("1.key")
                steps.note(
                    upto=reached.get("key"),
                    clock_us=opened.log.tick_us(tick) if tick and batch.deliveries else None,
                )
                retention.apply_if_due()
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def stop_this_process() -> None:
    """Stop the run as a user would."""
    os.kill(os.getpid(), signal.SIGTERM)


class SparkSteps:
    """Writes the progress of the query: the publications that are processed, and the version."""

    def __init__(self, store: Store) -> None:
        self._log = store.log
        self._lock = Lock()

    def note(
        self, version: int | None = None, upto: int | None = None, clock_us: int | None = None
    ) -> None:
        """Write a step if there is something new; its time is that of a batch that delivered."""
        with self._lock:
            last = self._log.last()
            step = last._replace(
                number=last.number + 1,
                version=max(last.version, version or 0),
                upto=max(last.upto, upto or 0),
                clock_us=max(last.clock_us or 0, clock_us or 0) or None,
            )
            if step[1:] != last[1:]:
                self._log.append(step, BatchAppend.of(QUERY, step.number, (), late=(), dead=()))

    def note_index(self, manifest: Manifest, now_us: int) -> None:
        """Write a version of the index, so that operators see it."""
        changes = sum(len(part.deltas) for part in manifest.parts)
        parts = len(manifest.parts)
        built = IndexVersion(manifest.version, manifest.source, parts, changes, now_us)
        self._log.note_index(built)


class SparkClock:
    """Passes the time to the query every few seconds, if some policy depends on it.

    The time lags behind, like that of the local engine, so that publications in transit are not
    late. Each time is a row of the store, so a batch that Spark repeats has the same times.
    """

    def __init__(self, store: Store, lateness: str = "0s") -> None:
        self._store, self._always = store, parse_duration_us(lateness) > 0
        self._version, self._clocked = 0, set[str]()

    def write_time(self, now_us: int) -> bool:
        """Write a time, unless publications are waiting or no policy needs it.

        Return whether it did.
        """
        return self.is_needed() and self._store.log.tick(now_us - PATIENCE_US)

    def is_needed(self) -> bool:
        """Return whether some subscriber's policy makes choices as time passes."""
        for entry in self._changes():
            if entry.kind == SUBSCRIBER:
                is_clocked = entry.form is not None and needs_clock(entry.form)
                (self._clocked.add if is_clocked else self._clocked.discard)(entry.id)
        return self._always or bool(self._clocked)

    def _changes(self) -> Iterator[CatalogueEntry]:
        """Yield what has changed since the last call; the first call yields everything."""
        history = self._store.history
        if not self._version:
            self._version = self._store.catalogue.version()
            yield from history.as_of(self._version)
        while changes := history.changes(self._version):
            self._version = changes[-1].version
            yield from changes


def _tell_time(clock: SparkClock, stop: Flag) -> None:
    while not stop.wait(_TICK_S):
        try:
            clock.write_time(int(time.time() * SECOND_US))
        except StoreError as error:
            _LOG.warning("the clock waits for the store: %s", error)


def _watch_index(index: IndexFolder, steps: SparkSteps, stop: Flag) -> None:
    last_version = 0
    while not stop.wait(_LOOK_EVERY_S):
        version = index.newest() if index.path.exists() else 0
        if version != last_version:
            last_version, manifest = version, index.manifest(version)
            steps.note(version=manifest.source)
            steps.note_index(manifest, int(time.time() * SECOND_US))


def _plan(address: Address, folder: Path, lateness: str, after: int) -> RunPlan:
    schema = "" if address.file else f"{address.schema}."
    table = {"url": address.url, "key": "number"}
    options = table | {"table": f"{schema}publications", "startingAfter": str(after)}
    ticks = table | {"table": f"{schema}ticks"}
    config = Config(
        path=Path("service"),
        source=SparkSource(TABLE, options, columns={"value": "form"}, keep=()),
        subscriptions=address,
        sink=SinkConfig(folder, STORE, address),
        lateness=lateness,
        trigger=TRIGGER,
        limits=Limits(kept_letters=UNLIMITED),
        future="off",
        clock=SparkSource(TABLE, ticks),
    )
    return RunPlan(config, [], [], [], OutputFolder(config))


def _folder(config: ServeConfig, address: Address, tenant: str) -> Path:
    """Return the folder with the state of a tenant's query; each has its own."""
    if config.folder is None and address.file is not None:
        return address.file.with_suffix(f"{address.file.suffix}.spark")
    folder = config.folder or Path("tidings-spark")
    return folder if tenant == DEFAULT_TENANT else folder.with_name(f"{folder.name}.{tenant}")
