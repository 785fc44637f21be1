"""Message sources for Spark: the readers of `tidings.sources` as Python data sources.

Positions are the offsets in the checkpoint of the query. Spark pickles these classes for its
workers, where each task reads one span.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidings.errors import SourceError
from tidings.formats.event_source import CHANGES, KAFKA, KINESIS, MQTT, NATS, OUTBOX, RSS
from tidings.sources.options import OptionTexts
from tidings.sources.protocol import EARLIEST, LATEST, MessageReader, Position, WatchedReader
from tidings.sources.registry import open_reader
from tidings.store import ChangeWatch

_WATCH_S: Final = 1.0
"""How long a trigger waits for something new, if its source announces it."""


@dataclass(frozen=True)
class SpanPartition(InputPartition):
    """A span of a source, read by one task."""

    span: Any


@dataclass(frozen=True)
class ReaderFactory:
    """The name and the options of a source, from which each process opens a reader of its own."""

    name: str
    options: OptionTexts
    streaming: bool

    @cached_property
    def reader(self) -> MessageReader:
        """The reader of this process."""
        return open_reader(self.name, self.options, streaming=self.streaming)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "reader"}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a span; the partition of an empty batch is none."""
        return (
            self.reader.read(partition.span) if isinstance(partition, SpanPartition) else iter(())
        )


class MessageDataSource(DataSource):
    """A message source: `spark.readStream.format(NAME)`, or `spark.read`."""

    connector: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.connector

    def schema(self) -> StructType:
        """Return the columns, after checking all options."""
        return from_arrow_schema(open_reader(self.connector, self.options).schema)

    def reader(self, schema: StructType) -> "MessageBatch":
        return MessageBatch(self._factory(schema, streaming=False))

    def streamReader(self, schema: StructType) -> "MessageStream":
        return MessageStream(self._factory(schema, streaming=True))

    def _factory(self, schema: StructType, *, streaming: bool) -> ReaderFactory:
        factory = ReaderFactory(self.connector, dict(self.options), streaming)
        names = factory.reader.schema.names
        if schema.names != names:
            raise SourceError(
                f"{self.connector} has fixed columns and takes no schema: {', '.join(names)}"
            )
        return factory


class KafkaSource(MessageDataSource):
    """Topics of Kafka."""

    connector = KAFKA


class KinesisSource(MessageDataSource):
    """The shards of a stream of Kinesis."""

    connector = KINESIS


class JetStreamSource(MessageDataSource):
    """A stream of NATS JetStream."""

    connector = NATS


class MqttSource(MessageDataSource):
    """Topics of an MQTT broker."""

    connector = MQTT


class FeedSource(MessageDataSource):
    """RSS and Atom feeds."""

    connector = RSS


class OutboxSource(MessageDataSource):
    """Messages in a column of an append-only table."""

    connector = OUTBOX


class ChangeSource(MessageDataSource):
    """The changes of PostgreSQL tables."""

    connector = CHANGES


MESSAGE_SOURCES: Final[dict[str, type[MessageDataSource]]] = {
    source.connector: source
    for source in (
        *(KafkaSource, KinesisSource, JetStreamSource),
        *(MqttSource, FeedSource, OutboxSource, ChangeSource),
    )
}


class MessageBatch(DataSourceReader):
    """A batch: from the start of a source, all by default, to its end."""

    def __init__(self, factory: ReaderFactory) -> None:
        self._factory = factory

    def partitions(self) -> list[InputPartition]:
        reader = self._factory.reader
        spans = reader.spans(reader.starting(EARLIEST), reader.ending())
        return [SpanPartition(span) for span in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._factory.read(partition)


class MessageStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream, whose batches keep to the limit of its reader."""

    def __init__(self, factory: ReaderFactory) -> None:
        self._factory = factory
        self._until: Position | None = None
        self._latest: Position | None = None
        self._idle = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_watch"}

    @cached_property
    def _watch(self) -> ChangeWatch | None:
        return self._reader.watch() if isinstance(self._reader, WatchedReader) else None

    @property
    def _reader(self) -> MessageReader:
        return self._factory.reader

    def initialOffset(self) -> dict[str, Any]:
        return dict(self._reader.starting(LATEST))

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._reader.limit
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._reader.latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if self._until is None:
            # A query that looks again at once, because it has no interval, waits here instead.
            if self._watch is not None and self._idle:
                self._watch.wait(_WATCH_S)
            self._latest = self._reader.latest()
        else:
            self._latest = self._until
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = dict(self._reader.advance(start, self._latest, most))
        self._idle = end == start
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else dict(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [SpanPartition(span) for span in self._reader.spans(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._factory.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._reader.committed(end)

    def stop(self) -> None:
        if vars(self).get("_watch") is not None:
            vars(self).pop("_watch").close()
        if "reader" in vars(self._factory):  # otherwise it was never opened
            self._reader.close()
