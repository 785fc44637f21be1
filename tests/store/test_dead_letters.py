"""Letters in an SQLite file: kept in order of arrival, taken once, given back."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidings import BadRecord, DeadLetter, Event
from tidings.errors import StoreError, TidingsError
from tidings.store import Store, StoredLetter, open_store
from tidings.store.dead_letters import DeadLetters, LetterRow, dead_letter, late_letter
from tidings.store.publications import NewPublication


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tidings.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def letters(store: Store) -> DeadLetters:
    """Return five dead letters of two batches, and two late ones between them."""
    late = [DeadLetter("x", "late"), DeadLetter("y", "late")]
    store.notifications.append("q", 0, late=late, dead=[DeadLetter(n, "bad") for n in range(3)])
    store.notifications.append("q", 1, dead=[DeadLetter(n, "bad") for n in range(3, 5)])
    return store.letters


def records(found: list[StoredLetter]) -> list[Any]:
    return [letter.record for letter in found]


def test_each_kind_is_listed_in_order_of_arrival(letters: DeadLetters) -> None:
    assert records(letters.page("dead")) == [0, 1, 2, 3, 4]
    assert records(letters.page("late")) == ["x", "y"]
    assert [letter.batch for letter in letters.page("dead")] == [0, 0, 0, 1, 1]


def test_a_page_continues_after_an_id(letters: DeadLetters) -> None:
    first = letters.page("dead", limit=2)
    second = letters.page("dead", after=first[-1].id, limit=2)
    assert (records(first), records(second)) == ([0, 1], [2, 3])
    assert letters.page("dead", after=10**6) == []


def test_the_oldest_waiting_letters_are_taken_first(letters: DeadLetters) -> None:
    assert records(letters.take("dead", at=1, limit=3)) == [0, 1, 2]
    assert records(letters.take("dead", at=2, limit=3)) == [3, 4]
    assert letters.take("dead", at=3) == []
    assert records(letters.take("late", at=4)) == ["x", "y"]


def test_taken_letters_are_marked_with_the_time(letters: DeadLetters) -> None:
    (taken,) = letters.take("dead", at="1970-01-01T00:00:07Z", limit=1)
    assert taken.taken_us == 7_000_000
    assert letters.page("dead", limit=1) == [taken]
    assert taken.to_dict() == {
        "id": taken.id,
        "kind": "dead",
        "record": 0,
        "reason": "bad",
        "query": "q",
        "batch": 0,
        "taken_at": "1970-01-01T00:00:07Z",
    }


def test_counts_are_of_waiting_or_of_taken_letters(letters: DeadLetters) -> None:
    letters.take("dead", at=1, limit=2)
    assert letters.count("dead") == 3
    assert letters.count("dead", taken=True) == 2
    assert letters.count("late") == 2
    assert letters.count("late", taken=True) == 0


def test_only_taken_letters_can_be_given_back(letters: DeadLetters) -> None:
    taken = [letter.id for letter in letters.take("dead", at=1, limit=2)]
    waiting = [letter.id for letter in letters.page("dead")[2:]]
    assert letters.give_back([]) == 0
    assert letters.give_back([*waiting, 10**6]) == 0
    assert letters.give_back([taken[0], taken[0]]) == 1
    assert letters.page("dead")[0].taken_us is None
    assert records(letters.take("dead", at=2, limit=1)) == [0]


def test_a_retry_under_the_same_ticket_returns_the_same_letters(
    letters: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidings.store.dead_letters.uuid4", lambda: SimpleNamespace(hex="one ticket")
    )
    first = letters.take("dead", at=1, limit=2)
    assert letters.take("dead", at=5, limit=2) == first
    letters.give_back([letter.id for letter in first])
    assert [letter.taken_us for letter in letters.take("dead", at=5, limit=2)] == [5_000_000] * 2


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("page", ("lost",)),
        ("count", ("lost",)),
        ("take", ("lost", 0)),
        ("page", ("dead", -1)),
        ("page", ("dead", 0, 0)),
        ("take", ("dead", 0, 0)),
        ("take", ("dead", "soon")),
        ("give_back", ([-1],)),
    ],
)
def test_wrong_arguments_are_refused(
    letters: DeadLetters, verb: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(TidingsError):
        getattr(letters, verb)(*arguments)
    assert letters.count("dead") == 5


def test_an_unknown_kind_is_refused_with_the_known_ones(letters: DeadLetters) -> None:
    with pytest.raises(StoreError, match="the kind of a letter is one of 'late', 'dead', not 3"):
        letters.count(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["{", "", '{"a": NaN}'])
def test_a_damaged_record_is_shown_beside_the_others(
    letters: DeadLetters, path: Path, text: str
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE letters SET record = ? WHERE record = '1'", (text,))
    assert records(letters.page("dead")) == [0, {"damaged": repr(text)}, 2, 3, 4]


def test_a_late_event_has_the_reason_of_all_late_events() -> None:
    event = Event("e1", {"n": 1}, 0)
    row = late_letter(event)
    assert (row.kind, row.reason) == ("late", "published before the watermark")
    assert json.loads(row.record) == event.to_dict()
    assert late_letter(DeadLetter({"id": "e1"}, "too old")) == LetterRow(
        "late", '{"id": "e1"}', "too old"
    )


def test_any_record_becomes_json_and_any_reason_text() -> None:
    row = dead_letter(BadRecord({"x": float("inf"), "y": {1, 2}}, "half of \ud83d", 7))
    assert row.kind == "dead"
    assert json.loads(row.record)["x"] == "inf"
    assert row.reason == "half of \\ud83d"


def test_events_are_published_again_as_of_now_in_one_transaction(store: Store) -> None:
    event = Event("e1", {"genre": "drama"}, published_at=5, content={"title": "Big Fish"})
    store.publications.accept([NewPublication(event)], now_us=7)
    letters = [DeadLetter(event, "late"), DeadLetter({"number": 4}, "damaged"), DeadLetter(3, "x")]
    store.notifications.append("q", 0, dead=letters)
    ids = [letter.id for letter in store.letters.page("dead")]
    done = store.letters.publish_again([*ids, 99], now_us=9_000_000)
    assert (done.published, sorted(done.refused)) == (1, [*ids[1:], 99])
    assert "it is not an event" in done.refused[ids[1]]
    [first, second] = [
        json.loads(publication.form or "") for publication in store.publications.after(0)
    ]
    assert first["published_at"] == "1970-01-01T00:00:05Z"
    assert second == {**first, "published_at": "1970-01-01T00:00:09Z"}
    assert store.publications.numbers(["e1"]) == [2]
    assert records(store.letters.page("dead", waiting=True)) == [{"number": 4}, 3]
    again = store.letters.publish_again(ids[:1], now_us=10_000_000)
    assert again == (0, {ids[0]: "there is no waiting letter with this id"})
    assert store.publications.accept([NewPublication(event)], 11_000_000) == [False]
