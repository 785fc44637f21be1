"""Full or locked stores and damaged checkpoints: clear errors, and nothing is lost.

Nothing is killed here, so all of it runs in the one Spark of the tests.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.kill.driver import start
from tests.kill.process import Pipeline, last
from tests.kill.stream import count, write_stream

from tidings.spark.ops.error_messages import SPARK_ERRORS, describe_error
from tidings.store import open_store, sqlite

pytestmark = [pytest.mark.spark, pytest.mark.kill]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path, [str(tmp_path / "s.db")])


def run(spark: SparkSession, pipeline: Pipeline, **given: Any) -> None:
    """Run a pipeline to its end in this process; its errors are raised."""
    start(spark, pipeline.folder, pipeline.plan(**{"files": 4, **given})).awaitTermination()


def refused(spark: SparkSession, pipeline: Pipeline, **given: Any) -> str:
    """Run a pipeline that must fail and write nothing more; return its error message."""
    before = written(pipeline)
    with pytest.raises(SPARK_ERRORS) as caught:
        run(spark, pipeline, **given)
    assert written(pipeline) == before
    return describe_error(caught.value)


def written(pipeline: Pipeline) -> int:
    with open_store(pipeline.stores[0]) as store:
        return count(store)


def pages_of_an_empty_store(pipeline: Pipeline) -> int:
    path = pipeline.folder / "empty.db"
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        [(pages,)] = connection.execute("PRAGMA page_count")
    return int(pages)


def test_a_full_or_locked_store_is_reported_and_a_restart_resumes(
    spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = write_stream(pipeline.folder, files=8)
    with monkeypatch.context() as patch:
        full = f"PRAGMA max_page_count = {pages_of_an_empty_store(pipeline) + 3}"
        patch.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, full))
        with pytest.raises(SPARK_ERRORS) as caught:
            run(spark, pipeline, files=2)
    assert "the disk is full; free some space and try again" in describe_error(caught.value)
    assert written(pipeline) > 0
    holder = sqlite3.connect(pipeline.stores[0], isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    text = refused(spark, pipeline, patience_s=0.5)
    holder.execute("ROLLBACK")
    holder.close()
    assert "another process has been writing for too long; try again, or stop it" in text
    run(spark, pipeline)
    with open_store(pipeline.stores[0]) as store:
        expected.check(store)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def flipped_unseen(path: Path) -> None:
    """Flip a bit in a file without a checksum file, as on other file systems."""
    flipped(path)
    _checksum(path).unlink()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def gone(path: Path) -> None:
    path.unlink()


def _checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


Damage = Callable[[Path], None]
DAMAGES: list[tuple[str, Damage]] = [
    ("state/0/0/[0-9]*.zip", flipped),
    ("state/0/0/[0-9]*.zip", flipped_unseen),
    ("state/0/0/[0-9]*.zip", cut),
    ("state/0/0/[0-9]*.zip", gone),
    ("state/0/0/SSTs/[0-9]*.sst", flipped),
    ("state/0/0/SSTs/[0-9]*.sst", flipped_unseen),
    ("state/0/0/SSTs/[0-9]*.sst", cut),
    ("state/0/0/SSTs/[0-9]*.sst", gone),
    ("state/0/_metadata/v2/0", cut),
    ("state/0/_metadata/v2/0", gone),
    ("state/0/_stateSchema/default/0_*", cut),
    ("state/0/_stateSchema/default/0_*", gone),
    ("offsets/[0-9]*", cut),
    ("offsets/[0-9]*", gone),
    ("commits/[0-9]*", cut),
    ("sources/0/[0-9]*", flipped),
    ("sources/0/[0-9]*", gone),
    ("metadata", cut),
    ("metadata", gone),
]


@contextmanager
def damaged(checkpoint: Path, pattern: str, damage: Damage) -> Iterator[None]:
    """Damage the newest file of a kind within a context."""
    path = max(checkpoint.glob(pattern), key=lambda each: (each.stat().st_mtime, each.name))
    files = [each for each in (path, _checksum(path)) if each.exists()]
    kept = [(file, file.read_bytes()) for file in files]
    damage(path)
    yield
    for each, content in kept:
        each.write_bytes(content)


def held_back(folder: Path, first: int) -> list[Path]:
    """Move the later files of a stream to another folder within a context."""
    later = folder / "later"
    later.mkdir(exist_ok=True)
    files = sorted((folder / "in").iterdir())[first:]
    return [file.rename(later / file.name) for file in files]


def release(files: list[Path]) -> None:
    for file in files:
        file.rename(file.parent.parent / "in" / file.name)


def test_a_damaged_checkpoint_is_reported_and_copies_of_it_resume(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    """After damage, restore the file, an older copy, or start with a new checkpoint."""
    expected = write_stream(pipeline.folder, files=24)
    last_part, middle = held_back(pipeline.folder, 16), held_back(pipeline.folder, 8)
    run(spark, pipeline)
    copy = shutil.copytree(pipeline.checkpoint, pipeline.folder / "copy")
    release(middle)
    for pattern, damage in DAMAGES:
        with damaged(pipeline.checkpoint, pattern, damage):
            text = refused(spark, pipeline)
        case = (pattern, damage.__name__, text)
        assert text.startswith("the checkpoint"), case
        assert "restore a copy of it, or start with a new one" in text, case
        if damage is not flipped_unseen:
            assert str(pipeline.checkpoint) in text, case
        shutil.rmtree(pipeline.checkpoint)
        shutil.copytree(copy, pipeline.checkpoint)
    run(spark, pipeline)
    assert last(pipeline.checkpoint / "commits") == 3
    shutil.rmtree(pipeline.checkpoint)
    copy.rename(pipeline.checkpoint)
    release(last_part)
    # The next two batches have numbers that are stored already, but other contents.
    run(spark, pipeline, files=6)
    for begin_anew in (False, True):
        if begin_anew:
            shutil.rmtree(pipeline.checkpoint)
            run(spark, pipeline, files=12)
        with open_store(pipeline.stores[0]) as store:
            expected.check_deliveries(store)
            assert store.letters.count("dead") >= expected.dead
            assert {letter.record["id"] for letter in store.letters.page("late")} == {
                *expected.late
            }
