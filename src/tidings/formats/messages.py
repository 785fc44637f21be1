"""Events in the messages of a broker: JSON or Avro, with or without an envelope of CloudEvents."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from tidings.errors import InvalidForm
from tidings.formats.cloud_events import MARK, event_form, header_attributes
from tidings.formats.event_source import showing
from tidings.formats.json_forms import loads_event, ordinary
from tidings.formats.json_text import read_json
from tidings.formats.layout import AS_IT_IS, Layout
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event

JSON: Final = "json"
AVRO: Final = "avro"
FRAMED_AVRO: Final = "avro-framed"
ENCODINGS: Final = (JSON, AVRO, FRAMED_AVRO)
LINES: Final = pa.schema({"value": pa.string(), "reason": pa.string()})
_MARK: Final = MARK.encode()
_BEGINNING: Final = 200
Row = Mapping[str, Any]


@dataclass(frozen=True)
class MessageForm:
    """How a message becomes an event.

    A CloudEvent is recognised by its attribute `specversion`, in the value or in the headers. Other
    messages hold the form of an event, or flat objects if a layout names their fields.
    """

    encoding: str = JSON
    schema: str = ""
    layout: Layout = AS_IT_IS
    content: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def events(
        self, batch: pa.RecordBatch, limits: Limits = TRUSTED
    ) -> Iterator[Event | BadRecord]:
        """Yield the events of a batch of messages, and bad records in place of the others."""
        records = (
            attempt(lambda row: self._event(row, limits), row, position, _shown_message)
            for position, row in enumerate(batch.to_pylist(), start=1)
        )
        return showing(records, self.content, self.hidden)

    def lines(self, batch: pa.RecordBatch, limits: Limits = TRUSTED) -> pa.RecordBatch:
        """Return events as lines of JSON; a line that has a reason is a bad record."""
        if not self._passes_lines(batch):
            rows = [event_line(record) for record in self.events(batch, limits)]
            return pa.RecordBatch.from_pylist(rows, LINES)
        values = batch.column("value").to_pylist()
        rows = [{"value": "null" if value is None else value.decode()} for value in values]
        return pa.RecordBatch.from_pylist(rows, LINES)

    def _passes_lines(self, batch: pa.RecordBatch) -> bool:
        """Return whether the values are what `lines` returns, but for invalid ones.

        Most streams hold plain forms of events, which are parsed only once.
        """
        plain = self.encoding == JSON and self.layout.is_plain and not self.content
        if not plain or ("headers" in batch.schema.names and any(batch["headers"].to_pylist())):
            return False
        return all(
            value is None or (_MARK not in value and _is_text(value))
            for value in batch.column("value").to_pylist()
        )

    @cached_property
    def _decode(self) -> Any:
        if self.encoding == JSON:
            return read_json
        from tidings.formats.avro import avro_decoder  # noqa: PLC0415 - an optional dependency

        return avro_decoder(self.schema, framed=self.encoding == FRAMED_AVRO)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_decode"}

    def _event(self, row: Row, limits: Limits) -> Event:
        value = row["value"]
        if value is None:
            raise InvalidForm("the message is empty")
        limits.check("record_bytes", len(value), "the bytes of the message", InvalidForm)
        context = header_attributes(_header_texts(row))
        form = self._decode(value)
        if context:
            form = {**context, "data": form}
        if isinstance(form, dict) and MARK in form and "attributes" not in form:
            form = event_form(form)
            form = {**form, "published_at": form["published_at"] or row["timestamp"]}
        elif not self.layout.is_plain:
            form = self.layout.form(form, self._generated(row), limits)
        return loads_event(ordinary(form), limits)

    def _generated(self, row: Row) -> dict[str, Any]:
        values = {"id": _place(row), "published_at": row["timestamp"]}
        return {name: values[name] for name in self.layout.generate}


@dataclass(frozen=True)
class MessageSource:
    """A source of messages that both engines read: its format, its options, and their form."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: MessageForm = MessageForm()

    @property
    def label(self) -> str:
        """A short description."""
        return f"messages of {self.format}"

    @property
    def content(self) -> tuple[str, ...]:
        """The attributes that are content, which the form has put there already."""
        return self.form.content

    @property
    def hidden(self) -> tuple[str, ...]:
        """The same attributes: nothing is left to do for the pipeline."""
        return self.form.content


def _place(row: Row) -> str:
    """Return where a message is, which no other message of the source has."""
    if "topic" in row:
        return f"{row['topic']}-{row['partition']}:{row['offset']}"
    return f"{row['partition']}:{row['position']}"


def _header_texts(row: Row) -> dict[str, str]:
    headers = row.get("headers") or ()
    return {
        header["key"]: header["value"].decode(errors="replace")
        for header in headers
        if header["value"] is not None
    }


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown_message(row: Row) -> dict[str, Any]:
    """Return a message as a dead letter shows it: its JSON object, or the beginning of its text."""
    value = row["value"] or b""
    try:
        form = read_json(value)
    except InvalidForm:
        form = None
    if isinstance(form, dict):
        return form
    return {"place": _place(row), "text": value[:_BEGINNING].decode(errors="replace")}


def event_line(record: Event | BadRecord) -> dict[str, Any]:
    """Return the row of LINES for an event, or for a bad record."""
    if isinstance(record, Event):
        return {"value": json.dumps(record.to_dict())}
    bad = record.to_dict()
    # Arrow refuses text with a lone surrogate, which the id of a bad record may contain.
    reason = bad["reason"].encode(errors="backslashreplace").decode()
    return {"value": json.dumps(bad["record"]), "reason": reason}
