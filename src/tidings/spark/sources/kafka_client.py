"""Kafka itself: which partitions there are, how far they go, and their records as Arrow batches.

The only import of confluent_kafka. Nothing is ever committed to a consumer group.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
from tidings.spark.sources.kafka_offsets import Offsets, Partition, Span, lost
from tidings.spark.sources.kafka_options import EARLIEST, LATEST, PLACES, KafkaOptions

_LOG: Final = logging.getLogger(__name__)
_SPECS: Final[dict[str, Callable[[], OffsetSpec]]] = {
    EARLIEST: OffsetSpec.earliest,
    LATEST: OffsetSpec.latest,
}
# Spark's source reads what is not committed, unless it is told otherwise.
_ISOLATION: Final = "isolation.level"
_LEVELS: Final = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}
_DEFAULTS: Final = {_ISOLATION: "read_uncommitted"}
_MOST: Final = 10_000
_LOOK_EVERY_S: Final = 0.2
_GONE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001
_NO_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001
_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001


@dataclass
class Trouble:
    """The last thing that the client complained of, which it may still get over."""

    hide: Hide = str
    words: str = "it said nothing"

    def __call__(self, error: KafkaError) -> None:
        """Keep it."""
        self.words = self.hide(error.str())


class Broker:
    """The brokers as a driver asks them. One that is away is waited for, up to the patience."""

    def __init__(self, wanted: KafkaOptions) -> None:
        self._wanted = wanted
        self._trouble = Trouble(wanted.hide)
        self._level = _level(wanted)
        client = {**_DEFAULTS, **wanted.client, "error_cb": self._trouble}
        self._client = _made(AdminClient, client, wanted.hide)

    def partitions(self) -> list[Partition]:
        """Give the chosen partitions that there are."""
        return self._wanted.choice.of(self._all())

    def starting(self, default: str) -> Offsets:
        """Give where a query begins that has no checkpoint yet."""
        return self._resolved(self._wanted.starting or default, "startingOffsets")

    def ending(self) -> Offsets:
        """Give where a batch ends."""
        return self._resolved(self._wanted.ending or LATEST, "endingOffsets")

    def latest(self) -> Offsets:
        """Give the ends of the chosen partitions as they are now."""
        return self._offsets(dict.fromkeys(self.partitions(), LATEST))

    @staticmethod
    def read(wanted: KafkaOptions, span: Span, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the records of a span, in their order, on a worker.

        Offsets that Kafka has no record at, in compacted topics and between transactions, are
        passed.
        """
        trouble = Trouble(wanted.hide)
        settings = _settings(wanted) | {"error_cb": trouble}
        consumer = _made(Consumer, settings, wanted.hide)
        try:
            consumer.assign([TopicPartition(span.topic, span.partition, span.start)])
            for messages in _polled(consumer, Reading(wanted, span, span.start), trouble):
                yield _batch(messages, schema)
        finally:
            consumer.close()

    def _all(self) -> list[Partition]:
        """Give all partitions; a chosen topic that is not told of for now is waited for.

        Without its partitions it would seem to be gone, and then to be new.
        """
        until = time.monotonic() + self._wanted.patience_s
        while (found := self._told())[1] and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)
        partitions, errors = found
        for topic, error in errors.items():
            raise SourceError(
                f"{KAFKA}: {self._wanted.servers} does not tell of topic {topic!r}: "
                f"{self._wanted.hide(error.str())}; "
                f"it was waited for up to {self._wanted.patience_s:g} s"
            )
        return partitions

    def _told(self) -> tuple[list[Partition], dict[str, KafkaError]]:
        """Give the partitions that are told of now, and what is wrong with chosen topics."""
        try:
            topics = self._client.list_topics(timeout=self._wanted.patience_s).topics
        except KafkaException as error:
            raise self._away(error) from None
        errors = {
            topic: of.error
            for topic, of in topics.items()
            if of.error is not None and of.error.code() not in _NO_TOPIC
        }
        chosen = {name: each for name, each in errors.items() if self._wanted.choice.names(name)}
        return [(topic, each) for topic, of in topics.items() for each in of.partitions], chosen

    def _resolved(self, place: str | Offsets, option: str) -> Offsets:
        there = self._all()
        if missing := self._wanted.choice.missing(there):
            raise SourceError(f"{KAFKA}: there is no {missing} at {self._wanted.servers}")
        partitions = self._wanted.choice.of(there)
        if isinstance(place, str):
            return self._offsets(dict.fromkeys(partitions, place))
        if set(place) != set(partitions):
            named = min(set(place) ^ set(partitions))
            rule = "names what is not read" if named in place else "must name every partition, also"
            raise SourceError(f"{KAFKA}: {option} {rule}: {named[0]}-{named[1]}")
        asked = {each: PLACES[at] for each, at in place.items() if at in PLACES}
        return {**place, **self._offsets(asked)}

    def _offsets(self, places: Mapping[Partition, str]) -> dict[Partition, int]:
        if not places:
            return {}
        asked = {TopicPartition(*each): _SPECS[at]() for each, at in places.items()}
        told = self._client.list_offsets(
            asked, isolation_level=self._level, request_timeout=self._wanted.patience_s
        )
        try:
            return {(of.topic, of.partition): each.result().offset for of, each in told.items()}
        except KafkaException as error:
            raise self._away(error) from None

    def _away(self, error: KafkaException) -> SourceError:
        self._client.poll(0)
        return SourceError(
            f"{KAFKA}: no answer from {self._wanted.servers}: {self._wanted.hide(_said(error))} "
            f"({self._trouble.words}); it was waited for up to {self._wanted.patience_s:g} s"
        )


