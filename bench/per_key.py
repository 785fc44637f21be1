"""Windows kept by subscriber, a row per match, as one would write them with Spark's state API."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

K, WINDOW = 10, 100


class KeyedWindow(StatefulProcessor):
    """The ranks of a subscriber's last matches; a match among the best is delivered."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._ranks = handle.getValueState("ranks", "ranks array<double>")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        kept = self._ranks.get()
        ranks = list(kept[0]) if kept else []
        for row in sorted(rows, key=lambda each: each["published_us"]):
            ranks = [*ranks[-WINDOW + 1 :], row["rank"]]
            if sum(rank > row["rank"] for rank in ranks) < K:
                yield Row(subscriber=key[0], event=row["event"], rank=row["rank"])
        self._ranks.update((ranks,))

    def close(self) -> None:
        pass


def deliveries(matches: DataFrame) -> DataFrame:
    """Return the deliveries of matches: subscriber, event, published_us, rank."""
    return matches.groupBy("subscriber").transformWithState(
        KeyedWindow(),
        outputStructType="subscriber string, event string, rank double",
        outputMode="Append",
        timeMode="None",
    )
