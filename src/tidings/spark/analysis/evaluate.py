"""Quality of deliveries, compared with everything that plain publish/subscribe would have sent."""

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

DISTANCES: Final = pa.schema(
    {"subscriber": pa.string(), "distances": pa.float64(), "pairs": pa.int64()}
)
_DELIVERED: Final = ("subscriber", "event", "rank", "matched", "delivered_at")
SUBSCRIBER: Final = "_subscriber"
SEQUENCE: Final = "_sequence"
_SUMS: Final = ("matches", "scores", "wanted", "delivered", "ranks", "aged", "ages", "served")


def evaluate(
    deliveries: DataFrame,
    matches: DataFrame,
    publications: DataFrame | None = None,
    by: str | None = "subscriber",
    span: int = SPAN,
) -> DataFrame:
    """Return the figures of `Engine.quality`, for each subscriber or (`by=None`) over all.

    Columns: subscriber, matches, delivered, share (of matches), mean_score (of all matches),
    mean_rank and mean_age_s (of the deliveries; null if there are none), diversity and coverage.
    Diversity is the mean overlap distance of the deliveries to a subscriber (PREF Def. 8, among the
    last `span`); it needs attributes, so it is null without `publications`.
    """
    validate.choice("by", by or "subscriber", ("subscriber",))
    validate.count("span", span, low=2)
    check_frame("deliveries", deliveries, _DELIVERED)
    check_frame("matches", matches, MATCHES.names)
    sums = _sums(deliveries, matches)
    if publications is None:
        sums = sums.withColumns({"distances": f.lit(None), "pairs": f.lit(None)})
    else:
        sums = sums.join(_distances(deliveries, publications, span), "subscriber", "left")
    if by is None:
        sums = sums.agg(*(f.sum(name).alias(name) for name in (*_SUMS, "distances", "pairs")))
    return sums.select(*([by] if by else []), *_figures())


def _sums(deliveries: DataFrame, matches: DataFrame) -> DataFrame:
    """Return the sums of each subscriber with a match; deliveries without one do not count."""
    matched = matches.groupBy("subscriber").agg(
        f.count("*").alias("matches"), _sum("score").alias("scores"), _distinct("wanted")
    )
    first = f.min("published_at").alias("published_at")  # an event may be published twice
    published = matches.groupBy("subscriber", "event").agg(first)
    delivered = (
        deliveries.join(published, ["subscriber", "event"], "left")
        .withColumn("age", f.unix_micros("delivered_at") - f.unix_micros("published_at"))
        .groupBy("subscriber")
        .agg(
            f.count("*").alias("delivered"),
            _sum("rank").alias("ranks"),
            f.count("age").alias("aged"),
            f.sum("age").alias("ages"),
            _distinct("served"),
        )
    )
    joined = matched.join(delivered, "subscriber", "left")
    return joined.fillna(0, ["delivered", "served"])


def _sum(name: str) -> Column:
    """Return the sum of a column of numbers, of whatever type."""
    return f.sum(f.col(name).cast("double"))


def _distinct(name: str) -> Column:
    """Return the number of distinct subscriptions that matched."""
    return f.size(f.array_distinct(f.flatten(f.collect_set("matched")))).alias(name)


def _figures() -> Sequence[Column]:
    return (
        f.col("matches"),
        f.col("delivered"),
        (f.col("delivered") / f.col("matches")).alias("share"),
        (f.col("scores") / f.col("matches")).alias("mean_score"),
        _mean("ranks", "delivered").alias("mean_rank"),
        (_mean("ages", "aged") / SECOND_US).alias("mean_age_s"),
        _mean("distances", "pairs").cast("double").alias("diversity"),
        f.least(f.lit(1.0), _mean("served", "wanted")).alias("coverage"),
    )


def _mean(total: str, count: str) -> Column:
    return f.col(total) / f.nullif(f.col(count), f.lit(0))


def _distances(deliveries: DataFrame, publications: DataFrame, span: int) -> DataFrame:
    publications, read = readable(publications)
    names = publications.columns
    event_id = f.col("id").cast("string") if "id" in names else f.get_json_object("value", "$.id")
    events = publications.withColumn("_id", event_id).dropDuplicates(["_id"])
    received = deliveries.select(
        f.col("subscriber").alias(SUBSCRIBER),
        f.col("event").alias("_event"),
        f.col("sequence").alias(SEQUENCE),
    )
    same_event = received["_event"] == events["_id"]
    joined = received.join(events, same_event).select(SUBSCRIBER, SEQUENCE, *names)
    return (
        joined.repartition(SUBSCRIBER)
        .sortWithinPartitions(SUBSCRIBER, SEQUENCE)
        .mapInArrow(lambda rows: sum_distances(rows, read, span), from_arrow_schema(DISTANCES))
    )


def sum_distances(
    batches: Iterable[pa.RecordBatch], read: ReadEvents, span: int
) -> Iterator[pa.RecordBatch]:
    """Yield the sum of distances of each subscriber; batches are sorted by subscriber."""
    for subscriber, deliveries in groupby(_deliveries(batches, read), key=itemgetter(0)):
        sets = make_set_diversity(Overlap(), span)
        for _, event in deliveries:
            sets.add(subscriber, event)
        total, pairs = sets.total()
        row = {"subscriber": subscriber, "distances": total, "pairs": pairs}
        yield pa.RecordBatch.from_pylist([row], DISTANCES)


def _deliveries(batches: Iterable[pa.RecordBatch], read: ReadEvents) -> Iterator[tuple[str, Event]]:
    """Yield pairs of a subscriber and an event; events that cannot be read are left out."""
    for batch in batches:
        events = read(batch.drop_columns([SUBSCRIBER, SEQUENCE]))
        for subscriber, event in zip(batch[SUBSCRIBER].to_pylist(), events, strict=True):
            if isinstance(event, Event):
                yield subscriber, event
