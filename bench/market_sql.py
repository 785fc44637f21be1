"""The market in plain Spark SQL, as one would write it without an index or window state.

Predicates are rows, and so are the attributes of events. A join on the attribute finds satisfied
predicates; a subscription matches if all of its predicates do. An offer is delivered if fewer than
k of the subscriber's 99 previous matches rank higher. (The best of a subscriber's matching
subscriptions counts, not the most specific one, and an offer that becomes one of the best only
later is never delivered; both would cost more.)
"""

from pyspark.sql import DataFrame

JOIN = """
WITH said AS (
    SELECT id, sequence, attribute, text, CAST(NULL AS DOUBLE) AS number
    FROM events LATERAL VIEW explode(texts) AS attribute, text
    UNION ALL
    SELECT id, sequence, attribute, NULL, number
    FROM events LATERAL VIEW explode(numbers) AS attribute, number
), held AS (
    SELECT said.id, sequence, subscription, subscriber, prefrank
    FROM said JOIN predicates USING (attribute)
    WHERE said.text = predicates.text OR number BETWEEN low AND high
    GROUP BY said.id, sequence, subscription, subscriber, prefrank, predicates.predicates
    HAVING count(*) = predicates.predicates
)
SELECT subscriber, id, sequence, max(prefrank) AS rank FROM held GROUP BY subscriber, id, sequence
"""
BEST = """
SELECT subscriber, id, rank FROM (
    SELECT *, collect_list(rank) OVER (
        PARTITION BY subscriber ORDER BY sequence ROWS BETWEEN 99 PRECEDING AND 1 PRECEDING
    ) AS before FROM ranked
) WHERE size(filter(before, each -> each > rank)) < {k}
"""


def ranked(events: DataFrame, predicates: DataFrame) -> DataFrame:
    """Return every subscriber's rank of every event that matches."""
    events.createOrReplaceTempView("events")
    predicates.createOrReplaceTempView("predicates")
    return events.sparkSession.sql(JOIN)


def deliveries(events: DataFrame, predicates: DataFrame, k: int) -> DataFrame:
    """Return the deliveries of sliding(100) with k."""
    ranked(events, predicates).createOrReplaceTempView("ranked")
    return events.sparkSession.sql(BEST.format(k=k))
