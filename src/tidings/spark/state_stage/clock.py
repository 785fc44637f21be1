"""Time that passes without publications: ticks for all buckets, as rows of FLOW."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidings.errors import InvalidPolicy
from tidings.model.values import SECOND_US, parse_duration_us, parse_time_us
from tidings.spark.match_stage.stage import FLOW, tick


def with_time(flow: DataFrame, buckets: int, until: object, clock: object) -> DataFrame:
    """Give a flow with the ticks of a clock, or with those that end a batch."""
    if until is not None:
        if flow.isStreaming:
            raise InvalidPolicy("until is for batches; in a stream, time or a clock closes periods")
        return flow.unionByName(last_ticks(flow.sparkSession, buckets, parse_time_us(until)))
    if clock is None:
        return flow
    if not flow.isStreaming:
        raise InvalidPolicy("a clock is for streams; a batch says until when")
    return flow.unionByName(clock_ticks(flow.sparkSession, buckets, parse_duration_us(clock)))


def last_ticks(spark: SparkSession, buckets: int, until_us: int) -> DataFrame:
    """Give a tick for every bucket."""
    table = pa.Table.from_pylist([tick(each, until_us, 0) for each in range(buckets)], FLOW)
    return spark.createDataFrame(table)


def clock_ticks(spark: SparkSession, buckets: int, every_us: int) -> DataFrame:
    """Give a stream of ticks for every bucket, each so much later than the one before.

    They come from Spark's source `rate`, of which the checkpoint holds when it began, and how far
    each batch went: a batch that is replayed has the very same ticks.
    """
    if every_us < SECOND_US or every_us % SECOND_US:
        raise InvalidPolicy(f"a clock ticks every so many whole seconds, not {every_us / 1e6:g} s")
    seconds = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    due = seconds.where(f.col("value") % (every_us // SECOND_US) == 0)
    return due.select(
        f.explode(f.sequence(f.lit(0), f.lit(buckets - 1))).alias("bucket"),
        f.lit("tick").alias("kind"),
        f.unix_micros("timestamp").alias("published_us"),
        f.lit(0).cast("long").alias("sequence"),
        f.lit(None).cast("binary").alias("body"),
    )
