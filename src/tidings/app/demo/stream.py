"""The stream of the demo: films from Parquet files through Spark, outcomes to Parquet files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event as Flag
from typing import Any

from tidings.app.demo.state import OutcomeBatch
from tidings.app.demo.subscribers import DemoSubscriber
from tidings.app.demo.workspace import FILES_PER_BATCH, PUBLICATIONS
from tidings.model.records import Event
from tidings.spark import outcomes, parquet_sink
from tidings.spark.ops.query_control import SinkGate, follow, start
from tidings.spark.warm_stages import warm_stages
from tidings.testing import Workload


def compile_kernels(subscribers: Sequence[DemoSubscriber], films: Sequence[Event]) -> None:
    """Run both stages in this process, so that the workers find their kernels compiled."""
    owners = [owner.subscriber for owner in subscribers]
    subscriptions = [subscription for owner in subscribers for subscription in owner.subscriptions]
    warm_stages(Workload(owners, subscriptions, list(films)))


def run_stream(
    spark: Any,
    subscribers: Sequence[DemoSubscriber],
    directory: Path,
    on_batch: Callable[[OutcomeBatch], None],
    stop_requested: Flag | None = None,
) -> bool:
    """Run the stream over the publications in `directory`; return whether it reached its end.

    `on_batch` is called with each batch after it is on disk. When `stop_requested` is set, the
    stream stops after the current batch: tasks that are killed fill the screen with stack traces.
    """
    flag = stop_requested or Flag()

    def on_written(number: int, batch: Any) -> None:
        on_batch(OutcomeBatch(number, batch.toArrow().to_pylist()))

    root = directory.resolve()
    gate = SinkGate(parquet_sink(root, on_written), flag)
    stream = _outcomes(spark, subscribers, root).writeStream
    list(follow(start(stream, gate, str(root / "checkpoint"))))
    return not flag.is_set()


def _outcomes(spark: Any, subscribers: Sequence[DemoSubscriber], root: Path) -> Any:
    source = str(root / PUBLICATIONS)
    films = (
        spark.readStream.schema(spark.read.parquet(source).schema)
        .option("maxFilesPerTrigger", FILES_PER_BATCH)
        .parquet(source)
    )
    subscriptions = [subscription for owner in subscribers for subscription in owner.subscriptions]
    return outcomes(films, subscriptions, [owner.subscriber for owner in subscribers])
