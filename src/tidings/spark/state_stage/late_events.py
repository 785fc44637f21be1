"""Events that come too late: rows as they came, which one bucket holds beside the watermark.

All buckets are told of all times, so each knows how far the stream has come, and any of them can
tell which rows of a batch are before that. Rows are Arrow, compressed, and none is read unless the
oldest of them is late.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import pyarrow as pa

from tidings.formats.arrow import ReadEvents
from tidings.formats.binary import reading
from tidings.model.records import Event
from tidings.spark.state_stage import outcomes

_WRITTEN: Final = pa.ipc.IpcWriteOptions(compression="zstd")


class Batch(NamedTuple):
    """Rows as they came, and the time of the oldest of them."""

    oldest_us: int
    body: bytes


def pack_rows(rows: pa.RecordBatch) -> bytes:
    """Write rows down."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_WRITTEN) as stream:
        stream.write_batch(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _unpacked(body: bytes) -> list[pa.RecordBatch]:
    """Return rows that were written down; they are validated in full before anything reads them."""
    with reading("a batch of rows for the late table"):
        found = list(pa.ipc.open_stream(body))
        for rows in found:
            rows.validate(full=True)
        return found


def late_rows(batches: Iterable[Batch], watermark_us: int | None, read: ReadEvents) -> pa.Table:
    """Give, as outcomes, the events that are before the watermark."""
    late = list[Event]()
    for oldest_us, body in batches:
        if watermark_us is not None and oldest_us < watermark_us:
            for rows in _unpacked(body):
                every = (each for each in read(rows) if isinstance(each, Event))
                late += [each for each in every if each.published_us < watermark_us]
    return outcomes.late(late, watermark_us or 0)
