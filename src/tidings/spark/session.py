"""A SparkSession, local or of a cluster, tuned for small micro-batches, that says nothing."""

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from tidings.errors import TidingsError
from tidings.spark.ops.find_java import find_java
from tidings.spark.ops.launchers import java_home, python_command
from tidings.spark.sources.register import register_sources

# The state operator runs on no other store.
STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

SHUFFLE: Final = "spark.sql.shuffle.partitions"
IDLE: Final = 4
"""So many tasks for each bucket are too many."""

# For checkpoints on a local disk only: about a third less time for each micro-batch.
_LOCAL_DISK: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}

# All on one machine, which need not know its own name.
_LOOPBACK: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

# What streams that never end leave behind: state and logs of so many batches, which Spark keeps 100
# of, and in memory so many jobs for a page that is not shown.
_KEPT: Final = {
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
}

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    SHUFFLE: "2",
    **_KEPT,
    **STATE_STORE,
}

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# The quick compiler and the plain collector: Java only carries the rows to Python and back.
_TUNING: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def session(
    name: str = "tidings",
    *,
    cores: int | None = None,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Get the running SparkSession as it is, or start one (about 5 s), a local one by default.

    `cores` is how many to use, all by default. `master` names a cluster instead, as Spark writes
    it (`spark://host:7077`, `local-cluster[2,1,1024]`); its machines need Tidings installed, and
    Python where PYSPARK_PYTHON says, or else where it is here. `settings` are further ones of Spark
    and win over those made here; Java options are added to ours. What `spark-submit` was told wins
    over all. No Java need be set up here: see `find_java`. Our sources are known to it then.
    """
    running = SparkSession.getActiveSession() or _start(name, cores, master, settings)
    register_sources(running)
    return running


def _start(
    name: str, cores: int | None, master: str | None, settings: Mapping[str, str] | None
) -> SparkSession:
    # What it logs, with all of Java's stack, is raised as well.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    told = submitted()
    place = told.get("spark.master") or master or f"local[{cores or '*'}]"
    wanted = {"spark.app.name": name, **all_settings(settings or {}, place), **told}
    builder = SparkSession.builder.master(place)
    for key, setting in wanted.items():
        builder = builder.config(key, setting)
    if told and "PYSPARK_PYTHON" in os.environ:
        return builder.getOrCreate()
    with _environment(JAVA_HOME=java_home(find_java()), PYSPARK_PYTHON=worker_python(place)):
        return builder.getOrCreate()


def check_session(frame: DataFrame, buckets: int) -> None:
    """Refuse a session whose streams cannot keep windows; warn of one that makes idle tasks."""
    conf = frame.sparkSession.conf
    for key, needed in STATE_STORE.items():
        has = str(conf.get(key))
        if frame.isStreaming and "RocksDB" not in has:
            raise TidingsError(
                f"streams of this session keep their state in {has.rpartition('.')[2]}, and "
                f"windows need RocksDB; before this, say\n  spark.conf.set({key!r}, {needed!r})"
            )
    tasks = int(conf.get(SHUFFLE) or 0)
    if tasks > IDLE * buckets:
        warnings.warn(
            f"{SHUFFLE} is {tasks}, and no more than {buckets} tasks of a batch have a bucket to "
            f"work on; all others start a Python for nothing. Set it to {buckets} or fewer, before "
            "a checkpoint is begun",
            stacklevel=4,
        )


def submitted() -> dict[str, str]:
    """Give the settings that `spark-submit` started this process with; none without it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # noqa: SLF001
    return dict(SparkConf().getAll())


def all_settings(given: Mapping[str, str], master: str = "local[*]") -> dict[str, str]:
    """Give all settings of a session; those given win.

    >>> all_settings({"spark.sql.shuffle.partitions": "8"})["spark.sql.shuffle.partitions"]
    '8'
    >>> "spark.driver.host" in all_settings({}, "spark://node:7077")
    False
    """
    ours = f"{_TUNING} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    options = f"{ours} {given.get(_JAVA_OPTIONS, '')}".rstrip()
    here = {**_LOOPBACK, **_LOCAL_DISK, **_found_path()} if _is_local(master) else {}
    return {**_SETTINGS, **here, **given, _JAVA_OPTIONS: options}


def _is_local(master: str) -> bool:
    """Tell whether all of a master runs on this machine: `local[...]` or `local-cluster[...]`."""
    return master.startswith("local")


def worker_python(master: str) -> Path:
    """Give the Python of the workers: ours where they are ours, else what other machines have."""
    if _is_local(master):
        return python_command()
    return Path(os.environ.get("PYSPARK_PYTHON") or sys.executable)


def _found_path() -> dict[str, str]:
    """Let executors of their own find modules where this process does."""
    path = os.environ.get("PYTHONPATH")
    return {"spark.executorEnv.PYTHONPATH": path} if path else {}


@contextmanager
def _environment(**variables: Path) -> Iterator[None]:
    """Set variables for as long as Spark starts, which reads them then and only then."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: str(path) for name, path in variables.items()})
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                del os.environ[name]
            else:
                os.environ[name] = was
