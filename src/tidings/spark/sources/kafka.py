"""`tidings-kafka`: Kafka as Spark's own source reads it, without jars.

Offsets are kept in the checkpoint of the query. Spark pickles this class and its readers for its
workers.
"""

import logging
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from tidings.errors import SourceError
from tidings.formats.event_source import KAFKA
from tidings.spark.sources.kafka_offsets import (
    OffsetForm,
    Offsets,
    Span,
    advance,
    data_loss,
    describe_losses,
    from_form,
    spans,
    to_form,
)
from tidings.spark.sources.kafka_options import EARLIEST, LATEST, KafkaOptions, read_options

if TYPE_CHECKING:
    from tidings.spark.sources.kafka_client import Broker

_LOG: Final = logging.getLogger(__name__)
_HEADER: Final = StructType().add("key", StringType()).add("value", BinaryType())


class KafkaSource(DataSource):
    """Topics of Kafka: `spark.readStream.format("tidings-kafka")`, or `spark.read`."""

    @classmethod
    def name(cls) -> str:
        return KAFKA

    def schema(self) -> StructType:
        """Return the columns, which are those of Spark's own source, after checking all options."""
        _client()
        return _columns(read_options(self.options))

    def reader(self, schema: StructType) -> "KafkaReader":
        return KafkaReader(_checked(read_options(self.options), schema))

    def streamReader(self, schema: StructType) -> "KafkaStream":
        return KafkaStream(_checked(read_options(self.options), schema))


class KafkaReader(DataSourceReader):
    """A batch: from `startingOffsets`, all by default, to `endingOffsets`."""

    def __init__(self, options: KafkaOptions) -> None:
        if options.starting == LATEST or options.ending == EARLIEST:
            raise SourceError(f"{KAFKA}: a batch cannot start at the latest or end at the earliest")
        if options.limit is not None:
            raise SourceError(f"{KAFKA}: maxOffsetsPerTrigger is for streams; this is a batch")
        self._options = options

    def partitions(self) -> list[InputPartition]:
        broker = _client()(self._options)
        return [*spans(broker.starting(EARLIEST), broker.ending())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, partition)


class KafkaStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: each batch takes `maxOffsetsPerTrigger` records of all partitions at most."""

    def __init__(self, options: KafkaOptions) -> None:
        if options.ending is not None:
            raise SourceError(f"{KAFKA}: endingOffsets is for batches; a stream has no end")
        self._options = options
        self._until: Offsets | None = None
        self._latest: Offsets | None = None

    @cached_property
    def _broker(self) -> "Broker":
        return _client()(self._options)

    def initialOffset(self) -> OffsetForm:
        return to_form(self._broker.starting(LATEST))

    def getDefaultReadLimit(self) -> ReadLimit:
        return (
            ReadAllAvailable() if self._options.limit is None else ReadMaxRows(self._options.limit)
        )

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._broker.latest()

    def latestOffset(self, start: OffsetForm, limit: ReadLimit) -> OffsetForm:
        self._latest = self._broker.latest() if self._until is None else self._until
        begin = from_form(start)
        for loss in describe_losses(begin, self._latest):
            self._report_loss(loss)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_form(advance(begin, self._latest, most))

    def reportLatestOffset(self) -> OffsetForm | None:
        return None if self._latest is None else to_form(self._latest)

    def partitions(self, start: OffsetForm, end: OffsetForm) -> list[InputPartition]:
        return [*spans(from_form(start), from_form(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, partition)

    def _report_loss(self, loss: str) -> None:
        if self._options.fail_on_data_loss:
            raise data_loss(loss)
        _LOG.warning("%s; the remaining records are read", loss)


def _client() -> "type[Broker]":
    """Import the Kafka client, which is an optional dependency."""
    try:
        from tidings.spark.sources.kafka_client import Broker
    except ImportError as error:
        raise SourceError(
            f"{KAFKA} needs confluent-kafka ({error}); install it here and on the workers with: "
            "pip install 'tidings[kafka]'"
        ) from None
    return Broker


def _columns(options: KafkaOptions) -> StructType:
    columns = (
        StructType()
        .add("key", BinaryType())
        .add("value", BinaryType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("offset", LongType())
        .add("timestamp", TimestampType())
        .add("timestampType", IntegerType())
    )
    return columns.add("headers", ArrayType(_HEADER)) if options.headers else columns


def _checked(options: KafkaOptions, schema: StructType) -> KafkaOptions:
    names = _columns(options).names
    if schema.names != names:
        raise SourceError(f"{KAFKA} has fixed columns and takes no schema: {', '.join(names)}")
    return options


def _read(options: KafkaOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read a span; the partition of an empty batch is none."""
    if not isinstance(partition, Span):
        return iter(())
    schema = to_arrow_schema(_columns(options), timezone="UTC")
    return _client().read(options, partition, schema)
