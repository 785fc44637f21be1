"""A pipeline waits for a PostgreSQL that is killed while it runs, and loses nothing."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.kill.driver import start
from tests.kill.process import Pipeline, kill
from tests.kill.stream import write_stream
from tests.store import server

from tidings.spark.ops.error_messages import describe_error
from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]


@pytest.fixture
def database(postgres: Any, postgres_address: str) -> Iterator[Any]:
    """Yield a server that a test may kill; it is restarted afterwards."""
    assert postgres_address == postgres.get_uri()
    yield postgres
    server.start(postgres)


def kill_database(database: Any, pipeline: Pipeline, query: StreamingQuery) -> None:
    """Kill the server with all its processes in the second batch from now."""
    batch = pipeline.committed() + 2
    while pipeline.committed() < batch:
        assert query.isActive
        time.sleep(0.01)
    first = database.get_postmaster_info().process
    kill([first.pid, *(each.pid for each in first.children(recursive=True))])
    first.wait(30)


def test_a_killed_database_is_awaited_and_then_reported(
    spark: SparkSession, tmp_path: Path, database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    expected = write_stream(tmp_path, files=20)
    pipeline = Pipeline(tmp_path, [database.get_uri()])
    query = start(spark, tmp_path, pipeline.plan(patience_s=1))
    kill_database(database, pipeline, query)
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    assert "PostgreSQL has not answered for 1 s; check that it is running" in describe_error(
        caught.value
    )
    server.start(database)
    query = start(spark, tmp_path, pipeline.plan(patience_s=120))
    kill_database(database, pipeline, query)
    while not re.search(r"waiting up to 1\d\d s for PostgreSQL", caplog.text):
        assert query.isActive
        time.sleep(0.05)
    server.start(database)
    query.awaitTermination()
    with open_store(database.get_uri()) as store:
        expected.check(store)
