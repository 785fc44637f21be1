"""The market in DuckDB, as one would write it without an index or window state.

Predicates are rows, and so are the attributes of events: a hash join finds satisfied equalities, an
inequality join satisfied ranges, and a subscription matches if all of its predicates hold. Offers
are delivered as in bench/market_sql.py: if fewer than k of the subscriber's 99 previous matches
rank higher. Everything is in memory, and ids are numbers, before the time is taken.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import duckdb
import market
import pyarrow as pa

from tidings.model.records import Event, Subscription

SPLIT = """
CREATE TABLE wanted_texts AS SELECT * FROM wanted WHERE text IS NOT NULL;
CREATE TABLE wanted_ranges AS SELECT * FROM wanted WHERE text IS NULL;
CREATE TABLE said_texts AS SELECT event, attribute, text FROM said WHERE text IS NOT NULL;
CREATE TABLE said_numbers AS SELECT event, attribute, number FROM said WHERE text IS NULL;
CREATE TABLE subscriptions AS
    SELECT DISTINCT subscription, subscriber, prefrank, predicates FROM wanted;
"""
RANKED = """
WITH held AS (
    SELECT event, subscription FROM said_texts JOIN wanted_texts USING (attribute, text)
    UNION ALL
    SELECT event, subscription FROM said_numbers AS said JOIN wanted_ranges AS wanted
    ON said.attribute = wanted.attribute AND number >= low AND number <= high
), satisfied AS (
    SELECT event, subscription, count(*) AS satisfied FROM held GROUP BY ALL
)
SELECT subscriber, event, max(prefrank) AS rank
FROM satisfied JOIN subscriptions USING (subscription)
WHERE satisfied = predicates GROUP BY ALL
"""
BEST = """
SELECT subscriber, event, rank FROM (
    SELECT *, list(rank) OVER (
        PARTITION BY subscriber ORDER BY event ROWS BETWEEN 99 PRECEDING AND 1 PRECEDING
    ) AS before FROM ({ranked})
) WHERE before IS NULL OR len(list_filter(before, lambda each: each > rank)) < {k}
"""


class DuckMarket:
    """Subscriptions and events as tables of DuckDB."""

    def __init__(
        self, wishes: Sequence[Subscription], stream: Iterable[Event], threads: int
    ) -> None:
        self._database = duckdb.connect(config={"threads": threads})
        numbers = {wish.id: number for number, wish in enumerate(wishes)}
        owners = {wish.subscriber: int(wish.subscriber[1:]) for wish in wishes}
        rows = list(market.predicate_rows(iter(wishes)))
        for row in rows:
            row["subscription"] = numbers[row["subscription"]]
            row["subscriber"] = owners[row["subscriber"]]
        self._add("wanted", rows)
        said = [
            {"event": event.sequence, "attribute": name, "text": value}
            if isinstance(value, str)
            else {"event": event.sequence, "attribute": name, "number": value}
            for event in stream
            for name, value in event.attributes.items()
        ]
        self._add("said", said)
        self._database.execute(SPLIT)

    def _add(self, name: str, rows: list[market.Row]) -> None:
        names = list(dict.fromkeys(key for row in rows[:100] for key in row))
        table = pa.table({key: [row.get(key) for row in rows] for key in names})
        self._database.register("arrived", table)
        self._database.execute(f"CREATE TABLE {name} AS SELECT * FROM arrived")
        self._database.unregister("arrived")

    def matches(self) -> list[tuple[int, int]]:
        """Return all (event, subscriber) that match, as numbers, in order."""
        query = f"SELECT event, subscriber FROM ({RANKED}) ORDER BY ALL"
        return self._database.execute(query).fetchall()

    def deliveries(self, k: int) -> int:
        """Return how many offers are delivered by sliding(100) with k."""
        query = f"SELECT count(*), sum(rank) FROM ({BEST.format(ranked=RANKED, k=k)})"
        [(count, _)] = self._database.execute(query).fetchall()
        return int(count)
