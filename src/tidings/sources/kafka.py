"""`tidings-kafka`: the partitions of topics, their offsets, and their records, without jars.

The columns and options are those of Spark's own source. This is the only import of confluent_kafka.
Nothing is ever committed to a consumer group.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tidings.errors import SourceError
from tidings.formats.event_source import KAFKA
from tidings.formats.redaction import Hide, shown_safely
from tidings.sources.kafka_options import SYMBOLIC_OFFSETS, KafkaOptions, read_options
from tidings.sources.offsets import (
    OffsetForm,
    Offsets,
    Partition,
    Span,
    data_loss,
    from_form,
    plan_batch,
    spans,
    to_form,
)
from tidings.sources.options import OptionTexts
from tidings.sources.protocol import EARLIEST, HEADERS, LATEST, Position

_LOG: Final = logging.getLogger(__name__)
_SPECS: Final[dict[str, Callable[[], OffsetSpec]]] = {
    EARLIEST: OffsetSpec.earliest,
    LATEST: OffsetSpec.latest,
}
# As in Spark's source, uncommitted records are read by default.
_ISOLATION: Final = "isolation.level"
_LEVELS: Final = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}
# A broker that does not answer is reported once; the client would log every attempt to connect.
_DEFAULTS: Final = {_ISOLATION: "read_uncommitted", "log_level": 0}
_COLUMNS: Final = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
_MAX_MESSAGES: Final = 10_000
_TIMES_MS: Final = range(-62_135_596_800_000, 253_402_300_800_000)
"""The years 1 to 9999; a producer may claim any number, and others have no date."""
_POLL_S: Final = 0.2
_ATTEMPT_S: Final = 3.0
"""How long one attempt to reach a broker takes; the first that fails is reported."""
_GONE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001
_NO_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001
_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001
_AWAY: Final = (
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
)
_NOISE: Final = re.compile(r" \(after \d+ms in state [^)]*\)$")
"""The text that the client adds to the reason of a failed connection."""


@dataclass
class LastError:
    """The last error that the client reported, from which it may still recover."""

    hide: Hide = str
    text: str = "no error was reported"

    def __call__(self, error: KafkaError) -> None:
        """Record an error."""
        self.text = _NOISE.sub("", self.hide(error.str()))


def open_reader(texts: OptionTexts, streaming: bool | None) -> "Broker":
    """Return the reader of topics."""
    options = read_options(texts)
    if streaming is not None:
        options.check_use(streaming=streaming)
    return Broker(options)


class Broker:
    """The reader of topics; it waits up to a timeout for a broker to answer."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._last_error = LastError(options.hide)
        self._level = _level(options)

    @cached_property
    def _client(self) -> Any:
        client = {**_DEFAULTS, **self._options.client, "error_cb": self._last_error}
        return _create(AdminClient, client, self._options.hide)

    @property
    def schema(self) -> pa.Schema:
        return _COLUMNS.append(pa.field("headers", HEADERS)) if self._options.headers else _COLUMNS

    @property
    def limit(self) -> int | None:
        return self._options.limit

    def partitions(self) -> list[Partition]:
        """Return the chosen partitions that exist."""
        return self._options.choice.select(self._all())

    def starting(self, default: str) -> OffsetForm:
        return to_form(self._resolve(self._options.starting or default, "startingOffsets"))

    def ending(self) -> OffsetForm:
        return to_form(self._resolve(self._options.ending or LATEST, "endingOffsets"))

    def latest(self) -> OffsetForm:
        return to_form(self._offsets(dict.fromkeys(self.partitions(), LATEST)))

    def advance(self, start: Position, latest: Position, limit: int | None) -> OffsetForm:
        return plan_batch(start, latest, limit, KAFKA, strict=self._options.fail_on_data_loss)

    def spans(self, start: Position, end: Position) -> list[Span]:
        return spans(from_form(start), from_form(end))

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Yield the records of a span in order.

        Offsets without a record, in compacted topics and between transactions, are skipped.
        """
        options, last_error = self._options, LastError(self._options.hide)
        settings = _settings(options) | {"error_cb": last_error}
        consumer = _create(Consumer, settings, options.hide)
        try:
            consumer.assign([TopicPartition(span.topic, span.partition, span.start)])
            for messages in _poll(consumer, SpanProgress(options, span, span.start), last_error):
                yield _batch(messages, self.schema)
        finally:
            consumer.close()

    def committed(self, end: Position) -> None:
        """Do nothing: the topic determines how long Kafka keeps records."""

    def close(self) -> None:
        """Do nothing: the client ends with this object."""

    def _all(self) -> list[Partition]:
        """Return all partitions; wait for a chosen topic whose metadata is unavailable for now.

        Without its partitions it would seem to be deleted, and later to be new.
        """
        until = time.monotonic() + self._options.patience_s
        while (metadata := self._metadata())[1] and time.monotonic() < until:
            time.sleep(_POLL_S)
        partitions, errors = metadata
        for topic, error in errors.items():
            raise SourceError(
                f"{KAFKA}: {self._options.servers} has no metadata of topic {topic!r}: "
                f"{self._options.hide(error.str())}; "
                f"gave up after {self._options.patience_s:g} s"
            )
        return partitions

    def _metadata(self) -> tuple[list[Partition], dict[str, KafkaError]]:
        """Return the partitions that brokers report now, and the errors of chosen topics."""
        topics = self._list_topics()
        errors = {
            topic: metadata.error
            for topic, metadata in topics.items()
            if metadata.error is not None and metadata.error.code() not in _NO_TOPIC
        }
        chosen = {
            topic: error
            for topic, error in errors.items()
            if self._options.choice.may_include(topic)
        }
        partitions = [
            (topic, number) for topic, metadata in topics.items() for number in metadata.partitions
        ]
        return partitions, chosen

    def _list_topics(self) -> Mapping[str, Any]:
        """Return the metadata of all topics; report the first failure, and try for a while."""
        until, reported = time.monotonic() + self._options.patience_s, False
        while True:
            left_s = max(_POLL_S, until - time.monotonic())
            try:
                topics: Mapping[str, Any] = self._client.list_topics(
                    timeout=min(_ATTEMPT_S, left_s)
                ).topics
            except KafkaException as error:
                failure = self._no_answer(error)
                away = error.args[0].code() in _AWAY
                if not away or time.monotonic() >= until:
                    gave_up = f"gave up after {self._options.patience_s:g} s"
                    raise SourceError(f"{failure}; {gave_up}" if away else failure) from None
                if not reported:
                    _LOG.warning("%s; trying for %g s", failure, self._options.patience_s)
                    reported = True
            else:
                return topics

    def _resolve(self, position: str | Offsets, option: str) -> Offsets:
        existing = self._all()
        if missing := self._options.choice.missing(existing):
            raise SourceError(f"{KAFKA}: there is no {missing} at {self._options.servers}")
        partitions = self._options.choice.select(existing)
        if isinstance(position, str):
            return self._offsets(dict.fromkeys(partitions, position))
        if set(position) != set(partitions):
            topic, number = min(set(position) ^ set(partitions))
            known = (topic, number) in position
            rule = "names a partition that is not read" if known else "lacks a partition"
            raise SourceError(f"{KAFKA}: {option} {rule}: {topic}-{number}")
        symbolic = {
            partition: SYMBOLIC_OFFSETS[offset]
            for partition, offset in position.items()
            if offset in SYMBOLIC_OFFSETS
        }
        return {**position, **self._offsets(symbolic)}

    def _offsets(self, positions: Mapping[Partition, str]) -> dict[Partition, int]:
        if not positions:
            return {}
        specs = {TopicPartition(*name): _SPECS[position]() for name, position in positions.items()}
        futures = self._client.list_offsets(
            specs, isolation_level=self._level, request_timeout=self._options.patience_s
        )
        try:
            return {
                (partition.topic, partition.partition): future.result().offset
                for partition, future in futures.items()
            }
        except KafkaException as error:
            failure = self._no_answer(error)
            raise SourceError(f"{failure}; gave up after {self._options.patience_s:g} s") from None

    def _no_answer(self, error: KafkaException) -> str:
        """Return which broker gave no answer, and why."""
        self._client.poll(0)
        reason = self._options.hide(_message(error))
        return (
            f"{KAFKA}: no answer from {self._options.servers}: {reason} ({self._last_error.text})"
        )


def _settings(options: KafkaOptions) -> dict[str, Any]:
    return {
        **_DEFAULTS,
        "group.id": f"{options.group}-{uuid4()}",
        **options.client,
        "auto.offset.reset": "error" if options.fail_on_data_loss else EARLIEST,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }


@dataclass
class SpanProgress:
    """How far a span is read, how long it has been silent, and where its partition ends."""

    options: KafkaOptions
    span: Span
    position: int
    silent_s: float = 0.0
    ends: int | None = None

    def take(self, message: Message) -> bool:
        """Take a message into account; return whether it is a record of the span."""
        error, offset = message.error(), message.offset()
        if error is not None and error.code() != _END:
            raise self._refused(error)
        if error is not None:
            self.ends = offset
        if offset is None or offset < self.position:
            return False
        self.position = offset if error is not None else offset + 1
        return error is None and offset < self.span.end

    def add_silence(self, seconds: float, last_error: LastError) -> None:
        """Add a time without messages; fail once it is too long.

        Lost records are skipped if that is allowed; unreachable brokers are not.
        """
        before, self.silent_s = self.silent_s, self.silent_s + seconds
        if self.silent_s < self.options.patience_s:
            if before < _ATTEMPT_S <= self.silent_s:
                _LOG.warning(
                    "%s: partition %s returns nothing: %s; waiting for %g s",
                    *(KAFKA, self.span.name, last_error.text, self.options.patience_s),
                )
            return
        reason = (
            f"partition {self.span.name} returned nothing from offset {self.position} on for "
            f"{self.options.patience_s:g} s, although it had records up to {self.span.end}"
        )
        if self.options.fail_on_data_loss or self.ends is None:
            raise SourceError(f"{KAFKA}: {reason}; {last_error.text}")
        _LOG.warning("%s; they are skipped", reason)
        self.position = self.span.end

    def _refused(self, error: KafkaError) -> SourceError:
        if error.code() not in _GONE:
            text = self.options.hide(error.str())
            return SourceError(f"{KAFKA}: partition {self.span.name}: {text}")
        return data_loss(KAFKA, f"partition {self.span.name} no longer has offset {self.position}")


def _poll(
    consumer: Consumer, progress: SpanProgress, last_error: LastError
) -> Iterator[list[Message]]:
    while (before := progress.position) < progress.span.end:
        began = time.monotonic()
        size = min(_MAX_MESSAGES, progress.span.end - before)
        messages = [
            message for message in consumer.consume(size, timeout=_POLL_S) if progress.take(message)
        ]
        if progress.position > before:
            progress.silent_s = 0.0
        else:
            progress.add_silence(time.monotonic() - began, last_error)
        if messages:
            yield messages


def _batch(messages: Iterable[Message], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*map(_row, messages), strict=True)
    arrays = [
        pa.array(list(cells), field.type) for cells, field in zip(columns, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(message: Message) -> tuple[Any, ...]:
    kind, milliseconds = message.timestamp()
    headers: Any = message.headers() or ()
    return (
        message.key(),
        message.value(),
        message.topic(),
        message.partition(),
        message.offset(),
        milliseconds * 1000 if kind and milliseconds in _TIMES_MS else None,
        kind - 1,
        [{"key": name, "value": value} for name, value in headers],
    )


def _level(options: KafkaOptions) -> IsolationLevel:
    name = {**_DEFAULTS, **options.client}[_ISOLATION]
    if name not in _LEVELS:
        raise SourceError(
            f"{KAFKA}: kafka.{_ISOLATION} must be one of {', '.join(_LEVELS)}, "
            f"not {shown_safely(name)}"
        )
    return _LEVELS[name]


def _create(kind: Any, settings: dict[str, Any], hide: Hide) -> Any:
    """Return a new client, which logs through Python's logging."""
    try:
        return kind(settings, logger=_LOG)
    except (KafkaException, TypeError, ValueError) as error:
        text = _message(error) if isinstance(error, KafkaException) else "a value is invalid"
        failure = SourceError(f"{KAFKA}: options kafka.*: {hide(text)}")
    # Raised outside the handler so that it has no context: the client's error may show options.
    raise failure


def _message(error: KafkaException) -> str:
    return str(error.args[0].str())
