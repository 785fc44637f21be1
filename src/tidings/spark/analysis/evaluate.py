"""How good deliveries are, beside all that plain publish/subscribe would have sent."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.diversify.distance import Overlap
from tidings.engine.quality import SPAN, make_set_diversity
from tidings.formats.arrow import MATCHES, ReadEvents
from tidings.model import validate
from tidings.model.records import Event
from tidings.model.values import SECOND_US
from tidings.spark.publications import check_frame, readable

APART: Final = pa.schema({"subscriber": pa.string(), "apart": pa.float64(), "pairs": pa.int64()})
_DELIVERED: Final = ("subscriber", "event", "rank", "matched", "delivered_at")
WHO: Final = "_subscriber"
TURN: Final = "_turn"
_SUMS: Final = ("matches", "scores", "wanted", "delivered", "ranks", "aged", "ages", "served")


def evaluate(
    deliveries: DataFrame,
    matches: DataFrame,
    publications: DataFrame | None = None,
    by: str | None = "subscriber",
    span: int = SPAN,
) -> DataFrame:
    """Give the figures of `Engine.quality`, for each subscriber or (`by=None`) over all.

    Columns: subscriber, matches, delivered, share (of matches), mean_score (of all matches),
    mean_rank and mean_age_s (of the deliveries; null where there are none), diversity and coverage.
    Diversity is the overlap distance of what a subscriber got (PREF Def. 8, among the last `span`
    deliveries); it takes attributes, so it is null without `publications`.
    """
    validate.choice("by", by or "subscriber", ("subscriber",))
    validate.count("span", span, low=2)
    check_frame("deliveries", deliveries, _DELIVERED)
    check_frame("matches", matches, MATCHES.names)
    found = _sums(deliveries, matches)
    if publications is None:
        found = found.withColumns({"apart": f.lit(None), "pairs": f.lit(None)})
    else:
        found = found.join(_apart(deliveries, publications, span), "subscriber", "left")
    if by is None:
        found = found.agg(*(f.sum(name).alias(name) for name in (*_SUMS, "apart", "pairs")))
    return found.select(*([by] if by else []), *_figures())


def _sums(deliveries: DataFrame, matches: DataFrame) -> DataFrame:
    """Give what can be added up, by subscriber; what was never matched is not evaluated."""
    all_of = matches.groupBy("subscriber").agg(
        f.count("*").alias("matches"), f.sum("score").alias("scores"), _different("wanted")
    )
    first = f.min("published_at").alias("published_at")  # of an event that came twice
    published = matches.groupBy("subscriber", "event").agg(first)
    some_of = (
        deliveries.join(published, ["subscriber", "event"], "left")
        .withColumn("age", f.unix_micros("delivered_at") - f.unix_micros("published_at"))
        .groupBy("subscriber")
        .agg(
            f.count("*").alias("delivered"),
            f.sum("rank").alias("ranks"),
            f.count("age").alias("aged"),
            f.sum("age").alias("ages"),
            _different("served"),
        )
    )
    joined = all_of.join(some_of, "subscriber", "left")
    return joined.fillna(0, ["delivered", "served"])


def _different(name: str) -> Column:
    """Count the subscriptions that matched."""
    return f.size(f.array_distinct(f.flatten(f.collect_set("matched")))).alias(name)


def _figures() -> Sequence[Column]:
    return (
        f.col("matches"),
        f.col("delivered"),
        (f.col("delivered") / f.col("matches")).alias("share"),
        (f.col("scores") / f.col("matches")).alias("mean_score"),
        _mean("ranks", "delivered").alias("mean_rank"),
        (_mean("ages", "aged") / SECOND_US).alias("mean_age_s"),
        _mean("apart", "pairs").cast("double").alias("diversity"),
        f.least(f.lit(1.0), _mean("served", "wanted")).alias("coverage"),
    )


def _mean(total: str, count: str) -> Column:
    return f.col(total) / f.nullif(f.col(count), f.lit(0))


def _apart(deliveries: DataFrame, publications: DataFrame, span: int) -> DataFrame:
    publications, read = readable(publications)
    names = publications.columns
    own = f.col("id") if "id" in names else f.get_json_object("value", "$.id")
    events = publications.withColumn("_id", own).dropDuplicates(["_id"])
    got = deliveries.select(
        f.col("subscriber").alias(WHO),
        f.col("event").alias("_event"),
        f.col("sequence").alias(TURN),
    )
    joined = got.join(events, got["_event"] == events["_id"]).select(WHO, TURN, *names)
    return (
        joined.repartition(WHO)
        .sortWithinPartitions(WHO, TURN)
        .mapInArrow(lambda batches: apart(batches, read, span), from_arrow_schema(APART))
    )


def apart(
    batches: Iterable[pa.RecordBatch], read: ReadEvents, span: int
) -> Iterator[pa.RecordBatch]:
    """Give the sums of distances of subscribers, whose deliveries come one behind the other."""
    for who, own in groupby(_pairs(batches, read), key=itemgetter(0)):
        sets = make_set_diversity(Overlap(), span)
        for _, event in own:
            sets.add(who, event)
        total, pairs = sets.total()
        row = {"subscriber": who, "apart": total, "pairs": pairs}
        yield pa.RecordBatch.from_pylist([row], APART)


def _pairs(batches: Iterable[pa.RecordBatch], read: ReadEvents) -> Iterator[tuple[str, Event]]:
    for batch in batches:
        events = read(batch.drop_columns([WHO, TURN]))
        for who, event in zip(batch[WHO].to_pylist(), events, strict=True):
            if isinstance(event, Event):
                yield who, event
