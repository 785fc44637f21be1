"""A PostgreSQL that is killed under a running pipeline: it is waited for, and nothing is lost."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kill.process import Pipeline, Run, kill
from tests.kill.stream import lay
from tests.store import server

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]


@pytest.fixture
def database(postgres: Any, postgres_address: str) -> Iterator[Any]:
    """Give a server that a test may kill; it runs again afterwards."""
    assert postgres_address == postgres.get_uri()
    yield postgres
    server.start(postgres)


def kill_database(database: Any, pipeline: Pipeline, run: Run) -> None:
    """Kill the server, with all its processes, in the second batch from now."""
    batch = pipeline.committed() + 2
    assert run.until(lambda: pipeline.committed() >= batch, 0.01), run.said()
    first = database.get_postmaster_info().process
    kill([first.pid, *(each.pid for each in first.children(recursive=True))])
    first.wait(30)


def test_a_killed_database_is_waited_for_and_then_told(tmp_path: Path, database: Any) -> None:
    expected = lay(tmp_path, files=24)
    pipeline = Pipeline(tmp_path, database.get_uri())
    run = pipeline.start(patience_s=1)
    kill_database(database, pipeline, run)
    assert run.wait() == 3
    assert "PostgreSQL has not answered for 1 s; see that it runs" in run.said()
    server.start(database)
    run = pipeline.start(patience_s=120)
    kill_database(database, pipeline, run)
    time.sleep(2)
    assert run.process.poll() is None
    server.start(database)
    assert run.wait() == 0, run.said()
    assert "waiting up to 120 s for PostgreSQL" in run.said()
    with open_store(database.get_uri()) as store:
        expected.check(store)
