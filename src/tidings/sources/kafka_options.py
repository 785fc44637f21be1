"""Options of `tidings-kafka`, with the names and meanings of Spark's own source `kafka`."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from warnings import catch_warnings

from tidings.errors import SourceError, shown
from tidings.formats.event_source import KAFKA
from tidings.formats.redaction import Hide, hider_of
from tidings.sources.offsets import Offsets, Partition, from_form
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_flag,
    read_integer,
    read_required,
)
from tidings.sources.protocol import EARLIEST, LATEST

SYMBOLIC_OFFSETS: Final = {-2: EARLIEST, -1: LATEST}
_CLIENT: Final = "kafka."
_CHOICES: Final = ("subscribe", "subscribePattern", "assign")
_KNOWN: Final = (
    *_CHOICES,
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
)
# Settings that users must not change: the offsets are in the checkpoint of the query only.
_OURS: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "key.deserializer",
    "value.deserializer",
)
_SERVERS: Final = "bootstrap.servers"
_BROKER: Final = r"(?:[A-Za-z_]+://)?(?:[\w.\-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_BROKERS: Final = re.compile(rf"\s*{_BROKER}(?:\s*,\s*{_BROKER})*\s*,?\s*")
_PATIENCE_MS: Final = 120_000
_LAST_PARTITION: Final = 2**31 - 1
_LAST_OFFSET: Final = 2**63 - 1
_DIGITS: Final = len(str(_LAST_PARTITION))


@dataclass(frozen=True)
class PartitionChoice:
    """The partitions to read: those of some topics, of topics that match a pattern, or listed."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[Partition, ...] = ()

    def select(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Return the chosen partitions."""
        return sorted(partition for partition in partitions if self._includes(partition))

    def missing(self, partitions: Iterable[Partition]) -> str | None:
        """Return the name of a chosen topic or partition that does not exist, or None."""
        existing = set(partitions)
        topics = {topic for topic, _ in existing}
        missing = [f"topic {topic!r}" for topic in self.topics if topic not in topics]
        missing += [
            f"partition {topic}-{n}" for topic, n in self.partitions if (topic, n) not in existing
        ]
        return missing[0] if missing else None

    def may_include(self, topic: str) -> bool:
        """Return whether some partition of a topic may be chosen."""
        return self._includes((topic, 0)) or topic in {name for name, _ in self.partitions}

    def _includes(self, partition: Partition) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, partition[0]) is not None
        return partition[0] in self.topics or partition in self.partitions


@dataclass(frozen=True)
class KafkaOptions:
    """The partitions to read, the offsets to start and end at, and how to read."""

    choice: PartitionChoice
    client: Mapping[str, str] = field(repr=False)
    starting: str | Offsets | None = None
    ending: str | Offsets | None = None
    limit: int | None = None
    fail_on_data_loss: bool = True
    headers: bool = False
    group: str = KAFKA
    patience_s: float = _PATIENCE_MS / 1000

    @property
    def servers(self) -> str:
        """The addresses of the brokers."""
        return self.client[_SERVERS]

    def check_use(self, *, streaming: bool) -> None:
        """Refuse options of batches for a stream, and those of streams for a batch."""
        if streaming and self.ending is not None:
            raise SourceError(f"{KAFKA}: endingOffsets is for batches; a stream has no end")
        if not streaming and (self.starting == LATEST or self.ending == EARLIEST):
            raise SourceError(f"{KAFKA}: a batch cannot start at the latest or end at the earliest")
        if not streaming and self.limit is not None:
            raise SourceError(f"{KAFKA}: maxOffsetsPerTrigger is for streams; this is a batch")

    @property
    def hide(self) -> Hide:
        """Function that hides the secrets among the options in a text."""
        return hider_of(self.client)


def read_options(texts: OptionTexts) -> KafkaOptions:
    """Return the options; those that start with `kafka.` are for the client, others are checked."""
    small = lower_names(texts)
    servers = f"{_CLIENT}{_SERVERS}"
    read_required(KAFKA, small, servers, f"{servers} = 'localhost:9092'")
    client = {
        name.removeprefix(_CLIENT): text for name, text in small.items() if name.startswith(_CLIENT)
    }
    rest = {name: text for name, text in texts.items() if not name.lower().startswith(_CLIENT)}
    check_names(KAFKA, rest, _KNOWN)
    if not _BROKERS.fullmatch(client[_SERVERS]):
        # The text may be an address with a password, so it is not shown.
        raise SourceError(f"{KAFKA}: {servers} must list brokers such as 'node1:9092,node2:9092'")
    for name in _OURS:
        if name in client:
            raise SourceError(
                f"{KAFKA}: kafka.{name} cannot be set: reading starts at startingOffsets, "
                "and later at the offsets in the checkpoint"
            )
    patience_ms = read_integer(small, "kafkaConsumer.pollTimeoutMs")
    return KafkaOptions(
        choice=_choice(small),
        client=client,
        starting=_offsets(small, "startingOffsets"),
        ending=_offsets(small, "endingOffsets"),
        limit=read_integer(small, "maxOffsetsPerTrigger"),
        fail_on_data_loss=read_flag(small, "failOnDataLoss", default=True),
        headers=read_flag(small, "includeHeaders", default=False),
        group=small.get("groupidprefix", KAFKA),
        patience_s=(patience_ms or _PATIENCE_MS) / 1000,
    )


def _choice(texts: OptionTexts) -> PartitionChoice:
    chosen = [name for name in _CHOICES if name.lower() in texts]
    if len(chosen) != 1:
        raise SourceError(f"{KAFKA}: set exactly one of {', '.join(_CHOICES)}, not {len(chosen)}")
    text = texts[chosen[0].lower()]
    if chosen[0] == "assign":
        return PartitionChoice(partitions=_listed(text))
    if chosen[0] == "subscribePattern":
        return PartitionChoice(pattern=_pattern(text))
    topics = tuple(topic.strip() for topic in text.split(",") if topic.strip())
    if not topics:
        raise SourceError(
            f"{KAFKA}: subscribe must list topics separated by commas, not {shown(text)}"
        )
    return PartitionChoice(topics)


def _pattern(text: str) -> str:
    try:
        with catch_warnings(action="ignore"):  # of syntax that a later Python may read differently
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise SourceError(
            f"{KAFKA}: subscribePattern {shown(text)} is not a regular expression: {error}"
        ) from None
    return text


def _listed(text: str) -> tuple[Partition, ...]:
    form, listed = _json("assign", text), tuple[Partition, ...]()
    with suppress(TypeError, ValueError, OverflowError):
        listed = tuple((topic, int(partition)) for topic, ids in form.items() for partition in ids)
    if not listed or not all(0 <= number <= _LAST_PARTITION for _, number in listed):
        raise SourceError(
            f'{KAFKA}: assign must list partitions by topic, such as {{"films":[0,1]}}, not '
            f"{shown(text)}"
        )
    return listed


def _offsets(texts: OptionTexts, name: str) -> str | Offsets | None:
    text = texts.get(name.lower())
    if text is None or text.lower() in (EARLIEST, LATEST):
        return text and text.lower()
    form = _json(name, text)
    if not all(isinstance(offsets, dict) and _are_offsets(offsets) for offsets in form.values()):
        raise SourceError(
            f"{KAFKA}: {name} must be {EARLIEST!r}, {LATEST!r} or offsets by topic and partition, "
            f'such as {{"films":{{"0":23,"1":-2}}}} where -2 is earliest and -1 latest, not '
            f"{shown(text)}"
        )
    return from_form(form)


def _are_offsets(form: dict[str, Any]) -> bool:
    return all(
        part.isdecimal()
        and len(part) <= _DIGITS
        and type(offset) is int
        and min(SYMBOLIC_OFFSETS) <= offset <= _LAST_OFFSET
        for part, offset in form.items()
    )


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        form = json.loads(text)
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict):
        raise SourceError(f"{KAFKA}: {name} must be a JSON object by topic, not {shown(text)}")
    return form
