"""A pipeline whose driver is killed stores exactly the deliveries of an undisturbed engine."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from tests.kill.points import POINTS, kill_at
from tests.kill.process import Pipeline, Run
from tests.kill.stream import Expected, count, write_stream

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
KILLS = int(os.environ.get("TIDINGS_KILLS", "0"))
"""Number of random kills in a long run; a short run has two."""
TRIES = 5


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


def test_kills_at_every_named_point(pipeline: Pipeline) -> None:
    expected = write_stream(pipeline.folder, files=4 + 4 * len(POINTS))
    for number, point in enumerate(POINTS):
        # Spark takes only milliseconds between two of its files, so the point may be missed.
        tries = (kill_at(pipeline, point, number % 2) for _ in range(TRIES))
        assert any(tries), f"never killed {point}"
        if point == "between the transactions":
            first, second = counts(pipeline)
            assert first > second
    pipeline.finish()
    check(pipeline, expected)


def test_kills_at_random(pipeline: Pipeline) -> None:
    """Kill at any time after the start of the query: in its first batch, or in a later one.

    On a machine of whatever speed, batches are done between the kills.
    """
    kills = KILLS or 2
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
    assert run.until(lambda: run.has("started"), 0.01), run.output()
    done = run.until(lambda: pipeline.committed() >= batch, 0.01)
    assert done or run.process.returncode == 0, run.output()
