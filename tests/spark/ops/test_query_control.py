"""A checkpoint whose first batch was never logged can be used."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import tidings.spark as ts
from tidings import Subscription
from tidings.spark.ops.query_control import SinkGate, follow, remove_leftovers, start

LEFT = (".0.a4d6834e.tmp", "..0.a4d6834e.tmp.crc")


def killed(place: Path, *logged: str) -> Path:
    """Create the checkpoint of a query that was killed while it logged a batch."""
    (place / "offsets").mkdir(parents=True)
    for name in (*LEFT, *logged):
        (place / "offsets" / name).write_text("v1")
    return place


def test_leftovers_from_before_the_first_batch_are_removed(tmp_path: Path) -> None:
    place = killed(tmp_path / "a folder")
    assert remove_leftovers(place.as_uri()) == sorted(LEFT)
    assert remove_leftovers(place) == []
    assert not any((place / "offsets").iterdir())


@pytest.mark.parametrize("logged", [("0",), ("7", ".7.crc")])
def test_a_checkpoint_with_batches_is_left_alone(tmp_path: Path, logged: tuple[str]) -> None:
    place = killed(tmp_path, *logged)
    assert remove_leftovers(place) == []
    assert len(list((place / "offsets").iterdir())) == 2 + len(logged)


def test_a_missing_or_remote_checkpoint_is_ignored(tmp_path: Path) -> None:
    assert remove_leftovers(tmp_path / "none") == []
    assert remove_leftovers("hdfs://host/checkpoint") == []


@pytest.mark.spark
def test_a_query_killed_before_its_first_batch_starts_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    event = '{"id": "e1", "published_at": 0, "attributes": {"x": 1}}'
    (tmp_path / "in" / "a.jsonl").write_text(event)
    lines = spark.readStream.text(str(tmp_path / "in"))
    found = ts.outcomes(lines, [Subscription("s", "a", where="x = 1")])
    writer = found.writeStream.format("noop")
    refused = writer.option("checkpointLocation", str(killed(tmp_path / "refused"))).start()
    with pytest.raises(StreamingQueryException, match="should be empty"):
        refused.awaitTermination(60)
    seen = list[str]()

    def write(batch: DataFrame, number: int) -> None:
        seen.extend(row.event for row in batch.where("kind = 'delivery'").collect())

    running = start(found.writeStream, SinkGate(write), str(killed(tmp_path / "check")))
    list(follow(running))
    assert seen == ["e1"]
