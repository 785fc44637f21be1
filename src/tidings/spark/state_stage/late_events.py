"""Late events: rows that one bucket receives as they arrived and compares with its watermark.

Every bucket gets the ticks of the whole stream, so each has the same watermark and any of them can
decide which rows of a batch are late. The rows travel as compressed Arrow and are only read if the
oldest of them is late.
"""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from tidings.formats.arrow import ReadEvents
from tidings.formats.arrow_validation import validate_fully
from tidings.formats.binary import reading
from tidings.model.records import Event
from tidings.spark.state_stage import outcomes


class ArrivedRows(NamedTuple):
    """Packed rows as they arrived, and the time of the oldest event among them."""

    oldest_us: int
    body: bytes


def pack_rows(rows: pa.RecordBatch, compression: str | None = "zstd") -> bytes:
    """Return rows as Arrow, compressed unless they stay on this machine."""
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack_rows(body: bytes) -> list[pa.RecordBatch]:
    """Return packed rows, validated in full before anything reads them."""
    with reading("a batch of rows for the late table"):
        return [validate_fully(batch) for batch in pa.ipc.open_stream(body)]


def late_rows(
    arrived: Iterable[ArrivedRows], watermark_us: int | None, read: ReadEvents
) -> pa.Table:
    """Return the events before the watermark as outcomes."""
    late = list[Event]()
    for oldest_us, body in arrived:
        if watermark_us is not None and oldest_us < watermark_us:
            for rows in _unpack_rows(body):
                events = (event for event in read(rows) if isinstance(event, Event))
                late += [event for event in events if event.published_us < watermark_us]
    return outcomes.late(late, watermark_us or 0)
