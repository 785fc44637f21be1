"""Registration of our sources with a session, under the names that `format` takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from tidings.formats.event_source import TABLE
from tidings.spark.sources.messages import MESSAGE_SOURCES
from tidings.spark.sources.sql_table import TableSource

SOURCES: Final[dict[str, type[DataSource]]] = {**MESSAGE_SOURCES, TABLE: TableSource}


def register_sources(spark: SparkSession) -> None:
    """Register the formats `tidings-table`, `tidings-kafka` and other messages with a session.

    A session of `tidings.spark.session` has them already.
    """
    with _active(spark):
        for source in SOURCES.values():
            spark.dataSource.register(source)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a classic session the active one, in which Spark looks up registered names."""
    java: Any = getattr(spark, "_jvm", None)
    if java is None:
        yield
        return
    before = java.SparkSession.getActiveSession()
    java.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            java.SparkSession.setActiveSession(before.get())
