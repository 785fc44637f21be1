"""The stateful operator: a blob and a pulse for each bucket in Spark's state store."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.errors import StateError, prefix_errors
from tidings.formats.arrow import ReadEvents, read_events
from tidings.policy import Subscriber
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.bucket import Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.isolation import Opening, Sent, run_isolated
from tidings.spark.state_stage.late_events import Batch, late_rows
from tidings.spark.state_stage.policies import Roster, roster
from tidings.spark.state_stage.progress_mark import Pulse

OUTCOMES: Final = from_arrow_schema(outcomes.OUTCOMES)


def run_buckets(
    flow: DataFrame,
    people: Roster | Mapping[str, Subscriber],
    terms: Terms,
    state: DataFrame | None = None,
    read: ReadEvents = read_events,
) -> DataFrame:
    """Run the buckets of a flow, batch and streaming alike, from a first state if there is one.

    `read` reads the rows that the flow has for the late table.
    """
    return flow.groupBy("bucket").transformWithStateInPandas(
        BucketProcessor(roster(people), terms, read),
        outputStructType=OUTCOMES,
        outputMode="Append",
        timeMode="None",
        initialState=None if state is None else state.groupBy("bucket"),
    )


@dataclass
class BucketProcessor(StatefulProcessor):
    """Loads a bucket, runs the rows of a batch, and puts it back."""

    people: Roster
    terms: Terms
    read: ReadEvents

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._blob = handle.getValueState("bucket", "blob binary")
        self._pulse = handle.getValueState("pulse", "pulse binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Run one bucket over its rows of this batch."""
        with prefix_errors(f"bucket {key[0]}: ", StateError, StateError):
            sent = read_rows(rows)
            known = self._pulse.get()
            pulse = Pulse.unpack(bytes(known[0])) if known else Pulse()
            late = late_rows(sent.batches, pulse.watermark_us, self.read)
        if late.num_rows:
            yield late.to_pandas(integer_object_nulls=True)
        busy = sent.parcels or sent.letters
        rested = None if busy else pulse.after(sent.ticks, self.terms.lateness_us)
        if rested is not None:
            self._pulse.update((rested.pack(),))
            return
        state = self._blob.get()
        blob = bytes(state[0]) if state else None
        with prefix_errors(f"bucket {key[0]}: ", StateError, StateError):
            bucket, found = run_isolated(Opening(self.people, self.terms, blob, pulse), sent)
        self._blob.update((bucket.pack(),))
        self._pulse.update((bucket.pulse.pack(),))
        yield found.to_pandas(integer_object_nulls=True)

    def handleInitialState(  # noqa: N802
        self,
        key: Any,
        initialState: Any,  # noqa: N803
        timerValues: Any,  # noqa: N803
    ) -> None:
        """Begin with the blob that another query has left."""
        self._blob.update((bytes(initialState["blob"].iloc[0]),))
        self._pulse.update((bytes(initialState["pulse"].iloc[0]),))

    def close(self) -> None:
        """Hold nothing open."""


def read_rows(frames: Iterator[pd.DataFrame]) -> Sent:
    """Read rows of FLOW; each parcel is a tick as well."""
    sent = Sent([], [], [], [])
    for frame in frames:
        columns = (frame[name] for name in ("kind", "published_us", "sequence", "body"))
        for kind, us, number, body in zip(*columns, strict=True):
            if kind == "dead":
                sent.letters.append(body)
            elif kind == "rows":
                sent.batches.append(Batch(int(us), bytes(body)))
            else:
                sent.ticks.append(Tick(int(us), max(0, int(number))))
            if kind == "parcel":
                sent.parcels.append(Parcel.unpack(bytes(body)))
    return sent
