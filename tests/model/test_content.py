"""Content is copied as plain JSON, and everything else is refused with its place."""

import json
from collections import UserDict
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Event
from tidings.errors import InvalidEvent
from tidings.model.content import read_content

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=4))
def test_any_json_object_travels_unchanged(content: dict[str, Any]) -> None:
    event = Event("e1", {}, 0, content=content)
    assert event.content == content
    assert event.content_json is not None
    assert json.loads(event.content_json) == content
    assert list(json.loads(event.content_json)) == list(content)  # names keep their order
    assert Event.from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert event.carrying(None) == Event("e1", {}, 0)
    assert event.carrying(None).carrying(event.content_json) == event


def test_content_is_a_copy() -> None:
    tags, content = ["new"], dict[str, Any]()
    content |= {"tags": tags, "title": "Big Fish"}
    event = Event("e1", {}, 0, content=content)
    tags.append("old")
    content["title"] = "Small Fish"
    assert event.content == {"tags": ["new"], "title": "Big Fish"}
    assert event.to_dict()["content"] is not event.content


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (Decimal("9.50"), 9.5),
        ((1, 2), [1, 2]),
        (UserDict({"a": 1}), {"a": 1}),
        (datetime(2026, 11, 15, 20, 5, tzinfo=UTC), "2026-11-15T20:05:00Z"),
        (date(2026, 11, 15), "2026-11-15T00:00:00Z"),
        (np.datetime64("2026-11-15"), "2026-11-15T00:00:00Z"),
    ],
)
def test_values_of_other_types_become_json(value: object, plain: object) -> None:
    content = read_content("event e1", {"in": {"it": value}}, InvalidEvent)
    assert content.fields == json.loads(content.text) == {"in": {"it": plain}}
    assert type(content.fields["in"]["it"]) is type(plain)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (5, "event e1: content is an object with named fields, not 5"),
        ('{"a": 1}', "content is an object with named fields, not '"),
        ([1], r"content is an object with named fields, not \[1\]"),
        ({1: 2}, "event e1: content: the name of a field is a string, not 1"),
        ({"a": {None: 2}}, "event e1: content: a: the name of a field is a string, not None"),
        ({"a": [{"b": float("nan")}]}, "event e1: content: a: b: nan is not a finite number"),
        ({"a": float("inf")}, "content: a: inf is not a finite number"),
        ({"a": {1, 2}}, r"content: a: \{1, 2\} is a set; a value is"),
        ({"a": object()}, "content: a: <object object at .* is a object"),
        ({"a": "\ud800"}, "content has text that UTF-8 cannot hold"),
        ({"\ud800": 1}, "content has text that UTF-8 cannot hold"),
        ({"a": "x" * 16_000_000}, "above the limit record_bytes"),
    ],
)
def test_other_content_is_refused(content: Any, reason: str) -> None:
    with pytest.raises(InvalidEvent, match=reason) as refusal:
        Event("e1", {}, 0, content=content)
    assert len(str(refusal.value).encode()) <= 1000


def test_deep_content_is_refused() -> None:
    deep, itself = list[Any](), list[Any]()
    itself.append(itself)
    for _ in range(100):
        deep = [deep]
    for part in (deep, itself):
        with pytest.raises(InvalidEvent, match="its nesting is 65, above the limit nesting = 64"):
            Event("e1", {}, 0, content={"a": part})


def test_attributes_can_be_shown_and_need_not_stay_attributes() -> None:
    values = {"title": "Big Fish", "tags": ["new"], "from": datetime(2026, 11, 15, tzinfo=UTC)}
    event = Event("e1", values, 1, content={"title": "Fish"})
    assert event.tokens.keys() == values.keys()
    names = ["published_at", "from", "tags", "title", "missing"]
    shown = event.showing(names, hidden=["tags", "missing"])
    assert shown.content == {
        "published_at": "1970-01-01T00:00:01Z",
        "from": "2026-11-15T00:00:00Z",
        "tags": ["new"],
        "title": "Fish",  # what an event says itself goes first
    }
    assert shown.attributes.keys() == shown.tokens.keys() == {"title", "from"}
    assert event.showing(names).attributes == event.attributes
    assert event.showing(["missing"]) is event
