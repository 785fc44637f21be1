"""Parquet sink: one folder per kind and batch, which a replayed batch overwrites."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidings.formats.arrow import DELIVERIES
from tidings.spark.ops.error_messages import writing_to

FOLDERS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "delivery": ("deliveries", {name: name for name in DELIVERIES.names}),
    "account": ("accounts", {"subscriber": "subscriber", "position": "matches", "rank": "score"}),
    "late": ("late", {"event": "event", "record": "record", "reason": "reason"}),
    "dead": ("dead_letters", {"record": "record", "reason": "reason"}),
}

OnWritten = Callable[[int, DataFrame], None]


def parquet_sink(
    directory: str | Path, written: OnWritten | None = None
) -> Callable[[DataFrame, int], None]:
    """Return a `foreachBatch` function that writes Parquet to `directory`, a path or Hadoop URL.

    Spark replays a batch with the input that it logged for it, so overwriting `batch=N` makes the
    sink idempotent. `written` is called with each batch after it is on disk.
    """

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            with nullcontext() if "://" in str(directory) else writing_to(Path(directory)):
                _write(batch, str(directory), number)
            if written:
                written(number, batch)
        finally:
            batch.unpersist()

    return write


def _write(batch: DataFrame, directory: str, number: int) -> None:
    for kind, (folder, columns) in FOLDERS.items():
        chosen = [f.col(name).alias(alias) for name, alias in columns.items()]
        rows = batch.where(f.col("kind") == kind).select(*chosen)
        rows.coalesce(1).write.mode("overwrite").parquet(batch_path(directory, folder, number))


def batch_path(directory: str, folder: str, number: int) -> str:
    """Return the path of a batch of a kind; the scheme of a URL is kept.

    >>> batch_path("s3a://bucket/films/", "late", 7)
    's3a://bucket/films/late/batch=00000007'
    """
    return f"{directory.rstrip('/')}/{folder}/batch={number:08d}"
