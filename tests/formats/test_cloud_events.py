"""CloudEvents in messages: what becomes id, time, attributes and content."""

from typing import Any

import pytest

from tidings.errors import InvalidEvent
from tidings.formats.cloud_events import event_form, header_attributes

SOLD = {"specversion": "1.0", "id": "7", "source": "shop", "type": "sold"}


def test_attributes_and_data_become_an_event() -> None:
    data = {"genre": ["drama"], "year": 1999, "cast": [{"name": "A"}]}
    form = event_form({**SOLD, "time": "2026-01-01T00:00:00Z", "data": data, "region": "eu"})
    assert form == {
        "id": "shop#7",
        "published_at": "2026-01-01T00:00:00Z",
        "attributes": {
            "genre": ["drama"],
            "year": 1999,
            "source": "shop",
            "type": "sold",
            "region": "eu",
        },
        "content": data,
    }
    assert event_form({**SOLD, "data": "text"})["content"] == {"data": "text"}
    assert event_form(SOLD)["content"] is None


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ([], "a CloudEvent is an object"),
        ({**SOLD, "id": 7}, "needs the attribute id"),
        ({**SOLD, "time": 7}, "the time of a CloudEvent is a text"),
        ({**SOLD, "specversion": "0.3"}, "CloudEvents have specversion 1.0, not '0.3'"),
    ],
)
def test_a_wrong_envelope_is_refused(form: Any, reason: str) -> None:
    with pytest.raises(InvalidEvent, match=reason):
        event_form(form)


@pytest.mark.parametrize("prefix", ["ce-", "ce_", "", "CE-"])
def test_attributes_may_be_headers(prefix: str) -> None:
    headers = {f"{prefix}{name}": value for name, value in SOLD.items()}
    assert header_attributes(headers) == SOLD
    assert header_attributes({"trace": "x", "id": "7"}) == {}
