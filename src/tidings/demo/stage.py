"""The stream itself: films from Parquet files through Spark, outcomes to Parquet files."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event as Wish
from typing import Any, Final

from tidings.demo.board import Batch
from tidings.demo.cast import Role
from tidings.demo.folder import FILES_PER_BATCH, PUBLICATIONS
from tidings.spark import outcomes, parquet_sink

Written = Callable[[int, Any], None]

_LOOK_EVERY_S: Final = 0.2


class Stopped(Exception):
    """Raised within a stream to end it where its batch is complete."""


def play(
    spark: Any,
    roles: Sequence[Role],
    directory: Path,
    told: Callable[[Batch], None],
    asked: Wish | None = None,
) -> bool:
    """Run the stream over the publications in `directory`; tell whether it came to its end.

    `told` hears of each batch when it is on disk. Once the stream is `asked` to stop, it does so
    after the batch that it is in: tasks that are torn away fill the screen with complaints.
    """
    wish = asked or Wish()

    def written(number: int, batch: Any) -> None:
        told(Batch(number, batch.toArrow().to_pylist()))
        if wish.is_set():
            spark.sparkContext.setLogLevel("OFF")
            raise Stopped

    query = _start(spark, roles, directory.resolve(), written)
    while query.isActive:
        time.sleep(_LOOK_EVERY_S)
    if wish.is_set():
        spark.sparkContext.setLogLevel("ERROR")
        return False
    query.awaitTermination()
    return True


def _start(spark: Any, roles: Sequence[Role], root: Path, written: Written) -> Any:
    source = str(root / PUBLICATIONS)
    films = (
        spark.readStream.schema(spark.read.parquet(source).schema)
        .option("maxFilesPerTrigger", FILES_PER_BATCH)
        .parquet(source)
    )
    wanted = [each for role in roles for each in role.subscriptions]
    found = outcomes(films, wanted, [role.subscriber for role in roles])
    writer = found.writeStream.foreachBatch(parquet_sink(root, written)).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(root / "checkpoint")).start()
