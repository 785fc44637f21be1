"""Sink that writes outcomes to a notification store: each batch once, in one transaction."""

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
from tidings.spark.sinks.count_outcomes import unique_letters
from tidings.store import AppendResult, Store, open_store
from tidings.store.address import Address
from tidings.store.protocol import MAX_ID_BYTES

PATIENCE_S: Final = 300.0
_CHECKPOINT: Final = "sql.streaming.queryId"
_RUN: Final = "spark.jobGroup.id"
"""Properties in which Spark keeps the ids of the checkpoint and of the run of a query."""
_LOG: Final = logging.getLogger(__name__)


def store_sink(
    url: str | Address,
    query: str,
    written: Callable[[int, DataFrame], None] | None = None,
    *,
    patience_s: float = PATIENCE_S,
) -> Callable[[DataFrame, int], None]:
    """Return a `foreachBatch` function that writes OUTCOMES to the store at `url`.

    A batch and the fact that it is written go in one transaction; if the batch exists already, only
    new rows are added. Batches are identified by `query` and the checkpoint, so those of a new
    checkpoint are not mistaken for old ones. It waits up to `patience_s` for a store that is busy
    or unreachable; then the batch fails, and a restart runs it again. `written` is called after
    each batch. It takes about 10 us per delivery, all of it in the driver.
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


def _write(
    url: str | Address, query: str, batch: DataFrame, number: int, patience_s: float
) -> None:
    """Run the batch even if it is stored already, because that advances the state."""
    read_property = _context(batch).getLocalProperty
    checkpoint, run = read_property(_CHECKPOINT), read_property(_RUN) or "again"
    outcomes = batch.toArrow()
    name = f"{query}/{checkpoint}" if checkpoint else query
    with open_store(url, patience_s=patience_s) as store:
        append_outcomes(store, name, number, outcomes, run)


def _context(batch: DataFrame) -> SparkContext:
    """Return the Spark context, which knows the checkpoint and the run of a batch."""
    try:
        return batch.sparkSession.sparkContext
    except PySparkAttributeError:
        raise TidingsError(
            "store_sink does not work through Spark Connect, which does not report the checkpoint "
            "of a batch; write with parquet_sink, or run the stream in a classic session"
        ) from None


def append_outcomes(
    store: Store, query: str, batch: int, outcomes: pa.Table, run: str = "again"
) -> AppendResult:
    """Append a table of OUTCOMES to a store, each subscriber's deliveries in their order.

    An event that is late, or refused with its id, in several buckets is one letter. A batch that is
    stored already may have other contents this time, after an older copy of its checkpoint was
    restored: rows that the store does not have are added under the name of the `run`.
    """
    deliveries = _of_kind(outcomes, "delivery").select(DELIVERIES.names)
    deliveries = deliveries.sort_by([("subscriber", "ascending"), ("sequence", "ascending")])
    late, dead = (unique_letters(_of_kind(outcomes, kind).to_pylist()) for kind in ("late", "dead"))
    appended = store.notifications.append_columns(query, batch, deliveries, late=late, dead=dead)
    if not appended.skipped:
        return appended
    now = (deliveries.num_rows, len(late), len(dead))
    before = (appended.delivered + appended.repeated, appended.late, appended.dead)
    # A delivery that the store cannot hold is a dead letter there.
    same = sum(now) == sum(before) and len(late) == appended.late
    again, letters = (
        (_holdable(deliveries), {}) if same else (deliveries, {"late": late, "dead": dead})
    )
    more = store.notifications.append_columns(f"{query}/{run}", batch, again, **letters)
    if not same or more.delivered:
        _LOG.warning(
            "batch %d of %s is already stored, with %d deliveries, %d late and %d dead; this time "
            "there were %d, %d and %d, and %d deliveries were added. Did subscriptions or files "
            "of the checkpoint change between the runs?",
            *(batch, query, *before, *now, more.delivered),
        )
    return appended


def _holdable(deliveries: pa.Table) -> pa.Table:
    lengths = (pc.binary_length(deliveries[name]) for name in ("subscriber", "event"))
    return deliveries.filter(pc.less_equal(pc.max_element_wise(*lengths), MAX_ID_BYTES))


def _of_kind(outcomes: pa.Table, kind: str) -> pa.Table:
    return outcomes.filter(pc.equal(outcomes["kind"], kind))
