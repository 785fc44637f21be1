"""Readers of sources that cannot be read again: messages are kept in a spool first.

A collector, which only the planning process runs, fills the spool. Positions are the numbers in it,
so batches can be repeated; messages that were processed are deleted.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, Protocol

import pyarrow as pa

from tidings.errors import SourceError
from tidings.sources.offsets import (
    OffsetForm,
    Span,
    from_form,
    plan_batch,
    spans,
    to_form,
)
from tidings.sources.protocol import MESSAGES, Position
from tidings.store import NumberedMessage, Spool

_PAGE: Final = 1_000


class Collector(Protocol):
    """Fills a spool."""

    def collect(self) -> None:
        """Fetch new messages, or wait until those sent in the meantime have arrived."""

    def close(self) -> None:
        """Stop collecting."""


class OpenCollector(Protocol):
    """A function that starts to fill a spool."""

    def __call__(self, spool: Spool) -> Collector: ...


def message_text(
    key: str, value: bytes, at: datetime, headers: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a message as the text that a spool keeps."""
    form = {"key": key, "at": at.isoformat(), "headers": list(headers)}
    try:
        return json.dumps({**form, "value": value.decode()})
    except UnicodeDecodeError:
        return json.dumps({**form, "base64": b64encode(value).decode()})


@dataclass
class SpooledReader:
    """The reader of a source through a spool at `address`.

    `name` is that of the format, and `source` identifies what the spool holds.
    """

    name: str
    address: str = field(repr=False)
    source: str
    open_collector: OpenCollector
    limit: int | None = None

    schema = MESSAGES

    @cached_property
    def _spool(self) -> Spool:
        return Spool.open(self.address, self.source)

    @cached_property
    def _collector(self) -> Collector:
        return self.open_collector(self._spool)

    def starting(self, default: str) -> OffsetForm:
        """Return the first message that is kept; `default` has no effect."""
        del default
        return to_form({(self.source, 0): self._spool.bounds().first})

    def ending(self) -> OffsetForm:
        return self.latest()

    def latest(self) -> OffsetForm:
        self._collector.collect()
        return to_form({(self.source, 0): self._spool.bounds().next})

    def advance(self, start: Position, latest: Position, limit: int | None) -> OffsetForm:
        first = self._spool.bounds().first
        begin = from_form(start).get((self.source, 0), 0)
        if begin < first:
            raise SourceError(
                f"{self.name}: messages from {begin} on were deleted from the spool, which begins "
                f"with {first}: another run has processed them. Give each run its own `client` or "
                "`spool`, or start over with --fresh"
            )
        return plan_batch(start, latest, limit, self.name, strict=True)

    def spans(self, start: Position, end: Position) -> list[Span]:
        return spans(from_form(start), from_form(end))

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        position = span.start
        while page := self._spool.page(position, span.end, _PAGE):
            yield _batch(self.source, page)
            position = page[-1].number + 1

    def committed(self, end: Position) -> None:
        self._spool.delete_before(from_form(end)[self.source, 0])

    def close(self) -> None:
        """Stop collecting, and close the spool."""
        if "_collector" in vars(self):
            self._collector.close()
        if "_spool" in vars(self):
            self._spool.close()


def _batch(source: str, messages: Sequence[NumberedMessage]) -> pa.RecordBatch:
    rows = [
        {"partition": source, "position": str(message.number), **_cells(message.message)}
        for message in messages
    ]
    return pa.RecordBatch.from_pylist(rows, MESSAGES)


def _cells(text: str) -> dict[str, Any]:
    """Return what a message holds; a damaged one has a value that no reader takes for an event."""
    try:
        form = json.loads(text)
        key, headers = form["key"], form["headers"]
        # Else its column could not be written, nor the messages beside it.
        "".join(["" if key is None else key, *(name for name, _ in headers)]).encode()
        return {
            "key": key,
            "value": form["value"].encode() if "value" in form else b64decode(form["base64"]),
            "timestamp": datetime.fromisoformat(form["at"]).astimezone(UTC),
            "headers": [{"key": name, "value": value.encode()} for name, value in headers],
        }
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        value = f"damaged in the spool: {text}".encode(errors="replace")
        return {"value": value, "timestamp": datetime.fromtimestamp(0, UTC), "headers": []}
