"""Records of a broker, and a stream driven as Spark drives it, without Spark."""

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StringType, StructType
from tests.sources.brokers import Brokers

from tidings.errors import SourceError
from tidings.sources.kafka import LastError, SpanProgress
from tidings.sources.kafka_options import read_options
from tidings.sources.offsets import Span
from tidings.spark.sources.messages import KafkaSource

ALL = ReadAllAvailable()


@pytest.fixture(scope="module")
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return a new topic for each test."""
    return str(abs(hash(request.node.name)))


class Clock:
    """The clock of readers, which a test sets ahead: once, or by some seconds for each look.

    So a reader may have more patience than a busy machine needs.
    """

    def __init__(self) -> None:
        self.ahead_s = self.step_s = 0.0

    def monotonic(self) -> float:
        self.ahead_s += self.step_s
        return time.monotonic() + self.ahead_s

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("tidings.sources.kafka.time", made)
    return made


def source(brokers: Brokers, topic: str, **more: str) -> KafkaSource:
    given = {"kafka.bootstrap.servers": brokers.address, "subscribe": topic, **more}
    return KafkaSource({"kafkaConsumer.pollTimeoutMs": "20000", **given})


def stream(brokers: Brokers, topic: str, **more: str) -> Any:
    made = source(brokers, topic, **more)
    return made.streamReader(made.schema())


def batch(brokers: Brokers, topic: str, **more: str) -> Any:
    made = source(brokers, topic, **more)
    return made.reader(made.schema())


def rows(reader: Any, partitions: list[InputPartition]) -> list[dict[str, Any]]:
    return [
        row
        for partition in partitions
        for found in reader.read(partition)
        for row in found.to_pylist()
    ]


def values(reader: Any, start: Any, end: Any) -> list[str]:
    return sorted(row["value"].decode() for row in rows(reader, reader.partitions(start, end)))


def test_a_record_has_the_columns_of_spark(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, ["a", None], partition=2)
    reader = batch(brokers, topic)
    (first, second) = rows(reader, reader.partitions())
    when = first.pop("timestamp")
    assert when.year >= 2024
    assert first == {
        "key": b"0",
        "value": b"a",
        "topic": topic,
        "partition": 2,
        "offset": 0,
        "timestampType": 0,
    }
    assert (second["value"], second["offset"]) == (None, 1)


def test_headers_are_optional(brokers: Brokers, topic: str) -> None:
    brokers._producer.produce(topic, b"a", headers=[("x", b"1"), ("y", None)])
    brokers.send(topic, ["b"])
    reader = batch(brokers, topic, includeHeaders="true")
    found = {row["value"]: row["headers"] for row in rows(reader, reader.partitions())}
    expected = [{"key": "x", "value": b"1"}, {"key": "y", "value": None}]
    assert found == {b"a": expected, b"b": []}


def test_a_producer_may_claim_any_time(brokers: Brokers, topic: str) -> None:
    """One record must not stop the others: a time that has no date is none."""
    for number, claimed in enumerate([2**62, 253_402_300_800_000, 1_000]):
        brokers._producer.produce(topic, str(number), partition=0, timestamp=claimed)
    brokers.send(topic, ["last"], partition=0)
    reader = batch(brokers, topic)
    found = {row["value"]: row["timestamp"] for row in rows(reader, reader.partitions())}
    assert (found[b"0"], found[b"1"]) == (None, None)
    assert (found[b"2"].timestamp(), found[b"last"].year >= 2024) == (1.0, True)


def test_a_batch_ends_at_the_given_offsets(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "abcdef", partition=1)
    none = {"0": 0, "2": 0, "3": 0}
    start, end = ({topic: {**none, "1": each}} for each in (2, 5))
    reader = batch(brokers, topic, startingOffsets=json.dumps(start), endingOffsets=json.dumps(end))
    assert [row["value"] for row in rows(reader, reader.partitions())] == [b"c", b"d", b"e"]
    reader = batch(brokers, topic, startingOffsets=json.dumps(end))
    assert [row["offset"] for row in rows(reader, reader.partitions())] == [5]


def test_a_batch_of_nothing_reads_nothing(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "a", partition=1)
    nothing = json.dumps({topic: {"0": -2, "1": 0, "2": -2, "3": -2}})
    reader = batch(brokers, topic, endingOffsets=nothing)
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_a_stream_starts_at_the_latest_by_default(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "abcde", partition=0)
    others = {"1": 0, "2": 0, "3": 0}
    assert stream(brokers, topic).initialOffset() == {topic: {"0": 5, **others}}
    reader = stream(brokers, topic, startingOffsets="earliest")
    assert reader.initialOffset() == {topic: {"0": 0, **others}}
    told = json.dumps({topic: {"0": 3, "1": -1, "2": -2, "3": 0}})
    reader = stream(brokers, topic, startingOffsets=told)
    start = reader.initialOffset()
    assert start == {topic: {"0": 3, **others}}
    assert values(reader, start, reader.latestOffset(start, ALL)) == ["d", "e"]


def test_batches_keep_to_the_limit_and_take_all(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, map(str, range(50)))
    reader = stream(brokers, topic, startingOffsets="earliest", maxOffsetsPerTrigger="7")
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)
    assert stream(brokers, topic).getDefaultReadLimit() == ALL
    at, seen = reader.initialOffset(), list[str]()
    while (end := reader.latestOffset(at, ReadMaxRows(7))) != at:
        found = values(reader, at, end)
        assert values(reader, at, end) == found
        assert len(found) == 7 or end == reader.reportLatestOffset()
        seen, at = seen + found, end
    assert sorted(seen, key=int) == [str(each) for each in range(50)]


def test_available_now_stops_at_the_end_when_it_started(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "abc")
    reader = stream(brokers, topic, startingOffsets="earliest")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    brokers.send(topic, "def")
    end = reader.latestOffset(start, ALL)
    assert values(reader, start, end) == ["a", "b", "c"]
    assert reader.latestOffset(end, ALL) == end


def test_a_new_topic_or_partition_is_read_from_its_beginning(brokers: Brokers, topic: str) -> None:
    brokers.send(f"{topic}-1", "ab")
    given = {"subscribePattern": f"{topic}-.*", "kafka.bootstrap.servers": brokers.address}
    made = KafkaSource(given)
    reader = made.streamReader(made.schema())
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    brokers.send(f"{topic}-2", "cde")
    assert values(reader, start, reader.latestOffset(start, ALL)) == ["c", "d", "e"]


def test_lost_records_stop_the_stream_unless_allowed(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "abc", partition=0)
    reader = stream(brokers, topic, startingOffsets="earliest")
    start = reader.initialOffset()
    brokers.overflow(topic, partition=0)
    end = reader.latestOffset(start, ALL)
    with pytest.raises(SourceError, match=f"partition {topic}-0 no longer has offset 0; records m"):
        values(reader, start, end)
    lax = stream(brokers, topic, startingOffsets="earliest", failOnDataLoss="false")
    found = rows(lax, lax.partitions(start, end))
    assert len(found) > 5
    assert found[0]["offset"] > 2
    assert found[-1]["offset"] + 1 == end[topic]["0"]


def test_a_missing_or_truncated_partition_is_a_loss(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "abc", partition=0)
    start = {topic: {"0": 9, "1": 0, "2": 0, "3": 0}, "gone": {"0": 4}}
    reader = stream(brokers, topic)
    with pytest.raises(
        SourceError, match=r"-0 was read up to offset 9 and now ends at 3: .* set fail"
    ):
        reader.latestOffset(start, ALL)
    lax = stream(brokers, topic, failOnDataLoss="false")
    end = lax.latestOffset(start, ALL)
    assert end == {topic: {"0": 3, "1": 0, "2": 0, "3": 0}}
    assert values(lax, start, end) == ["a", "b", "c"]


class Passing:
    """A client whose brokers have no metadata of a topic for some calls."""

    def __init__(self, client: Any, topic: str, error: int, calls: int) -> None:
        self._client, self._topic, self._error, self.calls = client, topic, error, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def list_topics(self, **given: Any) -> Any:
        found = self._client.list_topics(**given)
        if self.calls:
            self.calls -= 1
            bare = SimpleNamespace(partitions={}, error=KafkaError(self._error))
            return SimpleNamespace(topics={**found.topics, self._topic: bare})
        return found


@pytest.mark.parametrize("choice", ["subscribe", "subscribePattern", "assign"])
def test_a_topic_without_metadata_is_awaited(brokers: Brokers, topic: str, choice: str) -> None:
    brokers.send(topic, "abc", partition=0)
    brokers.send(f"x{topic}", "d")
    chosen = {choice: json.dumps({topic: [0, 1, 2, 3]}) if choice == "assign" else topic}
    given = {"kafka.bootstrap.servers": brokers.address, "failOnDataLoss": "false", **chosen}
    made = KafkaSource(given)
    reader: Any = made.streamReader(made.schema())
    start = {topic: {"0": 2, "1": 0, "2": 0, "3": 0}}
    client = reader._reader._client
    for name, calls in ((topic, 0), (f"x{topic}", 5)):  # that of others is nothing to us
        reader._reader._client = Passing(client, name, KafkaError.LEADER_NOT_AVAILABLE, 6)
        end = reader.latestOffset(start, ALL)
        assert end == {topic: {"0": 3, "1": 0, "2": 0, "3": 0}}
        assert values(reader, start, end) == ["c"]
        assert reader._reader._client.calls == calls


def test_a_topic_that_never_has_metadata_is_named(
    brokers: Brokers, topic: str, clock: Clock
) -> None:
    brokers.send(topic, "abc", partition=0)
    clock.step_s = 3.0
    reader = stream(brokers, topic, failOnDataLoss="false")
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    reader._reader._client = Passing(reader._reader._client, topic, denied, 10**6)
    with pytest.raises(
        SourceError, match=f"has no metadata of topic '{topic}': .*gave up after 20 s"
    ):
        reader.latestOffset({topic: {"0": 2}}, ALL)
    gone = KafkaError.UNKNOWN_TOPIC_OR_PART
    reader._reader._client = Passing(reader._reader._client._client, topic, gone, 10**6)
    assert reader.latestOffset({topic: {"0": 2}}, ALL) == {}


def test_offsets_beyond_the_end_are_awaited_and_then_named(
    brokers: Brokers, topic: str, clock: Clock
) -> None:
    brokers.send(topic, "abc", partition=0)

    def read(reader: Any) -> list[int]:
        clock.step_s, found = 0.0, list[int]()
        for each in reader.read(reader.partitions({topic: {"0": 1}}, {topic: {"0": 5}})[0]):
            found += each.column("offset").to_pylist()
            clock.step_s = 4.0 if len(found) == 2 else 0.0
        return found

    with pytest.raises(SourceError, match="returned nothing from offset 3 on for 20 s"):
        read(stream(brokers, topic))
    assert read(stream(brokers, topic, failOnDataLoss="false")) == [1, 2]


def test_unreachable_brokers_are_not_skipped_as_a_loss() -> None:
    going, topic = Brokers(), "films"
    going.send(topic, "abc", partition=0)
    given = {"failOnDataLoss": "false", "kafkaConsumer.pollTimeoutMs": "500"}
    reader = stream(going, topic, **given)
    del going
    with pytest.raises(SourceError, match="returned nothing from offset 0 on"):
        values(reader, {topic: {"0": 0}}, {topic: {"0": 3}})


def test_a_slow_reader_is_not_taken_for_a_silent_broker(
    brokers: Brokers, topic: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.sources.kafka._MAX_MESSAGES", 1)
    brokers.send(topic, "abc", partition=0)
    reader, found = stream(brokers, topic), list[int]()
    for each in reader.read(reader.partitions({}, {topic: {"0": 3}})[0]):
        clock.ahead_s += 3_600  # for which the reader is busy
        found += each.column("offset").to_pylist()
    assert found == [0, 1, 2]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"subscribe": "nowhere"}, "there is no topic 'nowhere' at 127.0.0.1:"),
        ({"startingOffsets": '{"nowhere":{"0":1}}'}, "startingOffsets lacks a partition"),
        (
            {"kafka.isolation.level": "none"},
            "kafka.isolation.level must be one of read",
        ),
        ({"kafka.no.such": "x"}, 'options kafka.*: No such configuration property: "no.such"'),
    ],
)
def test_a_wrong_start_is_refused_with_the_reason(
    brokers: Brokers, topic: str, more: dict[str, str], reason: str
) -> None:
    brokers.send(topic, "a")
    with pytest.raises(SourceError) as error:
        stream(brokers, topic, **more).initialOffset()
    assert reason in str(error.value)


def test_offsets_of_partitions_that_are_not_read_are_refused(brokers: Brokers, topic: str) -> None:
    brokers.send(topic, "a")
    told = json.dumps({topic: {str(each): 0 for each in range(5)}})
    with pytest.raises(
        SourceError, match=f"startingOffsets names a partition that is not read: {topic}-4"
    ):
        stream(brokers, topic, startingOffsets=told).initialOffset()


def test_unreachable_brokers_are_reported_once_and_named_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tidings.sources.kafka._ATTEMPT_S", 1.0)
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "a"}
    made = KafkaSource({**given, "kafkaConsumer.pollTimeoutMs": "1500"})
    with pytest.raises(SourceError, match=r"no answer from 127.0.0.1:1: .*refused.* after 1.5 s"):
        made.streamReader(made.schema()).initialOffset()
    (record,) = caplog.records
    assert record.getMessage().startswith("tidings-kafka: no answer from 127.0.0.1:1: ")
    assert record.getMessage().endswith("Connection refused); trying for 1.5 s")
    assert capfd.readouterr().err == ""


def test_a_refused_connection_is_not_awaited(brokers: Brokers, topic: str) -> None:
    """The error of a broker that answers is final."""
    reader = stream(brokers, topic)
    failure = KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED))
    reader._reader._client = SimpleNamespace(list_topics=raising(failure), poll=lambda _: 0)
    with pytest.raises(SourceError, match="Authentication") as error:
        reader.initialOffset()
    assert "gave up" not in str(error.value)


def raising(error: Exception) -> Any:
    def fail(**_: Any) -> None:
        raise error

    return fail


def test_a_silent_partition_is_reported_once_before_it_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidings.sources.kafka._ATTEMPT_S", 1.0)
    options = read_options({"kafka.bootstrap.servers": "host:1", "subscribe": "a"})
    progress = SpanProgress(options, Span("a", 0, 0, 5), 0)
    for _ in range(5):
        progress.add_silence(0.5, LastError(text="Connection refused"))
    (record,) = caplog.records
    expected = "partition a-0 returns nothing: Connection refused; waiting for 120 s"
    assert expected in record.getMessage()


def test_options_of_batches_and_streams_are_distinguished(brokers: Brokers) -> None:
    with pytest.raises(SourceError, match="endingOffsets is for batches"):
        stream(brokers, "a", endingOffsets="latest")
    with pytest.raises(SourceError, match="a batch cannot start at the latest"):
        batch(brokers, "a", startingOffsets="latest")
    with pytest.raises(SourceError, match="maxOffsetsPerTrigger is for streams"):
        batch(brokers, "a", maxOffsetsPerTrigger="3")
    with pytest.raises(SourceError, match="takes no schema: key, value, topic"):
        source(brokers, "a").reader(StructType().add("value", StringType()))
