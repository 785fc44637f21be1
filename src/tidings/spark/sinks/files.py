"""Parquet sink: one folder per kind and batch, which a replayed batch overwrites."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidings.formats.arrow import DELIVERIES
from tidings.formats.redaction import hider_of
from tidings.spark.ops.error_messages import SPARK_ERRORS, SparkError, describe_error, writing_to

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


# Sink that writes deliveries by any format of Spark.

_TABLE = "deliveries"


def format_sink(
    form: str,
    options: Mapping[str, str],
    select: str | None = None,
    written: OnWritten | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a `foreachBatch` function that appends deliveries by a format of Spark.

    `select` is a query over the table `deliveries` that selects the rows to write. A batch that is
    replayed after a crash is written again unless the format prevents it.
    """

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            rows = batch.where(f.col("kind") == "delivery").select(*DELIVERIES.names)
            if select is not None:
                rows.createOrReplaceTempView(_TABLE)
                rows = batch.sparkSession.sql(select)
            _save(rows, form, options)
            if written:
                written(number, batch)
        finally:
            batch.unpersist()

    return write


def _save(rows: DataFrame, form: str, options: Mapping[str, str]) -> None:
    try:
        rows.write.format(form).options(**options).mode("append").save()
    except SPARK_ERRORS as error:
        reason = describe_error(error)
    else:
        return
    # Raised outside the handler so that it has no context: Spark's error may show options.
    raise SparkError(f"[sink] format = {form!r}: {hider_of(options)(reason)}")
