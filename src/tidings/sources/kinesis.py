"""`tidings-kinesis`: the shards of a stream of Amazon Kinesis.

A position has for each shard the record that was read last. The numbers of records have gaps, and a
shard does not report its last one, so a batch is planned by reading ahead: every record is fetched
twice. The children of a shard that was split or merged are read when it has been read to its end.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import boto3
import pyarrow as pa
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from tidings.errors import SourceError, TidingsError, shown
from tidings.formats.event_source import KINESIS
from tidings.formats.redaction import Hide, hider_of, without_signed_text
from tidings.model.values import parse_time_us
from tidings.sources.offsets import data_loss
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_flag,
    read_integer,
    read_required,
)
from tidings.sources.protocol import EARLIEST, LATEST, MESSAGES, Position

_LOG: Final = logging.getLogger(__name__)
_KNOWN: Final = (
    *("stream", "region", "endpoint", "accessKeyId", "secretAccessKey", "sessionToken"),
    *("startingPosition", "maxRecordsPerTrigger", "failOnDataLoss", "patienceMs"),
)
_PAGE: Final = 10_000
_LIMIT: Final = 10_000
_PATIENCE_MS: Final = 60_000
_PAUSE_S: Final = 1.0
_AWAY: Final = (HTTPClientError, NoConnection)
"""Failures of connections, as while a service restarts."""
_LOOK_EVERY_S: Final = 0.25
"""A shard answers five requests per second, of all its readers."""
_RETRIES: Final[Any] = {"mode": "standard", "max_attempts": 4}
_THROTTLED: Final = (
    *("ProvisionedThroughputExceededException", "LimitExceededException"),
    *("ThrottlingException", "KMSThrottlingException"),
)
_EXPIRED: Final = "ExpiredIteratorException"
HORIZON: Final = "TRIM_HORIZON"
END: Final = "END"
_AT: Final = "AT "
_AFTER: Final = "AFTER "


@dataclass(frozen=True)
class KinesisOptions:
    """A stream, the account that reads it, where to start, and how much to read at once."""

    stream: str
    client: Mapping[str, str] = field(repr=False)
    starting: str = EARLIEST
    limit: int = _LIMIT
    fail_on_data_loss: bool = True
    patience_s: float = _PATIENCE_MS / 1000
    hide: Hide = field(default=str, repr=False)


@dataclass(frozen=True)
class ShardRange:
    """The records of a shard after one position, up to and including another."""

    shard: str
    start: str
    end: str


def open_reader(texts: OptionTexts, _: bool | None) -> "KinesisStream":
    """Return the reader of a stream."""
    return KinesisStream(read_options(texts))


def read_options(texts: OptionTexts) -> KinesisOptions:
    """Return the options; missing credentials are found as in other AWS tools."""
    check_names(KINESIS, texts, _KNOWN)
    small = lower_names(texts)
    if "@" in small.get("endpoint", ""):
        raise SourceError(f"{KINESIS}: endpoint must not hold a user or a password")
    names = {
        "region_name": "region",
        "endpoint_url": "endpoint",
        "aws_access_key_id": "accesskeyid",
        "aws_secret_access_key": "secretaccesskey",
        "aws_session_token": "sessiontoken",
    }
    return KinesisOptions(
        read_required(KINESIS, small, "stream", "stream = 'films'"),
        {name: small[option] for name, option in names.items() if option in small},
        _starting(small.get("startingposition", EARLIEST)),
        read_integer(small, "maxRecordsPerTrigger") or _LIMIT,
        read_flag(small, "failOnDataLoss", default=True),
        (read_integer(small, "patienceMs") or _PATIENCE_MS) / 1000,
        hider_of(small),
    )


def _starting(text: str) -> str:
    """Return EARLIEST, LATEST, or the position of a time."""
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        return f"{_AT}{parse_time_us(text) // 1_000}"
    except TidingsError:
        raise SourceError(
            f"{KINESIS}: startingPosition must be {EARLIEST!r}, {LATEST!r} or a time such as "
            f"'2026-11-16T08:00:00Z', not {shown(text)}"
        ) from None


class KinesisStream:
    """The reader of a stream."""

    schema = MESSAGES

    def __init__(self, options: KinesisOptions) -> None:
        self._options = options
        self._looked_at = 0.0

    @property
    def limit(self) -> int | None:
        return self._options.limit

    @cached_property
    def _client(self) -> Any:
        settings: Any = self._options.client
        config = Config(retries=_RETRIES, connect_timeout=5, read_timeout=10)
        try:
            return boto3.client("kinesis", config=config, **settings)
        except (BotoCoreError, ValueError) as error:
            failure = self._failure(error)
        raise failure

    def starting(self, default: str) -> Position:
        """Return the start in all shards; `default` has no effect, by default all is read."""
        del default
        begin = self._options.starting
        if begin == EARLIEST:
            begin = HORIZON
        elif begin == LATEST:
            begin = f"{_AT}{_now_ms()}"
        return dict.fromkeys(self._shards(), begin)

    def ending(self) -> Position:
        return self._to_the_end(self.starting(EARLIEST))

    def _to_the_end(self, position: Position) -> Position:
        latest, before = self.latest(), None
        while position != before:
            before, position = position, self.advance(position, latest, None)
        return position

    def latest(self) -> Position:
        """Return the current time: records that arrive later are left to the next batch."""
        return {"until_ms": _now_ms()}

    def advance(self, start: Position, latest: Position, limit: int | None) -> Position:
        shards = self._shards()
        positions = self._present(start, shards)
        readable = [
            shard
            for shard, form in shards.items()
            if positions[shard] != END and all(positions.get(p, END) == END for p in _parents(form))
        ]
        time.sleep(max(0.0, self._looked_at + _LOOK_EVERY_S - time.monotonic()))
        remaining = limit
        for number, shard in enumerate(readable):
            share = None if remaining is None else -(-remaining // (len(readable) - number))
            count, positions[shard] = self._look_ahead(
                shards[shard], positions[shard], latest["until_ms"], share
            )
            remaining = None if remaining is None else remaining - count
        self._looked_at = time.monotonic()
        return positions

    def spans(self, start: Position, end: Position) -> list[ShardRange]:
        return [
            ShardRange(shard, start.get(shard, HORIZON), upto)
            for shard, upto in sorted(end.items())
            if start.get(shard, HORIZON) != upto and upto.startswith((_AFTER, END))
        ]

    def read(self, span: ShardRange) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range; wait for those that were there when it was planned."""
        last = None if span.end == END else int(span.end.removeprefix(_AFTER))
        until = time.monotonic() + self._options.patience_s
        for page in self._pages(span.shard, span.start, patient=True):
            records = [
                record for record in page["Records"] if last is None or _number(record) <= last
            ]
            if records:
                until = time.monotonic() + self._options.patience_s
                yield _batch(span.shard, records)
            if page["Records"] and last is not None and _number(page["Records"][-1]) >= last:
                return
            if page["Records"] or page.get("MillisBehindLatest"):
                continue
            if last is None:
                return
            if time.monotonic() > until:
                self._report_loss(f"shard {span.shard} no longer has records up to {last}")
                return
            time.sleep(_LOOK_EVERY_S)

    def committed(self, end: Position) -> None:
        """Do nothing: the stream's retention period determines how long records are kept."""

    def close(self) -> None:
        """Close the connections, if there are any."""
        if "_client" in vars(self):
            self._client.close()

    def _present(self, start: Position, shards: Mapping[str, Any]) -> dict[str, str]:
        """Return the positions in the shards that exist; new ones begin with their first record."""
        for shard, position in start.items():
            if shard not in shards and position != END:
                self._report_loss(f"shard {shard}, read up to {position}, no longer exists")
        return {shard: start.get(shard, HORIZON) for shard in shards}

    def _report_loss(self, loss: str) -> None:
        if self._options.fail_on_data_loss:
            raise data_loss(KINESIS, loss)
        _LOG.warning("%s; the remaining records are read", loss)

    def _look_ahead(
        self, shard: Mapping[str, Any], position: str, until_ms: int, most: int | None
    ) -> tuple[int, str]:
        """Return how many records can be read, at most `most`, and the position after them."""
        count, is_closed = 0, "EndingSequenceNumber" in shard["SequenceNumberRange"]
        if most == 0:
            return 0, position
        for page in self._pages(shard["ShardId"], position, most):
            for record in page["Records"]:
                arrived = record["ApproximateArrivalTimestamp"].timestamp() * 1_000
                if arrived > until_ms or count == most:
                    return count, position
                count, position = count + 1, f"{_AFTER}{record['SequenceNumber']}"
            if not page.get("NextShardIterator"):
                return count, END
            if not page["Records"] and not page.get("MillisBehindLatest"):
                return count, END if is_closed else position
        return count, position

    def _pages(
        self, shard: str, position: str, size: int | None = None, *, patient: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the pages of a shard, until it is closed and read to its end.

        An iterator expires after minutes; then a new one continues. If a shard is throttled for
        too long, pages end, or it is an error for a `patient` caller.
        """
        iterator = self._iterator(shard, position)
        until = time.monotonic() + self._options.patience_s
        while iterator:
            try:
                limit = min(_PAGE, size or _PAGE)
                page = self._reach("get_records", ShardIterator=iterator, Limit=limit)
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code == _EXPIRED:
                    iterator = self._iterator(shard, position)
                    continue
                if code not in _THROTTLED or (patient and time.monotonic() > until):
                    failure = self._failure(error)
                elif patient:
                    time.sleep(1)
                    continue
                else:
                    return
            except BotoCoreError as error:
                failure = self._failure(error)
            else:
                until = time.monotonic() + self._options.patience_s
                yield page
                if page["Records"]:
                    position = f"{_AFTER}{page['Records'][-1]['SequenceNumber']}"
                iterator = page.get("NextShardIterator")
                continue
            raise failure

    def _iterator(self, shard: str, position: str) -> str:
        start: dict[str, Any] = {"ShardIteratorType": position}
        if position.startswith(_AT):
            seconds = int(position.removeprefix(_AT)) / 1_000
            start = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": seconds}
        elif position.startswith(_AFTER):
            number = position.removeprefix(_AFTER)
            start = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
        answer = self._ask("get_shard_iterator", ShardId=shard, **start)
        return str(answer["ShardIterator"])

    def _shards(self) -> dict[str, Mapping[str, Any]]:
        """Return the descriptions of all shards, by their ids in order."""
        answer = self._ask("list_shards")
        shards = list(answer["Shards"])
        while answer.get("NextToken"):
            answer = self._ask("list_shards", NextToken=answer["NextToken"])
            shards += answer["Shards"]
        by_id = {shard["ShardId"]: shard for shard in shards}
        return dict(sorted(by_id.items()))

    def _ask(self, verb: str, **arguments: Any) -> Any:
        if "NextToken" not in arguments:
            arguments = {"StreamName": self._options.stream, **arguments}
        try:
            return self._reach(verb, **arguments)
        except (BotoCoreError, ClientError) as error:
            failure = self._failure(error)
        # Raised outside the handler so that it has no context, which may show options.
        raise failure

    def _reach(self, verb: str, **arguments: Any) -> Any:
        """Call the service; while it cannot be reached, repeat the call for up to `patience_s`."""
        patience_s = self._options.patience_s
        until = time.monotonic() + patience_s
        while True:
            try:
                return getattr(self._client, verb)(**arguments)
            except _AWAY as error:
                failure = self._failure(error)
            if time.monotonic() > until:
                raise failure
            _LOG.warning("%s; retrying for up to %g s", failure, patience_s)
            time.sleep(_PAUSE_S)

    def _failure(self, error: Exception) -> SourceError:
        if isinstance(error, ClientError):
            answer = error.response["Error"]
            reason = f"{answer['Code']}: {answer.get('Message', '')}"
        else:
            reason = str(error)
        return SourceError(
            f"{KINESIS}: stream {self._options.stream}: "
            f"{self._options.hide(without_signed_text(reason))}"
        )


def _parents(shard: Mapping[str, Any]) -> list[str]:
    names = ("ParentShardId", "AdjacentParentShardId")
    return [shard[name] for name in names if shard.get(name)]


def _number(record: Mapping[str, Any]) -> int:
    return int(record["SequenceNumber"])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _batch(shard: str, records: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    rows = [
        {
            "key": record["PartitionKey"],
            "value": record["Data"],
            "partition": shard,
            "position": record["SequenceNumber"],
            "timestamp": record["ApproximateArrivalTimestamp"],
        }
        for record in records
    ]
    return pa.RecordBatch.from_pylist(rows, MESSAGES)
