"""The options of `tidings-kafka`: names and meanings are those of Spark's own source `kafka`."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidings.errors import SourceError, shown
from tidings.formats.event_source import KAFKA
from tidings.formats.redaction import Hide, hider_of
from tidings.spark.sources.kafka_offsets import Offsets, Partition, from_form
from tidings.spark.sources.options import Given, check_known, flag, lowered, needed, whole

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
PLACES: Final = {-2: EARLIEST, -1: LATEST}
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
# What a query of Spark has to say itself: its checkpoint holds the offsets, nobody else does.
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


@dataclass(frozen=True)
class Choice:
    """Which partitions are read: all of some topics, of those with a name like this, or listed."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[Partition, ...] = ()

    def of(self, found: Iterable[Partition]) -> list[Partition]:
        """Give those of all partitions that are chosen."""
        return sorted(each for each in found if self._has(each))

    def missing(self, found: Iterable[Partition]) -> str | None:
        """Name something that is chosen and not there."""
        there = set(found)
        topics = {topic for topic, _ in there}
        gone = [f"topic {each!r}" for each in self.topics if each not in topics]
        gone += [
            f"partition {topic}-{n}" for topic, n in self.partitions if (topic, n) not in there
        ]
        return gone[0] if gone else None

    def names(self, topic: str) -> bool:
        """Tell whether something of a topic may be chosen."""
        return self._has((topic, 0)) or topic in {each for each, _ in self.partitions}

    def _has(self, partition: Partition) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, partition[0]) is not None
        return partition[0] in self.topics or partition in self.partitions


@dataclass(frozen=True)
class KafkaOptions:
    """What to read, from where to where, and how."""

    choice: Choice
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
        """Where the brokers are."""
        return self.client[_SERVERS]

    @property
    def hide(self) -> Hide:
        """Return a function that hides the secrets among the options in a text."""
        return hider_of(self.client)


def read_options(given: Given) -> KafkaOptions:
    """Read the options; what starts with `kafka.` is for the client, the rest is checked here."""
    small = lowered(given)
    servers = f"{_CLIENT}{_SERVERS}"
    needed(KAFKA, small, servers, f"{servers} = 'localhost:9092'")
    client = {
        name.removeprefix(_CLIENT): each for name, each in small.items() if name.startswith(_CLIENT)
    }
    rest = {name: each for name, each in given.items() if not name.lower().startswith(_CLIENT)}
    check_known(KAFKA, rest, _KNOWN)
    if not _BROKERS.fullmatch(client[_SERVERS]):
        # What stands there instead may be an address with a password, and is not shown.
        raise SourceError(f"{KAFKA}: {servers} lists brokers such as 'node1:9092,node2:9092'")
    for name in _OURS:
        if name in client:
            raise SourceError(
                f"{KAFKA}: kafka.{name} cannot be set: where reading begins is said by "
                "startingOffsets, then by the checkpoint"
            )
    patience_ms = whole(small, "kafkaConsumer.pollTimeoutMs")
    return KafkaOptions(
        choice=_choice(small),
        client=client,
        starting=_place(small, "startingOffsets"),
        ending=_place(small, "endingOffsets"),
        limit=whole(small, "maxOffsetsPerTrigger"),
        fail_on_data_loss=flag(small, "failOnDataLoss", default=True),
        headers=flag(small, "includeHeaders", default=False),
        group=small.get("groupidprefix", KAFKA),
        patience_s=(patience_ms or _PATIENCE_MS) / 1000,
    )


def _choice(given: Given) -> Choice:
    chosen = [name for name in _CHOICES if name.lower() in given]
    if len(chosen) != 1:
        raise SourceError(f"{KAFKA}: give one of {', '.join(_CHOICES)}, not {len(chosen)} of them")
    text = given[chosen[0].lower()]
    if chosen[0] == "assign":
        return Choice(partitions=_listed(text))
    if chosen[0] == "subscribePattern":
        return Choice(pattern=_pattern(text))
    topics = tuple(each.strip() for each in text.split(",") if each.strip())
    if not topics:
        raise SourceError(f"{KAFKA}: subscribe names topics, parted by commas, not {shown(text)}")
    return Choice(topics)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        given = shown(text)
        raise SourceError(f"{KAFKA}: subscribePattern {given} is no pattern: {error}") from None
    return text


def _listed(text: str) -> tuple[Partition, ...]:
    form = _json("assign", text)
    try:
        return tuple((topic, int(each)) for topic, ids in form.items() for each in ids)
    except (TypeError, ValueError, OverflowError):
        raise SourceError(
            f'{KAFKA}: assign lists partitions by topic, such as {{"films":[0,1]}}, not '
            f"{shown(text)}"
        ) from None


def _place(given: Given, name: str) -> str | Offsets | None:
    text = given.get(name.lower())
    if text is None or text.lower() in (EARLIEST, LATEST):
        return text and text.lower()
    form = _json(name, text)
    if not all(isinstance(each, dict) and _are_offsets(each) for each in form.values()):
        raise SourceError(
            f"{KAFKA}: {name} is {EARLIEST!r}, {LATEST!r} or offsets by topic and partition, such "
            f'as {{"films":{{"0":23,"1":-2}}}} where -2 is earliest and -1 latest, not '
            f"{shown(text)}"
        )
    return from_form(form)


def _are_offsets(form: dict[str, Any]) -> bool:
    return all(
        part.isdecimal() and type(offset) is int and offset >= -2 for part, offset in form.items()
    )


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        form = json.loads(text)
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict):
        raise SourceError(f"{KAFKA}: {name} is a JSON object by topic, not {shown(text)}")
    return form
