"""Deliveries into whatever Spark can write to."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidings.formats.arrow import DELIVERIES
from tidings.formats.redaction import hider_of
from tidings.spark.ops.error_messages import TROUBLES, SparkTrouble, said
from tidings.spark.sinks.parquet import Written

_TABLE = "deliveries"


def format_sink(
    form: str, options: Mapping[str, str], select: str | None = None, written: Written | None = None
) -> Callable[[DataFrame, int], None]:
    """Give a `foreachBatch` function that appends deliveries by a format of Spark and its options.

    `select` is a query over the table `deliveries` that gives the rows to write. A batch that is
    replayed after a crash is written again, unless the sink knows better: exactly once is up to it.
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
    except TROUBLES as error:
        words = said(error)
    else:
        return
    # Raised here, it has no context: Spark's error may show options.
    raise SparkTrouble(f"[sink] format = {form!r}: {hider_of(options)(words)}")