def _settings(wanted: KafkaOptions) -> dict[str, Any]:
    return {
        **_DEFAULTS,
        "group.id": f"{wanted.group}-{uuid4()}",
        **wanted.client,
        "auto.offset.reset": "error" if wanted.fail_on_data_loss else EARLIEST,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }


@dataclass
class Reading:
    """How far a span has been read, for how long nothing has come, and where its partition ends."""

    wanted: KafkaOptions
    span: Span
    position: int
    silent_s: float = 0.0
    ends: int | None = None

    def take(self, message: Message) -> bool:
        """Note a message; tell whether it is a record of the span."""
        error, offset = message.error(), message.offset()
        if error is not None and error.code() != _END:
            raise self._refused(error)
        if error is not None:
            self.ends = offset
        if offset is None or offset < self.position:
            return False
        self.position = offset if error is not None else offset + 1
        return error is None and offset < self.span.end

    def wait(self, seconds: float, trouble: Trouble) -> None:
        """Note that nothing came for so long; once that is too long, tell it.

        Records that are gone are passed over, if that is allowed; brokers that are away are not.
        """
        self.silent_s += seconds
        if self.silent_s < self.wanted.patience_s:
            return
        words = (
            f"partition {self.span.name} has given nothing from offset {self.position} on for "
            f"{self.wanted.patience_s:g} s, and records up to {self.span.end} were there"
        )
        if self.wanted.fail_on_data_loss or self.ends is None:
            raise SourceError(f"{KAFKA}: {words}; {trouble.words}")
        _LOG.warning("%s; they are passed over", words)
        self.position = self.span.end

    def _refused(self, error: KafkaError) -> SourceError:
        if error.code() not in _GONE:
            said = self.wanted.hide(error.str())
            return SourceError(f"{KAFKA}: partition {self.span.name}: {said}")
        return lost(f"partition {self.span.name} no longer has offset {self.position}")


def _polled(consumer: Consumer, reading: Reading, trouble: Trouble) -> Iterator[list[Message]]:
    while (before := reading.position) < reading.span.end:
        began = time.monotonic()
        told = consumer.consume(min(_MOST, reading.span.end - before), timeout=_LOOK_EVERY_S)
        messages = [each for each in told if reading.take(each)]
        if reading.position > before:
            reading.silent_s = 0.0
        else:
            reading.wait(time.monotonic() - began, trouble)
        if messages:
            yield messages


def _batch(messages: Iterable[Message], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*map(_row, messages), strict=True)
    arrays = [
        pa.array(list(cells), each.type) for cells, each in zip(columns, schema, strict=False)
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
        milliseconds * 1000 if kind else None,
        kind - 1,
        [{"key": name, "value": each} for name, each in headers],
    )


def _level(wanted: KafkaOptions) -> IsolationLevel:
    name = {**_DEFAULTS, **wanted.client}[_ISOLATION]
    if name not in _LEVELS:
        raise SourceError(
            f"{KAFKA}: kafka.{_ISOLATION} is one of {', '.join(_LEVELS)}, not {shown_safely(name)}"
        )
    return _LEVELS[name]


def _made(kind: Any, settings: dict[str, Any], hide: Hide) -> Any:
    """Make a client; its log goes to Python's, where nobody reads it unless asked to."""
    try:
        return kind(settings, logger=_LOG)
    except (KafkaException, TypeError, ValueError) as error:
        said = _said(error) if isinstance(error, KafkaException) else "a value is of no use"
        refused = SourceError(f"{KAFKA}: options kafka.*: {hide(said)}")
    # Raised here, it has no context: the client's error may show values of the options.
    raise refused


def _said(error: KafkaException) -> str:
    return str(error.args[0].str())
