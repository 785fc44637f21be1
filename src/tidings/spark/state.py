"""The stateful operator: one packed blob for each bucket in Spark's state store."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.policy import Subscriber
from tidings.spark.bucket import Bucket, Row
from tidings.spark.flow import FLOW

OUTCOMES: Final = (
    "kind string, subscriber string, event string, rank double, position long, window string, "
    "matched array<string>, sequence long, delivered_at timestamp, record string, reason string"
)
_COLUMNS: Final = [column.split()[0] for column in OUTCOMES.split(", ")]


def run_buckets(
    flow: DataFrame, subscribers: Mapping[str, Subscriber], lateness_us: int, buckets: int
) -> DataFrame:
    """Run the buckets of a flow; batch and streaming alike."""
    return flow.groupBy("bucket").transformWithStateInPandas(
        BucketProcessor(subscribers, lateness_us, buckets),
        outputStructType=OUTCOMES,
        outputMode="Append",
        timeMode="None",
    )


@dataclass
class BucketProcessor(StatefulProcessor):
    """Loads a bucket, runs the rows of a batch, and puts it back."""

    subscribers: Mapping[str, Subscriber]
    lateness_us: int
    buckets: int

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._blob = handle.getValueState("bucket", "blob binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Run one bucket over its rows of this batch."""
        bucket = Bucket(self.subscribers, self.lateness_us, self.buckets)
        if packed := self._blob.get():
            bucket.unpack(bytes(packed[0]))
        outcomes = list(bucket.run(row for frame in rows for row in _rows(frame)))
        self._blob.update((bucket.pack(),))
        cells = [[outcome.get(name) for name in _COLUMNS] for outcome in outcomes]
        yield pd.DataFrame(cells, columns=_COLUMNS, dtype=object)

    def close(self) -> None:
        """Hold nothing open."""


def _rows(frame: pd.DataFrame) -> Iterator[Row]:
    """Give the rows of a frame; Arrow turns the NaN of pandas back into what is missing."""
    for row in pa.Table.from_pandas(frame[FLOW.names], FLOW, preserve_index=False).to_pylist():
        yield Row(
            kind=row["kind"],
            us=row["published_us"] or 0,
            sequence=row["sequence"],
            event=row["event"] or "",
            body=row["body"] or "",
        )
