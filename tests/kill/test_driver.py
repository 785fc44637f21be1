"""A pipeline whose driver is killed stores exactly the deliveries of an undisturbed engine."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.kill.points import POINTS, STOPPING_TASKS, is_at, rewind, stop_plan
from tests.kill.process import KILLS, Pipeline, Run, launch
from tests.kill.stream import Expected, count, write_stream
from tests.store import server

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]


@pytest.fixture
def pipeline(tmp_path: Path, postgres_address: str) -> Iterator[Pipeline]:
    """Return a pipeline that writes each batch to SQLite, and then to PostgreSQL."""
    with closing(Pipeline(tmp_path, [str(tmp_path / "s.db"), postgres_address])) as made:
        yield made


def counts(pipeline: Pipeline) -> list[int]:
    """Return the number of deliveries in each store."""
    found = []
    for address in pipeline.stores:
        with open_store(address) as store:
            found.append(count(store))
    return found


def check(pipeline: Pipeline, expected: Expected) -> None:
    for address in pipeline.stores:
        with open_store(address) as store:
            expected.check(store)


def test_kills_at_every_named_point(tmp_path: Path, postgres: Any) -> None:
    """Stop a pipeline at each point, kill the process of them all, and finish them in another.

    Half of them stop in their first batch, and the others while their rules hold events.
    """
    expected = write_stream(tmp_path, files=8)
    assert expected.held[3] > 0  # with the last file of the second batch
    killed = [
        (_numbered(tmp_path, number, postgres), point, 2 * (number % 2))
        for number, point in enumerate(reversed(POINTS))
    ]
    run = launch(tmp_path, {"cores": 2 + STOPPING_TASKS})
    run.begin([pipeline.plan(**stop_plan(point, batch)) for pipeline, point, batch in killed])
    last_one = killed[-1][0]
    try:
        assert run.until((last_one.folder / "reached").exists, 0.1), run.output()
    finally:
        run.kill()
    for pipeline, point, batch in killed:
        rewind(pipeline, point, batch)
        assert is_at(pipeline, point, batch), point
        if point == "between the transactions":
            first, second = counts(pipeline)
            assert first > second
    run = launch(tmp_path, {})
    run.begin([pipeline.plan() for pipeline, _, _ in killed])
    assert run.wait() == 0, run.output()
    for pipeline, _, _ in killed:
        check(pipeline, expected)


def _numbered(stream: Path, number: int, postgres: Any) -> Pipeline:
    """Return a pipeline with a folder and a database for itself, and the stream of all."""
    folder = stream / f"pipeline{number}"
    folder.mkdir()
    return Pipeline(
        folder, [str(folder / "s.db"), server.database(postgres, f"p{number}")], stream=stream
    )


def test_kills_at_random(pipeline: Pipeline) -> None:
    """Kill at any time after the start of the query: in its first batch, or in a later one.

    A short run kills once. On a machine of whatever speed, batches are done between the kills.
    """
    kills = KILLS or 1
    expected = write_stream(pipeline.folder, files=8 + 6 * kills, seed=8)
    chance, seen = Random(8), [[0, 0]]
    for _ in range(kills):
        run = pipeline.start()
        pipeline.prepare()
        later = chance.randrange(3)
        wait_for(run, pipeline, pipeline.committed() + later)
        time.sleep(chance.random() * (0.7 if later else 8))
        run.kill()
        seen.append(counts(pipeline))
    pipeline.finish()
    for each in zip(*seen, strict=True):
        assert list(each) == sorted(each)
    check(pipeline, expected)


def wait_for(run: Run, pipeline: Pipeline, batch: int) -> None:
    """Wait until a pipeline has finished a batch, or all of them."""
    assert run.until(run.started, 0.01), run.output()
    done = run.until(lambda: pipeline.committed() >= batch, 0.01)
    assert done or run.process.poll() == 0, run.output()
