"""Readers through a spool: batches can be repeated until they are committed."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import SourceError
from tidings.sources.spooled import SpooledReader, message_text
from tidings.store import Spool, SpoolEntry

AT = datetime(2026, 11, 16, tzinfo=UTC)


class Given:
    """A collector that brings messages it was given."""

    def __init__(self, spool: Spool, values: list[bytes]) -> None:
        self._spool, self._values, self.closed = spool, values, False

    def collect(self) -> None:
        entries = [
            SpoolEntry(str(value), "", message_text("k", value, AT, [("h", "1")]), True)
            for value in self._values
        ]
        self._spool.append(entries, 0)

    def close(self) -> None:
        self.closed = True


def reader(folder: Path, values: list[bytes]) -> SpooledReader:
    def collect(spool: Spool) -> Any:
        return Given(spool, values)

    return SpooledReader("tidings-given", f"sqlite:///{folder}/spool.db", "a", collect)


def rows(open_one: SpooledReader, start: Any, end: Any) -> list[dict[str, Any]]:
    return [
        row
        for span in open_one.spans(start, end)
        for batch in open_one.read(span)
        for row in batch.to_pylist()
    ]


def test_messages_are_read_again_until_they_are_committed(tmp_path: Path) -> None:
    values = [b"a", b"\xff", b"c"]
    first = reader(tmp_path, values)
    start = first.starting("latest")
    end = first.advance(start, first.latest(), 2)
    assert [row["value"] for row in rows(first, start, end)] == values[:2]
    first.close()
    again = reader(tmp_path, [*values, b"d"])
    assert rows(again, start, end)[1] == {
        "key": "k",
        "value": b"\xff",
        "partition": "a",
        "position": "2",
        "timestamp": AT,
        "headers": [{"key": "h", "value": b"1"}],
    }
    again.committed(end)
    assert [row["value"] for row in rows(again, end, again.ending())] == [b"c", b"d"]
    with pytest.raises(SourceError, match="messages from 1 on were deleted from the spool"):
        again.advance(start, again.latest(), None)
    again.close()


DAMAGED = [
    *("", "{", "7", "[]", "{}", "[" * 100_000, '{"key": null, "value": 1}'),
    '{"key": 7, "value": "{}", "at": "2026-11-16T00:00:00+00:00", "headers": []}',
    '{"key": "\\ud800", "value": "{}", "at": "2026-11-16T00:00:00+00:00", "headers": []}',
    '{"key": null, "value": "{}", "at": "0001-01-01T00:00:00+23:00", "headers": []}',
    '{"key": null, "value": "{}", "at": "2026-11-16T00:00:00+00:00", "headers": [[1, "a"]]}',
    '{"key": null, "base64": "\u00e9", "at": "2026-11-16T00:00:00+00:00", "headers": []}',
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_message_does_not_hide_the_others(tmp_path: Path, text: str) -> None:
    first = reader(tmp_path, [b"a", b"b", b"c"])
    start, end = first.starting("latest"), first.latest()
    with closing(Spool.open(tmp_path / "spool.db", "a")) as spool:
        sql = "UPDATE tidings_spool SET message = ? WHERE number = 2"
        spool.database.write(lambda session: session.run(sql, text))
    assert [row["value"] for row in rows(first, start, end)] == [
        b"a",
        b"damaged in the spool: " + text.encode(errors="replace"),
        b"c",
    ]
