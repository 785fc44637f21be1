"""The stream itself: films from Parquet files through Spark, outcomes to Parquet files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event as Wish
from typing import Any

from tidings.app.demo.state import Batch
from tidings.app.demo.subscribers import Role
from tidings.app.demo.workspace import FILES_PER_BATCH, PUBLICATIONS
from tidings.spark import outcomes, parquet_sink
from tidings.spark.ops.query_control import Gate, follow, start


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

    root = directory.resolve()
    gate = Gate(parquet_sink(root, written), wish)
    running = start(_outcomes(spark, roles, root).writeStream, gate, str(root / "checkpoint"))
    list(follow(running))
    return not wish.is_set()


def _outcomes(spark: Any, roles: Sequence[Role], root: Path) -> Any:
    source = str(root / PUBLICATIONS)
    films = (
        spark.readStream.schema(spark.read.parquet(source).schema)
        .option("maxFilesPerTrigger", FILES_PER_BATCH)
        .parquet(source)
    )
    wanted = [each for role in roles for each in role.subscriptions]
    return outcomes(films, wanted, [role.subscriber for role in roles])
