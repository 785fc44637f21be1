"""Shards of moto's Kinesis: every record once and in order, through splits, merges and kills."""

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.sources.clouds import Cloud, running_cloud
from tests.sources.kills import check_kills
from tests.sources.pipelines import check, lines, run_here, write_config

from tidings.errors import SourceError
from tidings.sources.kinesis import END, HORIZON, KinesisStream, open_reader, read_options

KEY = "Sw0rdfish-key"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with running_cloud() as cloud:
        yield cloud


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    """Return the name of a new stream for each test."""
    return str(abs(hash(request.node.name)))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.sources.kinesis._LOOK_EVERY_S", 0.0)


def reader(cloud: Cloud, stream: str, **more: str) -> KinesisStream:
    return open_reader({**cloud.options, "stream": stream, **more}, None)


def values(reader: KinesisStream, start: Any, end: Any) -> list[str]:
    return [
        row["value"].decode()
        for span in reader.spans(start, end)
        for batch in reader.read(span)
        for row in batch.to_pylist()
    ]


def read_all(reader: KinesisStream, position: Any, limit: int | None = None) -> list[str]:
    latest, seen = reader.latest(), list[str]()
    while (end := reader.advance(position, latest, limit)) != position:
        some = values(reader, position, end)
        assert values(reader, position, end) == some
        assert limit is None or len(some) <= limit
        seen, position = seen + some, end
    return seen


def test_batches_keep_to_the_limit_and_take_all(cloud: Cloud, stream: str) -> None:
    cloud.create(stream, shards=3)
    cloud.send(stream, map(str, range(40)))
    open_one = reader(cloud, stream)
    seen = read_all(open_one, open_one.starting("latest"), limit=7)
    assert sorted(seen, key=int) == [str(number) for number in range(40)]


def test_children_begin_when_their_parent_is_read(cloud: Cloud, stream: str) -> None:
    cloud.create(stream)
    cloud.send(stream, "abc", key="k")
    (parent,) = cloud.shards(stream)
    middle = str(2**127)
    cloud.kinesis.split_shard(
        StreamName=stream, ShardToSplit=parent["ShardId"], NewStartingHashKey=middle
    )
    cloud.send(stream, "defghi")
    open_one = reader(cloud, stream)
    position = open_one.starting("latest")
    first = open_one.advance(position, open_one.latest(), None)
    assert values(open_one, position, first)[:3] == ["a", "b", "c"]
    seen = read_all(open_one, position)
    assert seen[:3] == ["a", "b", "c"]
    assert sorted(seen) == list("abcdefghi")


def test_a_merge_is_followed(cloud: Cloud, stream: str) -> None:
    cloud.create(stream, shards=2)
    cloud.send(stream, "abcdef")
    open_one = reader(cloud, stream)
    position = open_one.starting("latest")
    position = open_one.advance(position, open_one.latest(), 2)
    first, second = (shard["ShardId"] for shard in cloud.shards(stream))
    cloud.kinesis.merge_shards(StreamName=stream, ShardToMerge=first, AdjacentShardToMerge=second)
    cloud.send(stream, "ghi")
    (child,) = {shard["ShardId"] for shard in cloud.shards(stream)} - {first, second}
    step = open_one.advance(position, open_one.latest(), None)
    assert (step[first], step[second], step[child]) == (END, END, HORIZON)
    # The child of moto has the records of its parents as well, which Amazon's has not.
    assert set(read_all(open_one, position)) >= set("cdefghi")


def test_a_stream_may_start_at_the_latest_or_at_a_time(cloud: Cloud, stream: str) -> None:
    cloud.create(stream)
    cloud.send(stream, "ab")
    time.sleep(0.01)  # the clock of the server is that of this process
    late = reader(cloud, stream, startingPosition="latest")
    position = late.starting("latest")
    assert read_all(late, position) == []
    cloud.send(stream, "cd")
    assert read_all(late, position) == ["c", "d"]
    early = reader(cloud, stream, startingPosition="2020-01-01T00:00:00Z")
    assert read_all(early, early.starting("latest")) == list("abcd")


def test_records_after_the_latest_are_left(cloud: Cloud, stream: str) -> None:
    cloud.create(stream)
    cloud.send(stream, "ab")
    open_one = reader(cloud, stream)
    start, latest = open_one.starting("latest"), open_one.latest()
    time.sleep(0.01)
    cloud.send(stream, "cd")
    assert values(open_one, start, open_one.advance(start, latest, None)) == ["a", "b"]
    assert values(open_one, start, open_one.ending()) == list("abcd")


