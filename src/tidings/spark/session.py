"""A local SparkSession, tuned for short jobs and small micro-batches, that says nothing."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tidings.spark.java import find_java
from tidings.spark.launchers import java_home, python_command

# The state operator runs on no other store.
STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

# For checkpoints on a local disk only: about a third less time for each micro-batch.
_LOCAL_DISK: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}

_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    **STATE_STORE,
    **_LOCAL_DISK,
}

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# The quick compiler and the plain collector: Java only carries the rows to Python and back.
_TUNING: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def session(
    name: str = "tidings", *, cores: int | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Get the running SparkSession as it is, or start a local one (about 5 s).

    `cores` is how many to use, all by default. `settings` are further ones of Spark and win over
    those made here; Java options are added to ours. No Java need be set up: see `find_java`.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName(name).master(f"local[{cores or '*'}]")
    for key, setting in local_settings(settings or {}).items():
        builder = builder.config(key, setting)
    with _environment(JAVA_HOME=java_home(find_java()), PYSPARK_PYTHON=python_command()):
        return builder.getOrCreate()


def local_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Give all settings of a local session; those given win.

    >>> local_settings({"spark.sql.shuffle.partitions": "8"})["spark.sql.shuffle.partitions"]
    '8'
    """
    ours = f"{_TUNING} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    options = f"{ours} {given.get(_JAVA_OPTIONS, '')}".rstrip()
    return {**_SETTINGS, **given, _JAVA_OPTIONS: options}


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
