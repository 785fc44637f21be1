"""How good deliveries are, beside all that plain publish/subscribe would have sent."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f


def evaluate(deliveries: DataFrame, matches: DataFrame) -> DataFrame:
    """Give, for each subscriber, the share of matches delivered and the mean ranks of both.

    Columns: subscriber, matches, delivered, share, mean_score (of all matches), mean_rank (of the
    deliveries; null where there are none).
    """
    all_of = matches.groupBy("subscriber").agg(
        f.count("*").alias("matches"), f.avg("score").alias("mean_score")
    )
    some_of = deliveries.groupBy("subscriber").agg(
        f.count("*").alias("sent"), f.avg("rank").alias("mean_rank")
    )
    delivered = f.coalesce("sent", f.lit(0))
    return all_of.join(some_of, "subscriber", "left").select(
        "subscriber",
        "matches",
        delivered.alias("delivered"),
        (delivered / f.col("matches")).alias("share"),
        "mean_score",
        "mean_rank",
    )
