"""`tidings-kafka`: Kafka as Spark's own source reads it, without jars.

Offsets live in the checkpoint of the query. Spark takes this class and its readers to its workers.
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
    Form,
    Offsets,
    Span,
    advance,
    from_form,
    losses,
    lost,
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
        """Give the columns, which are those of Spark's own source; all options are checked."""
        _client()
        return _columns(read_options(self.options))

    def reader(self, schema: StructType) -> "KafkaReader":
        return KafkaReader(_checked(read_options(self.options), schema))

    def streamReader(self, schema: StructType) -> "KafkaStream":
        return KafkaStream(_checked(read_options(self.options), schema))


class KafkaReader(DataSourceReader):
    """A batch: from `startingOffsets`, all by default, to `endingOffsets`."""

    def __init__(self, wanted: KafkaOptions) -> None:
        if wanted.starting == LATEST or wanted.ending == EARLIEST:
            raise SourceError(f"{KAFKA}: a batch cannot start at the latest or end at the earliest")
        if wanted.limit is not None:
            raise SourceError(f"{KAFKA}: maxOffsetsPerTrigger is for streams; this is a batch")
        self._wanted = wanted

    def partitions(self) -> list[InputPartition]:
        broker = _client()(self._wanted)
        return [*spans(broker.starting(EARLIEST), broker.ending())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._wanted, partition)


class KafkaStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: each batch takes `maxOffsetsPerTrigger` records of all partitions at most."""

    def __init__(self, wanted: KafkaOptions) -> None:
        if wanted.ending is not None:
            raise SourceError(f"{KAFKA}: endingOffsets is for batches; a stream has no end")
        self._wanted = wanted
        self._until: Offsets | None = None
        self._latest: Offsets | None = None

    @cached_property
    def _broker(self) -> "Broker":
        return _client()(self._wanted)

    def initialOffset(self) -> Form:
        return to_form(self._broker.starting(LATEST))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._wanted.limit is None else ReadMaxRows(self._wanted.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._broker.latest()

    def latestOffset(self, start: Form, limit: ReadLimit) -> Form:
        self._latest = self._broker.latest() if self._until is None else self._until
        begin = from_form(start)
        for words in losses(begin, self._latest):
            self._lose(words)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_form(advance(begin, self._latest, most))

    def reportLatestOffset(self) -> Form | None:
        return None if self._latest is None else to_form(self._latest)

    def partitions(self, start: Form, end: Form) -> list[InputPartition]:
        return [*spans(from_form(start), from_form(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._wanted, partition)

    def _lose(self, words: str) -> None:
        if self._wanted.fail_on_data_loss:
            raise lost(words)
        _LOG.warning("%s; what is there now is read", words)


def _client() -> "type[Broker]":
    """Give what speaks to Kafka, loaded where it is asked for."""
    try:
        from tidings.spark.sources.kafka_client import Broker
    except ImportError as error:
        raise SourceError(
            f"{KAFKA} needs confluent-kafka ({error}); install it, also where workers run, with: "
            "pip install 'tidings[kafka]'"
        ) from None
    return Broker


def _columns(wanted: KafkaOptions) -> StructType:
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
    return columns.add("headers", ArrayType(_HEADER)) if wanted.headers else columns


def _checked(wanted: KafkaOptions, schema: StructType) -> KafkaOptions:
    if schema.names != _columns(wanted).names:
        listed = ", ".join(_columns(wanted).names)
        raise SourceError(f"{KAFKA} has columns of its own, and no schema can be given: {listed}")
    return wanted


def _read(wanted: KafkaOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read a span; an empty batch has none."""
    if not isinstance(partition, Span):
        return iter(())
    schema = to_arrow_schema(_columns(wanted), timezone="UTC")
    return _client().read(wanted, partition, schema)
