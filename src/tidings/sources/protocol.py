"""The form of a message source: positions, plans of batches, and ranges that are read.

A position says how far a source has been read. It is a JSON object that only its reader
understands; the caller keeps it, in the checkpoint of a Spark query or in the folder of a local
run. The records between two positions are the same whenever they are read, and so are batches that
are repeated after a crash.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import pyarrow as pa

from tidings.store import ChangeWatch

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
Position = Mapping[str, Any]

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
MESSAGES: Final = pa.schema(
    {
        "key": pa.string(),
        "value": pa.binary(),
        "partition": pa.string(),
        "position": pa.string(),
        "timestamp": pa.timestamp("us", "UTC"),
        "headers": HEADERS,
    }
)
"""The columns of a message; a source may have others, but always a value and a timestamp."""


class MessageReader(Protocol):
    """A reader of one source. Its first five methods plan; `read` may be called in other processes.

    The calling process opens connections when they are first needed.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of its messages."""

    @property
    def limit(self) -> int | None:
        """The most messages of a batch, if that is limited."""

    def starting(self, default: str) -> Position:
        """Return where reading starts if nothing was read yet.

        The default is EARLIEST or LATEST.
        """

    def ending(self) -> Position:
        """Return the end of a source that is read once."""

    def latest(self) -> Position:
        """Return the current end, up to which `advance` may go."""

    def advance(self, start: Position, latest: Position, limit: int | None) -> Position:
        """Return where a batch of at most `limit` messages from `start` ends.

        If nothing is new, that is `start`.
        """

    def spans(self, start: Position, end: Position) -> list[Any]:
        """Return the ranges between two positions, which may be read at the same time.

        They can be pickled.
        """

    def read(self, span: Any) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range in order."""

    def committed(self, end: Position) -> None:
        """Note that everything before a position is processed and will not be read again."""

    def close(self) -> None:
        """Close all connections."""


@runtime_checkable
class WatchedReader(Protocol):
    """A reader whose source can announce new messages, so that no polling is needed."""

    def watch(self) -> ChangeWatch | None:
        """Return a watch over new messages, or None; create it before the first poll."""