def test_a_shard_that_is_gone_is_a_loss_unless_it_was_read(cloud: Cloud, stream: str) -> None:
    cloud.create(stream)
    cloud.send(stream, "a")
    strict, lax = reader(cloud, stream), reader(cloud, stream, failOnDataLoss="false")
    start = {"shardId-old": "AFTER 7", **strict.starting("latest")}
    with pytest.raises(SourceError, match="shardId-old, read up to AFTER 7, no longer exists"):
        strict.advance(start, strict.latest(), None)
    assert values(lax, start, lax.advance(start, lax.latest(), None)) == ["a"]
    start["shardId-old"] = END
    assert strict.advance(start, strict.latest(), None).keys() < start.keys()


class Throttled:
    """A client that refuses some calls."""

    def __init__(self, client: Any, code: str, calls: int) -> None:
        self._client, self._code, self.calls = client, code, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_records(self, **given: Any) -> Any:
        if self.calls:
            self.calls -= 1
            raise ClientError({"Error": {"Code": self._code, "Message": "slow down"}}, "GetRecords")
        return self._client.get_records(**given)


def test_throttling_and_old_iterators_are_overcome(
    cloud: Cloud, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(
        sleep=lambda _: None, monotonic=time.monotonic, time_ns=time.time_ns
    )  # other threads sleep as ever
    monkeypatch.setattr("tidings.sources.kinesis.time", clock)
    cloud.create(stream)
    cloud.send(stream, "ab")
    open_one = reader(cloud, stream)
    start = open_one.starting("latest")
    end, client = open_one.ending(), open_one._client
    for code in ("ProvisionedThroughputExceededException", "ExpiredIteratorException"):
        open_one._client = Throttled(client, code, 3)
        assert values(open_one, start, end) == ["a", "b"]
    open_one._client = Throttled(client, "ProvisionedThroughputExceededException", 1)
    assert open_one.advance(start, open_one.latest(), None) == start  # the next look finds them


class Away:
    """A client that cannot reach its service for some calls of each verb."""

    def __init__(self, client: Any, calls: int) -> None:
        self._client, self._left = client, defaultdict[str, int](lambda: calls)

    def __getattr__(self, name: str) -> Any:
        def ask(**given: Any) -> Any:
            if self._left[name]:
                self._left[name] -= 1
                raise EndpointConnectionError(endpoint_url="http://a")
            return getattr(self._client, name)(**given)

        return ask


def test_a_service_that_restarts_is_waited_for(
    cloud: Cloud, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.sources.kinesis._PAUSE_S", 0.0)
    cloud.create(stream)
    cloud.send(stream, "ab")
    open_one = reader(cloud, stream)
    open_one._client = Away(open_one._client, 3)
    start = open_one.starting("latest")
    assert read_all(open_one, start) == ["a", "b"]
    open_one._client = Away(cloud.kinesis, 3)
    assert values(open_one, start, open_one.advance(start, open_one.latest(), None)) == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "option 'stream' is missing, such as stream = 'films'"),
        ({"stream": "a", "shard": "1"}, "unknown option 'shard'; expected one of: accessKeyId"),
        (
            {"stream": "a", "startingPosition": "now"},
            "startingPosition must be 'earliest'",
        ),
        ({"stream": "a", "maxRecordsPerTrigger": "0"}, "maxRecordsPerTrigger must be"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceError) as error:
        read_options(options)
    assert reason in str(error.value)


def test_a_missing_stream_and_an_unreachable_server_are_named(cloud: Cloud) -> None:
    with pytest.raises(SourceError, match="stream nowhere: ResourceNotFoundException: "):
        reader(cloud, "nowhere").starting("latest")
    nowhere = {"stream": "a", "endpoint": "http://127.0.0.1:1", "patienceMs": "100"}
    away = open_reader({**cloud.options, **nowhere}, None)
    with pytest.raises(SourceError, match="Could not connect to the endpoint") as error:
        away.starting("latest")
    assert KEY not in str(error.value) + repr(away._options)
    assert error.value.__context__ is None


def test_a_restart_resumes_and_everything_is_delivered_once(cloud: Cloud, tmp_path: Path) -> None:
    expected = write_stream(tmp_path, files=8)
    all_lines = lines(tmp_path)
    cloud.create("restarts")
    config = write_config(tmp_path, "kinesis", {**cloud.options, "stream": "restarts"})
    for part in (all_lines[:33], all_lines[33:]):
        cloud.send("restarts", part, key="one")
        assert run_here(config).events == len(part)
    check(tmp_path, expected)


@pytest.mark.kill
def test_kills_in_mid_stream_lose_nothing_and_repeat_nothing(cloud: Cloud, tmp_path: Path) -> None:
    expected = write_stream(tmp_path, files=12)
    cloud.create("kills")
    cloud.send("kills", lines(tmp_path), key="one")
    options = {**cloud.options, "stream": "kills", "maxRecordsPerTrigger": 1 if KILLS else 5}
    check_kills(write_config(tmp_path, "kinesis", options), expected, kills=20 if KILLS else 1)
