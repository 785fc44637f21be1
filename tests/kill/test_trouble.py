"""A full disk, a store that is locked, a damaged checkpoint: told clearly, and nothing is lost."""

import sqlite3
from pathlib import Path

import pytest
from tests.kill.process import Pipeline
from tests.kill.stream import POISON, Expected, count, lay

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
FILES = 4 * len(POISON)


@pytest.fixture
def expected(tmp_path: Path) -> Expected:
    return lay(tmp_path, FILES)


@pytest.fixture
def pipeline(tmp_path: Path, expected: Expected) -> Pipeline:
    return Pipeline(tmp_path, str(tmp_path / "s.db"), {"files": 4})


def test_trouble_is_told_and_a_restart_goes_on(pipeline: Pipeline, expected: Expected) -> None:
    fill_the_disk(pipeline)
    lock_the_store(pipeline)
    damage_the_checkpoint(pipeline)
    pipeline.finish()
    with open_store(pipeline.address) as store:
        expected.check(store)


def fails(pipeline: Pipeline, **plan: object) -> str:
    """Run a pipeline that must fail, within a batch or when it starts; give what it says."""
    before = written(pipeline)
    run = pipeline.start(**plan)
    assert run.wait() != 0
    assert written(pipeline) >= before
    return run.said()


def written(pipeline: Pipeline) -> int:
    with open_store(pipeline.address) as store:
        return count(store)


def fill_the_disk(pipeline: Pipeline) -> None:
    said = fails(pipeline, most_pages=40)
    assert "the disk is full; free some space and do it again" in said
    assert pipeline.committed() >= 0


def lock_the_store(pipeline: Pipeline) -> None:
    before = written(pipeline)
    holder = sqlite3.connect(pipeline.address, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    run = pipeline.start(patience_s=0.5)
    assert run.wait() == 3
    holder.execute("ROLLBACK")
    holder.close()
    assert "another process has been writing for too long; try again, or end it" in run.said()
    assert written(pipeline) == before


def damage_the_checkpoint(pipeline: Pipeline) -> None:
    """Damage the offsets of the batch that is under way, as a disk may; then restore them."""
    before, offsets = written(pipeline), pipeline.checkpoint / "offsets"
    newest = max(offsets.glob("[0-9]*"), key=lambda path: int(path.name))
    good = newest.read_bytes()
    newest.write_bytes(b"v1\n")
    said = fails(pipeline)
    assert "offset" in said.lower()
    assert written(pipeline) == before
    newest.write_bytes(good)
