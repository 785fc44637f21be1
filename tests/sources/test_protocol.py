"""The form of messages, which every source has: a value and a timestamp at least."""

import pyarrow as pa
import pytest

from tidings.sources.protocol import EARLIEST, LATEST, MESSAGES, WatchedReader


class Quiet:
    """A reader that announces nothing."""

    def latest(self) -> dict[str, int]:
        return {}


class Announcing(Quiet):
    """A reader whose source announces new messages."""

    def watch(self) -> None:
        return None


def test_a_message_has_these_columns() -> None:
    assert MESSAGES.names == ["key", "value", "partition", "position", "timestamp", "headers"]
    assert MESSAGES.field("value").type == pa.binary()
    assert MESSAGES.field("timestamp").type == pa.timestamp("us", "UTC")


def test_a_message_may_have_headers_more_than_once() -> None:
    headers = [{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}]
    row = {"value": b"x", "timestamp": 0, "headers": headers}
    batch = pa.RecordBatch.from_pylist([row], MESSAGES)
    assert batch.to_pylist()[0]["headers"] == headers
    assert batch.to_pylist()[0]["key"] is None


@pytest.mark.parametrize(("reader", "watched"), [(Quiet(), False), (Announcing(), True)])
def test_only_some_readers_can_be_watched(reader: object, watched: bool) -> None:
    assert isinstance(reader, WatchedReader) == watched


def test_the_two_starts_are_words() -> None:
    assert {EARLIEST, LATEST} == {"earliest", "latest"}
