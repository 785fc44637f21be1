"""Messages as events: plain forms, flat objects, envelopes, and what is none of these."""

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.formats.files import read_event_line
from tidings.formats.layout import Layout
from tidings.formats.messages import MessageForm, MessageSource
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits
from tidings.model.records import Event
from tidings.sources.protocol import MESSAGES

AT = datetime(2026, 11, 16, tzinfo=UTC)
FILM = {"id": "e1", "published_at": 7, "attributes": {"genre": "drama"}}
SOLD = {"specversion": "1.0", "id": "7", "source": "shop", "type": "sold"}


def encoded(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def batch(*values: Any, headers: dict[str, str] | None = None) -> pa.RecordBatch:
    listed = [{"key": name, "value": text.encode()} for name, text in (headers or {}).items()]
    rows = [
        {
            "value": encoded(value),
            "partition": "films-0",
            "position": str(number),
            "timestamp": AT,
            "headers": listed,
        }
        for number, value in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(rows, MESSAGES)


def only(form: MessageForm, messages: pa.RecordBatch) -> Event:
    (event,) = form.events(messages)
    assert isinstance(event, Event), event
    return event


def test_a_plain_form_is_an_event() -> None:
    assert only(MessageForm(), batch(FILM)).to_dict()["id"] == "e1"


def test_an_envelope_without_a_time_has_that_of_the_message() -> None:
    event = only(MessageForm(), batch({**SOLD, "data": {"genre": "drama"}}))
    assert (event.id, event.published_at, event.content) == (
        "shop#7",
        AT.timestamp(),
        {"genre": "drama"},
    )


def test_an_envelope_may_be_in_the_headers() -> None:
    headers = {f"ce_{name}": text for name, text in SOLD.items()}
    event = only(MessageForm(), batch({"genre": "drama"}, headers=headers))
    assert (event.id, event.attributes["genre"]) == ("shop#7", "drama")


def test_a_layout_names_the_fields_of_flat_objects() -> None:
    layout = Layout({"id": "sku"}, types={"price": "amount"}, generate=("published_at",))
    event = only(MessageForm(layout=layout), batch({"sku": 8, "price": "$7.50"}))
    assert (event.id, event.published_at, dict(event.attributes)) == (
        "8",
        AT.timestamp(),
        {"price": 7.5},
    )
    event = only(MessageForm(layout=Layout(generate=("id", "published_at"))), batch({"x": 1}))
    assert event.id == "films-0:0"


def test_content_is_shown() -> None:
    form = MessageForm(content=("genre",))
    assert only(form, batch(FILM)).content == {"genre": "drama"}
    assert MessageSource("tidings-nats", form=form).content == ("genre",)


@pytest.mark.parametrize(
    ("value", "reason", "record"),
    [
        (None, "the message is empty", {"place": "films-0:0", "text": ""}),
        (b"{", "Expecting", {"place": "films-0:0", "text": "{"}),
        (b"\xff", "not UTF-8", {"place": "films-0:0", "text": "\ufffd"}),
        ([], "object", {"place": "films-0:0", "text": "[]"}),
        ({"id": "e1"}, "'published_at' is missing", {"id": "e1"}),
        ({**SOLD, "specversion": "2"}, "specversion 1.0", {**SOLD, "specversion": "2"}),
    ],
)
def test_a_bad_message_stops_nothing(value: Any, reason: str, record: Any) -> None:
    bad, good = MessageForm().events(batch(value, FILM))
    assert isinstance(bad, BadRecord)
    assert reason in bad.reason
    assert bad.record == record
    assert isinstance(good, Event)


def test_a_message_above_the_limit_is_not_parsed() -> None:
    (bad,) = MessageForm().events(batch(FILM), Limits(record_bytes=20))
    assert "record_bytes" in bad.reason  # type: ignore[union-attr]


BAD: Any = st.sampled_from([None, b"{", b"\xff", [], {"id": "e"}, "x", b'{"a":1,"a":2}'])
GOOD: Any = st.sampled_from([FILM, {**FILM, "id": "e2"}])
CLOUD: Any = st.sampled_from([{**SOLD, "data": {"x": 1}}, {**SOLD, "id": 3}])


@given(st.lists(BAD | GOOD | CLOUD, max_size=6), st.booleans())
def test_lines_hold_the_same_events(values: list[Any], copied: bool) -> None:
    """Also when the values are passed on without being parsed."""
    form = pickle.loads(pickle.dumps(MessageForm())) if copied else MessageForm()
    messages = batch(*values)
    lines = form.lines(messages).to_pylist()
    for line, record in zip(lines, form.events(messages), strict=True):
        if isinstance(record, Event):
            assert Event(**json.loads(line["value"])) == record
        elif line["reason"]:
            assert line["reason"] == record.reason
        else:
            assert not isinstance(read_event_line(line["value"], 1), Event)
