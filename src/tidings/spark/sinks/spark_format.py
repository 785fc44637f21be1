"""Sink that writes deliveries by any format of Spark."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidings.formats.arrow import DELIVERIES
from tidings.formats.redaction import hider_of
from tidings.spark.ops.error_messages import SPARK_ERRORS, SparkError, describe_error
from tidings.spark.sinks.parquet import OnWritten

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
