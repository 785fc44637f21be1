"""The sinks of a config on Spark, each telling of the batches that it has written."""

from typing import Any

from tidings.app.config import STORE
from tidings.app.run.output_folder import Folder
from tidings.app.run.plan import Plan
from tidings.spark import parquet_sink
from tidings.spark.ops.query_control import Write
from tidings.spark.sinks.count_outcomes import read_outcomes
from tidings.spark.sinks.parquet import Written
from tidings.spark.sinks.spark_format import format_sink
from tidings.spark.sinks.store import store_sink


def open_sink(plan: Plan, note: Written) -> Write:
    """Give what writes a batch; `note` is told when it is written."""
    sink, folder = plan.config.sink, plan.folder
    if sink.format == STORE and sink.store is not None:
        return store_sink(sink.store.url, folder.query, note)
    if sink.format == "jsonl":
        return _lines(folder, note)
    if sink.format == "parquet":
        return parquet_sink(folder.path, note)

    def letters(number: int, batch: Any) -> None:
        write_letters(folder, number, batch.where("kind in ('late', 'dead')").toArrow())
        note(number, batch)

    return format_sink(sink.format, sink.options, sink.select, letters)


def _lines(folder: Folder, note: Written) -> Write:
    """Write JSON Lines from this process, as a local run does."""

    def write(batch: Any, number: int) -> None:
        batch.persist()
        try:
            table = batch.toArrow()
            folder.write_deliveries(number, read_outcomes(table).deliveries)
            write_letters(folder, number, table)
            note(number, batch)
        finally:
            batch.unpersist()

    return write


def write_letters(folder: Folder, number: int, table: Any) -> None:
    """Write the late events and dead letters of a batch in the forms of a local run."""
    found = read_outcomes(table)
    late = [{**each.to_dict(), "event": event} for event, each in found.late.items()]
    folder.write_letters("late", number, late)
    folder.write_letters("dead_letters", number, [each.to_dict() for each in found.dead])
