"""Sample deliveries: of a default, of given content, or of the first events of a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tidings.channels.samples import SAMPLE, sample_deliveries, sample_delivery
from tidings.errors import InvalidForm
from tidings.model.records import Delivery


def content_of(delivery: Delivery) -> Any:
    assert delivery.content_json is not None
    return json.loads(delivery.content_json)


def lines(folder: Path, *texts: str) -> Path:
    path = folder / "events.jsonl"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_the_default_has_what_a_card_shows() -> None:
    delivery = sample_delivery()
    assert content_of(delivery) == SAMPLE
    assert (delivery.subscriber, delivery.event, delivery.sequence) == ("you", "sample", 1)
    assert delivery.matched == ("an-interest",)
    assert sample_deliveries(None, 5) == [delivery]


def test_content_is_shown_as_it_is() -> None:
    delivery = sample_delivery({"title": "Größe", "n": 1.5}, "e7", 3)
    assert content_of(delivery) == {"title": "Größe", "n": 1.5}
    assert (delivery.event, delivery.sequence) == ("e7", 3)


@pytest.mark.parametrize("content", [[1], "text", 7, {"a": float("nan")}])
def test_content_that_is_none_is_refused(content: object) -> None:
    with pytest.raises(InvalidForm, match=r"^a sample: content"):
        sample_delivery(content)


def test_the_first_events_of_a_file_are_shown(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        '{"id": "a", "content": {"title": "A"}, "attributes": {"n": 1}}',
        "",
        '{"id": 7, "attributes": {"n": 2}}',
        '{"title": "C"}',
        '{"id": "d", "content": {}, "attributes": {}}',
        "this is not read",
    )
    found = sample_deliveries(path, 4)
    assert [delivery.event for delivery in found] == ["a", "7", "event-3", "d"]
    assert [delivery.sequence for delivery in found] == [1, 2, 3, 4]
    assert [content_of(delivery) for delivery in found] == [
        {"title": "A"},
        {"n": 2},
        {"title": "C"},
        {"id": "d", "content": {}, "attributes": {}},
    ]
    assert sample_deliveries(path, 2) == found[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no event to show"),
        ("\n\n", "there is no event to show"),
        ("[1]", "line 1: an event must be an object, not [1]"),
        ('\n{"id": ""}', "line 2: `id` is a non-empty string, not ''"),
        ('{"id": true}', "line 1: `id` is a non-empty string, not True"),
        ('{"a": 1, "a": 2}', "line 1: the name 'a' occurs twice in an object"),
    ],
)
def test_a_wrong_event_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = lines(tmp_path, text)
    with pytest.raises(InvalidForm) as error:
        sample_deliveries(path, 3)
    assert str(error.value) == f"{path}: {message}"


def test_an_event_that_is_too_long_is_none(tmp_path: Path) -> None:
    path = lines(tmp_path, json.dumps({"id": "a", "x": "y" * 1_000_001}))
    with pytest.raises(InvalidForm, match="line 1: an event must be an object, not None"):
        sample_deliveries(path, 3)
