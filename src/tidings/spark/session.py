"""SparkSession, local or of a cluster, tuned for small micro-batches and silent."""

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

# The state operator requires this store.
STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

# A commit uploads the changes of a batch, not the whole store: 6 ms instead of 160.
_CHANGELOG: Final = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

SHUFFLE: Final = "spark.sql.shuffle.partitions"
MAX_TASKS_PER_BUCKET: Final = 4
"""With more, a warning says that most tasks are idle."""

# For checkpoints on a local disk only: about a third less time for each micro-batch.
_LOCAL_DISK: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}

# On one machine, whose host name need not resolve.
_LOOPBACK: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

# What endless streams accumulate: state and logs of batches, of which Spark keeps 100 by default,
# and jobs in memory for a web page that is not shown.
_RETENTION: Final = {
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
    **_RETENTION,
    **STATE_STORE,
    **_CHANGELOG,
}

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# The fast compiler and the simple collector: Java only passes rows to Python and back. The stack is
# for queries that are stopped in the middle of a batch: Spark then matches a regular expression
# with the long error of a worker, which overflows the usual stack and prints a thousand lines.
_TUNING: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss32m"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def session(
    name: str = "tidings",
    *,
    cores: int | None = None,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the running SparkSession, or start one (about 5 s), a local one by default.

    `cores` is the number to use, all by default. `master` names a cluster instead, as Spark writes
    it (`spark://host:7077`, `local-cluster[2,1,1024]`); its machines need Tidings installed, and
    Python at PYSPARK_PYTHON, or else at the same path as here. `settings` are further settings of
    Spark and take precedence over ours; Java options are added to ours. Those of `spark-submit`
    take precedence over all. Java need not be set up: see `find_java`. Our sources are registered.
    """
    running = SparkSession.getActiveSession() or _start(name, cores, master, settings)
    register_sources(running)
    return running


def _start(
    name: str, cores: int | None, master: str | None, settings: Mapping[str, str] | None
) -> SparkSession:
    # It logs errors with the whole stack of Java, although they are raised as well.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    submitted = submitted_settings()
    url = submitted.get("spark.master") or master or f"local[{cores or '*'}]"
    chosen = {"spark.app.name": name, **all_settings(settings or {}, url), **submitted}
    builder = SparkSession.builder.master(url)
    for key, setting in chosen.items():
        builder = builder.config(key, setting)
    if submitted and "PYSPARK_PYTHON" in os.environ:
        return builder.getOrCreate()
    with _environment(JAVA_HOME=java_home(find_java()), PYSPARK_PYTHON=worker_python(url)):
        return builder.getOrCreate()


def check_session(frame: DataFrame, buckets: int) -> None:
    """Refuse a session that cannot keep windows in its streams; warn if most tasks are idle."""
    conf = frame.sparkSession.conf
    for key, needed in STATE_STORE.items():
        has = str(conf.get(key))
        if frame.isStreaming and "RocksDB" not in has:
            raise TidingsError(
                f"streams of this session keep their state in {has.rpartition('.')[2]}, but "
                f"windows need RocksDB; first call\n  spark.conf.set({key!r}, {needed!r})"
            )
    tasks = int(conf.get(SHUFFLE) or 0)
    if tasks > MAX_TASKS_PER_BUCKET * buckets:
        warnings.warn(
            f"{SHUFFLE} is {tasks}, but at most {buckets} tasks of a batch have a bucket to work "
            f"on; the others start Python for nothing. Set it to {buckets} or fewer before a "
            "checkpoint is begun",
            stacklevel=4,
        )


def submitted_settings() -> dict[str, str]:
    """Return the settings with which `spark-submit` started this process; none without it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # noqa: SLF001
    return dict(SparkConf().getAll())


def all_settings(settings: Mapping[str, str], master: str = "local[*]") -> dict[str, str]:
    """Return all settings of a session; `settings` take precedence.

    >>> all_settings({"spark.sql.shuffle.partitions": "8"})["spark.sql.shuffle.partitions"]
    '8'
    >>> "spark.driver.host" in all_settings({}, "spark://node:7077")
    False
    """
    ours = f"{_TUNING} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    options = f"{ours} {settings.get(_JAVA_OPTIONS, '')}".rstrip()
    local = {**_LOOPBACK, **_LOCAL_DISK, **_python_path()} if _is_local(master) else {}
    return {**_SETTINGS, **local, **settings, _JAVA_OPTIONS: options}


def _is_local(master: str) -> bool:
    """Return whether a master runs on this machine: `local[...]` or `local-cluster[...]`."""
    return master.startswith("local")


def worker_python(master: str) -> Path:
    """Return the Python of the workers: our wrapper if they are local, else a path."""
    if _is_local(master):
        return python_command()
    return Path(os.environ.get("PYSPARK_PYTHON") or sys.executable)


def _python_path() -> dict[str, str]:
    """Return the setting that lets separate executors import the same modules."""
    path = os.environ.get("PYTHONPATH")
    return {"spark.executorEnv.PYTHONPATH": path} if path else {}


@contextmanager
def _environment(**variables: Path) -> Iterator[None]:
    """Set variables while Spark starts, the only time it reads them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: str(path) for name, path in variables.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
