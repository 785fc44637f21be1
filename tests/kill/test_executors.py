"""Deliveries stay the same if executors are killed one after the other."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from tests.kill.cluster import EXECUTORS, LOOPBACK, standalone, swept
from tests.kill.process import KILLS, Pipeline, Run, kill, processes
from tests.kill.stream import write_stream

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
FILES = 8
LOCAL = "local-cluster[2,1,1024]"


def executors(sessions: Iterable[int]) -> list[int]:
    """Return the executors among the processes of some sessions."""
    return [
        process
        for session in sessions
        for process in processes(session, "CoarseGrainedExecutorBackend")
    ]


def kill_executors(
    pipeline: Pipeline, run: Run, sessions: Iterable[int], batches: Iterable[int]
) -> None:
    """Kill an executor at a random time after each of some batches."""
    chance = Random(5)
    for batch in batches:
        assert run.until(lambda number=batch: pipeline.committed() >= number, 0.01), run.output()  # type: ignore[misc]
        assert run.until(lambda: len(executors(sessions)) == 2, chance.random() / 10), run.output()
        kill([chance.choice(executors(sessions))])


def test_executors_of_a_local_cluster_may_die(tmp_path: Path) -> None:
    expected = write_stream(tmp_path, FILES)
    session = {"master": LOCAL, "settings": EXECUTORS}
    pipeline = Pipeline(tmp_path, [str(tmp_path / "s.db")], session)
    with swept():
        run = pipeline.start()
        kill_executors(pipeline, run, [run.process.pid], batches=(0, 2) if KILLS else (0,))
        assert run.wait() == 0, run.output()
    with open_store(pipeline.stores[0]) as store:
        expected.check(store)


def test_executors_and_the_driver_of_a_standalone_cluster_may_die(tmp_path: Path) -> None:
    expected = write_stream(tmp_path, FILES)
    with standalone(tmp_path / "cluster") as (address, workers):
        session = {"master": address, "settings": LOOPBACK | EXECUTORS}
        pipeline = Pipeline(tmp_path, [str(tmp_path / "s.db")], session)
        run = pipeline.start()
        kill_executors(pipeline, run, workers, batches=(0,))
        assert run.until(lambda: pipeline.committed() >= 1, 0.01), run.output()
        run.kill()
        pipeline.finish()
    with open_store(pipeline.stores[0]) as store:
        expected.check(store)
