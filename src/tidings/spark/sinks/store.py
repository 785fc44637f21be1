"""Outcomes into a notification store: each batch in one transaction, and once."""

import logging
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame

from tidings.errors import TidingsError
from tidings.formats.arrow import DELIVERIES
from tidings.spark.sinks.count_outcomes import letters
from tidings.store import AppendResult, Store, open_store
from tidings.store.protocol import MAX_ID_BYTES

PATIENCE_S: Final = 300.0
_CHECKPOINT: Final = "sql.streaming.queryId"
_RUN: Final = "spark.jobGroup.id"
"""Where Spark keeps the id of the checkpoint, and that of the run of its query."""
_LOG: Final = logging.getLogger(__name__)


def store_sink(
    url: str,
    query: str,
    written: Callable[[int, DataFrame], None] | None = None,
    *,
    patience_s: float = PATIENCE_S,
) -> Callable[[DataFrame, int], None]:
    """Give a `foreachBatch` function that writes OUTCOMES to the store at `url`.

    All of a batch, and that it is written, goes in one transaction, and of a batch that is there
    only what is new is added. Batches are told apart by `query` and the checkpoint, so that those
    of a new checkpoint are not taken for the old ones. A store that is busy or away is waited for
    up to `patience_s`; then the batch fails, and a restart does it again. `written` is told of each
    batch after it. About 10 us a delivery, all of it in the driver.
    """

    def write(batch: DataFrame, number: int) -> None:
        if written is None:
            _write(url, query, batch, number, patience_s)
            return
        batch.persist()
        try:
            _write(url, query, batch, number, patience_s)
            written(number, batch)
        finally:
            batch.unpersist()

    return write


def _write(url: str, query: str, batch: DataFrame, number: int, patience_s: float) -> None:
    """Run the batch, also one that is there already: that is what brings the state on."""
    told = _context(batch).getLocalProperty
    checkpoint, run = told(_CHECKPOINT), told(_RUN) or "again"
    outcomes = batch.toArrow()
    name = f"{query}/{checkpoint}" if checkpoint else query
    with open_store(url, patience_s=patience_s) as store:
        append_outcomes(store, name, number, outcomes, run)


def _context(batch: DataFrame) -> SparkContext:
    """Give what tells the checkpoint and the run that a batch is of."""
    try:
        return batch.sparkSession.sparkContext
    except PySparkAttributeError:
        raise TidingsError(
            "store_sink does not work through Spark Connect, which does not tell the checkpoint of "
            "a batch; write with parquet_sink, or run the stream in a classic session"
        ) from None


def append_outcomes(
    store: Store, query: str, batch: int, outcomes: pa.Table, run: str = "again"
) -> AppendResult:
    """Append a table of OUTCOMES to a store; each subscriber's deliveries in their order.

    An event that is late, or refused with its id, in several buckets is one letter. A batch whose
    name is there may hold something else this time, after an older copy of its checkpoint was
    put in place: what the store does not have is added, under the name of the `run`.
    """
    deliveries = _of_kind(outcomes, "delivery").select(DELIVERIES.names)
    deliveries = deliveries.sort_by([("subscriber", "ascending"), ("sequence", "ascending")])
    late, dead = (letters(_of_kind(outcomes, kind).to_pylist()) for kind in ("late", "dead"))
    found = store.notifications.append_columns(query, batch, deliveries, late=late, dead=dead)
    if not found.skipped:
        return found
    now = (deliveries.num_rows, len(late), len(dead))
    before = (found.delivered + found.repeated, found.late, found.dead)
    # A delivery that the store cannot hold is among the dead there.
    same = sum(now) == sum(before) and len(late) == found.late
    again, others = (
        (_holdable(deliveries), {}) if same else (deliveries, {"late": late, "dead": dead})
    )
    more = store.notifications.append_columns(f"{query}/{run}", batch, again, **others)
    if not same or more.delivered:
        _LOG.warning(
            "batch %d of %s is written already, with %d deliveries, %d late and %d dead; this time "
            "there were %d, %d and %d, and %d deliveries were added. Were subscriptions changed "
            "between the runs, or files of the checkpoint?",
            *(batch, query, *before, *now, more.delivered),
        )
    return found


def _holdable(deliveries: pa.Table) -> pa.Table:
    lengths = (pc.binary_length(deliveries[name]) for name in ("subscriber", "event"))
    return deliveries.filter(pc.less_equal(pc.max_element_wise(*lengths), MAX_ID_BYTES))


def _of_kind(outcomes: pa.Table, kind: str) -> pa.Table:
    return outcomes.filter(pc.equal(outcomes["kind"], kind))
