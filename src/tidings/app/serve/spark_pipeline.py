"""The pipeline of a service on Spark: publications of a store in, notifications into it.

It is a run of `tidings run` whose source, subscriptions and sink are the same store. After each
batch, and when the index shows new subscriptions, it writes a step, so that the service knows how
far the pipeline is.
"""

import os
import signal
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
from tidings.formats.event_source import TABLE, SparkSource
from tidings.index_files.versions import IndexFolder
from tidings.model.limits import UNLIMITED, Limits
from tidings.service.retention import Retention
from tidings.store import Store, open_store
from tidings.store.address import Address, read_address
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import QUERY

TRIGGER: Final = "0.1s"
_LOOK_EVERY_S: Final = 0.05


def run_spark_pipeline(config: ServeConfig) -> None:
    """Run until SIGTERM; the state of the query is kept in a folder, by default near the store."""
    address = read_address(config.store)
    path = config.folder or _default_folder(address)
    with open_store(config.store) as opened:
        steps = SparkSteps(opened)
        retention = Retention(opened, config.settings.keep_us)
        plan = _plan(address, path, config.settings.lateness, opened.log.last().upto)
        plan.folder.begin()
        stop = Flag()
        index = IndexFolder(plan.folder.path / INDEX)
        watcher = Thread(target=_watch_index, args=(index, steps, stop), daemon=True)
        watcher.start()
        try:
            for batch in run_spark(plan, StopActions()):
                steps.note(upto=batch.measures["reached"].get("key"))
                retention.apply_if_due()
        finally:
            stop.set()
            watcher.join()


def stop_this_process() -> None:
    """Stop the run as a user would."""
    os.kill(os.getpid(), signal.SIGTERM)


class SparkSteps:
    """Writes how far the query is: the publications that are processed, and the version."""

    def __init__(self, store: Store) -> None:
        self._log = store.log
        self._lock = Lock()

    def note(self, version: int | None = None, upto: int | None = None) -> None:
        """Write a step if there is something new."""
        with self._lock:
            last = self._log.last()
            step = last._replace(
                number=last.number + 1,
                version=max(last.version, version or 0),
                upto=max(last.upto, upto or 0),
            )
            if step[2:] != last[2:]:
                self._log.append(step, BatchAppend.of(QUERY, step.number, (), late=(), dead=()))


def _watch_index(index: IndexFolder, steps: SparkSteps, stop: Flag) -> None:
    seen = 0
    while not stop.wait(_LOOK_EVERY_S):
        version = index.newest() if index.path.exists() else 0
        if version != seen:
            seen = version
            steps.note(version=index.manifest(version).source)


def _plan(address: Address, folder: Path, lateness: str, after: int) -> RunPlan:
    table = "publications" if address.file else f"{address.schema}.publications"
    options = {"url": address.url, "table": table, "key": "number", "startingAfter": str(after)}
    config = Config(
        path=Path("service"),
        source=SparkSource(TABLE, options, columns={"value": "form"}, keep=()),
        subscriptions=address,
        sink=SinkConfig(folder, STORE, address),
        lateness=lateness,
        trigger=TRIGGER,
        limits=Limits(kept_letters=UNLIMITED),
        future="off",
    )
    return RunPlan(config, [], [], [], OutputFolder(config))


def _default_folder(address: Address) -> Path:
    if address.file is not None:
        return address.file.with_suffix(f"{address.file.suffix}.spark")
    return Path("tidings-spark")
