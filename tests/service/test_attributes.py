"""The attributes of recent publications: counted, named and written as conditions need them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.records import Event, Subscription
from tidings.model.values import Range
from tidings.service.attributes import AttributeQuery, RecentAttributes, SeenAttributes
from tidings.service.recent_publications import RecentPublications
from tidings.store import EngineStep, Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.publications import NewPublication

VALUES = ["drama", "Dramedy", "it's", "1", 1, 2.5, True, "x" * 100, "x" * 101]
drawn_events = st.lists(
    st.dictionaries(st.sampled_from(["genre", "year", "select"]), st.sampled_from(VALUES)),
    max_size=15,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


def seen(*attributes: dict[str, Any]) -> SeenAttributes:
    return SeenAttributes([Event(f"e{n}", values, n) for n, values in enumerate(attributes)])


def values_of(form: dict[str, Any]) -> dict[str, int]:
    return {value["written"]: value["publications"] for value in form["values"]}


@given(drawn_events)
def test_attributes_and_values_are_counted_by_publication(events: list[dict[str, Any]]) -> None:
    found = seen(*events).find(AttributeQuery(limit=100))
    names = Counter(name for event in events for name in event)
    assert {form["name"]: form["publications"] for form in found} == dict(names)
    assert [form["publications"] for form in found] == sorted(names.values(), reverse=True)
    for form in found:
        values = Counter(
            (type(event[form["name"]]) is bool, event[form["name"]])
            for event in events
            if form["name"] in event
        )
        assert form["distinct"] == len(values)
        assert sum(values_of(form).values()) == sum(
            count for (_, value), count in values.items() if value != "x" * 101
        )


@given(drawn_events)
def test_names_and_values_are_written_as_conditions_read_them(
    events: list[dict[str, Any]],
) -> None:
    for form in seen(*events).find(AttributeQuery(limit=100)):
        for value in form["values"]:
            where = f"{form['written']} = {value['written']}"
            subscription = Subscription("s", "u", where=where)
            matches = [subscription.matches(Event("e", event, 0)) for event in events]
            assert sum(matches) == value["publications"]


def test_the_most_frequent_come_first_and_ties_in_order() -> None:
    events = [{"g": value} for value in ("b", "a", "c", "c", 2, 10)]
    [form] = seen(*events).find(AttributeQuery())
    assert form["values"][0] == {"written": "'c'", "publications": 2}
    assert [value["written"] for value in form["values"]] == ["'c'", "10", "2", "'a'", "'b'"]
    assert form["types"] == ["number", "string"]


@pytest.mark.parametrize(
    ("contains", "found"),
    [
        ("", {"'Drama'", "'Dramedy'", "'comedy'"}),
        ("RAM", {"'Drama'", "'Dramedy'"}),
        ("edy", {"'Dramedy'", "'comedy'"}),
        ("'c", {"'comedy'"}),
        ("x", set()),
    ],
)
def test_values_that_contain_a_text_are_listed(contains: str, found: set[str]) -> None:
    attributes = seen({"g": "Drama"}, {"g": "Dramedy"}, {"g": "comedy"})
    [form] = attributes.find(AttributeQuery("g", contains))
    assert {*values_of(form)} == found
    assert form["distinct"] == 3


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_at_most_so_many_values_are_listed(limit: int) -> None:
    [form] = seen({"n": 1}, {"n": 2}, {"n": 3}).find(AttributeQuery("n", limit=limit))
    assert len(form["values"]) == min(limit, 3)
    assert form["distinct"] == 3


def test_an_attribute_that_nobody_has_is_not_found() -> None:
    assert seen({"n": 1}).find(AttributeQuery("m")) == []
    assert seen().find(AttributeQuery()) == []
    assert seen().events == 0


def test_prose_and_ranges_are_counted_and_not_listed() -> None:
    [form] = seen({"t": "x" * 101}, {"t": "short"}, {"t": Range(1, 2)}).find(AttributeQuery("t"))
    assert values_of(form) == {"'short'": 1}
    assert (form["publications"], form["distinct"]) == (3, 3)


def test_names_that_are_words_of_sql_are_quoted() -> None:
    [form] = seen({"select": 1}).find(AttributeQuery())
    assert (form["name"], form["written"]) == ("select", '"select"')


def test_each_value_of_a_list_counts() -> None:
    [form] = seen({"g": ["a", "b"]}, {"g": "a"}).find(AttributeQuery())
    assert values_of(form) == {"'a'": 2, "'b'": 1}
    assert form["publications"] == 2


def test_they_are_counted_again_only_after_a_step(store: Store) -> None:
    attributes = RecentAttributes(RecentPublications(store, 10))
    first = attributes.seen()
    assert first.events == 0
    assert attributes.seen() is first
    store.publications.accept([NewPublication(Event("e", {"n": 1}, 1))], 1)
    assert attributes.seen() is first  # not processed yet
    store.log.append(EngineStep(1, None, 0, 1), BatchAppend.of("q", 1, [], late=[], dead=[]))
    second = attributes.seen()
    assert second.events == 1
    assert attributes.seen() is second
