"""Examples: deliveries that one policy made and another did not, from those who differ most."""

from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.recordings import POLICIES, small_comparison

from tidings.lab import compare
from tidings.lab.comparison import Comparison
from tidings.lab.examples import (
    EACH,
    PEOPLE,
    _difference,
    _most_different,
    _only,
    shown_attributes,
    title,
)
from tidings.lab.variants import Variant
from tidings.model.records import Event

Rows = dict[str, dict[str, Any]]


@cache
def comparison() -> Comparison:
    return small_comparison()


def delivered(policy: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = comparison().delivered_by(policy).to_pylist()
    return {(row["subscriber"], row["event"]): row for row in rows}


def test_an_example_was_delivered_by_one_policy_and_not_by_the_other() -> None:
    examples = comparison().examples
    assert examples
    for example in examples:
        key = (example.subscriber, example.event)
        row = delivered(example.delivered_by)[key]
        assert key not in delivered(example.not_by)
        assert example.score == row["score"]
        assert example.why
        assert example.published_at <= example.delivered_at


def test_the_first_policy_is_compared_with_each_other_one() -> None:
    first, *others = POLICIES
    pairs = {(example.delivered_by, example.not_by) for example in comparison().examples}
    assert {name for pair in pairs for name in pair} - {first} == {*others}
    assert all(first in pair for pair in pairs)


def test_each_direction_has_a_few_examples_of_one_person_the_best_first() -> None:
    by_pair = dict[tuple[str, str], list[Any]]()
    for example in comparison().examples:
        by_pair.setdefault((example.delivered_by, example.not_by), []).append(example)
    for (by, not_by), examples in by_pair.items():
        assert len(examples) <= EACH
        people = {example.subscriber for example in examples}
        people |= {example.subscriber for example in by_pair.get((not_by, by), [])}
        assert len(people) == 1
        scores = [example.score for example in examples]
        assert scores == sorted(scores, reverse=True)
        [name] = people
        others = [
            row["score"]
            for key, row in delivered(by).items()
            if key[0] == name and key not in delivered(not_by)
        ]
        assert scores == sorted(others, reverse=True)[: len(scores)]


@pytest.mark.parametrize("policies", [{"one": {"k": 3}}, {"one": {"k": 3}, "same": {"k": 3}}])
def test_policies_that_do_not_differ_have_no_examples(policies: dict[str, Any]) -> None:
    events = [{"id": f"e{n}", "published_at": n, "attributes": {"n": n}} for n in range(4)]
    subscriptions = [{"id": "s", "subscriber": "ada", "where": "n >= 0"}]
    assert list(compare(events, subscriptions, policies).examples) == []


def test_an_example_shows_what_its_subscriptions_look_at() -> None:
    events = [
        {
            "id": f"e{n}",
            "published_at": n,
            "attributes": {f"x{m}": n for m in range(9)} | {"wanted": n},
            "content": {"title": f"Film {n}"},
        }
        for n in range(3)
    ]
    subscriptions = [{"id": "s", "subscriber": "ada", "where": "wanted >= 0"}]
    policies: dict[str, Any] = {"some": {"k": 1, "rules": [{"name": "quota", "n": 1}]}, "all": {}}
    [*examples] = compare(events, subscriptions, policies).examples
    assert {example.delivered_by for example in examples} == {"all"}
    for example in examples:
        assert next(iter(example.attributes)) == "wanted"
        assert len(example.attributes) == 5
        assert example.title == f"Film {example.event[1:]}"
        assert "quota" in example.why


deliveries = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from("uvwxy"), st.sampled_from("123")),
    unique=True,
)


@given(deliveries)
def test_the_most_different_people_have_most_that_only_some_policies_delivered(
    rows: list[tuple[str, str, str]],
) -> None:
    variants = [Variant("a"), Variant("b")]
    table = pa.Table.from_pylist(
        [dict(zip(("policy", "subscriber", "event"), row, strict=True)) for row in rows],
        pa.schema({"policy": pa.string(), "subscriber": pa.string(), "event": pa.string()}),
    )
    counts = {
        name: sum((("a", name, event) in rows) != (("b", name, event) in rows) for event in "123")
        for name in "uvwxy"
    }
    different = [name for name in counts if counts[name]]
    expected = sorted(different, key=lambda name: (-counts[name], name))[:PEOPLE]
    assert _most_different(variants, table) == expected


def rows(*events: tuple[str, float]) -> Rows:
    return {name: {"event": name, "score": score, "delivered_at": 0} for name, score in events}


def test_what_only_one_has_comes_best_first_and_ties_by_time_and_id() -> None:
    mine = rows(("b", 0.5), ("c", 0.9), ("a", 0.5), ("d", 0.1))
    mine["d"]["score"] = 0.5
    mine["d"]["delivered_at"] = -1
    assert [row["event"] for row in _only(mine, rows(("c", 0.9)))] == ["d", "a", "b"]
    assert _only(mine, mine) == []


@pytest.mark.parametrize(
    ("first", "second", "weight"),
    [
        ([], [], (0, 0)),
        (["a", "b"], [], (0, 2)),
        (["a", "b"], ["c"], (1, 3)),
        (["a", "b", "c", "d"], ["e", "f", "g", "h"], (3, 8)),
    ],
)
def test_differences_in_both_directions_count_most(
    first: list[str], second: list[str], weight: tuple[int, int]
) -> None:
    by_owner = {
        ("one", "ada"): rows(*((name, 0.5) for name in [*first, "same"])),
        ("two", "ada"): rows(*((name, 0.5) for name in [*second, "same"])),
    }
    found = _difference(by_owner, (Variant("one"), Variant("two")), "ada")
    assert found.weight == weight
    assert _difference(by_owner, (Variant("one"), Variant("two")), "bob").weight == (0, 0)


@pytest.mark.parametrize(
    ("attributes", "content", "expected"),
    [
        ({"title": "A"}, {"title": "B"}, "B"),
        ({"title": "A"}, {"text": "B"}, "A"),
        ({"name": "A", "title": "B"}, None, "B"),
        ({"subject": "A", "headline": "B"}, None, "B"),
        ({"title": 7, "name": "A"}, None, "A"),
        ({"n": 1}, None, None),
        ({}, {}, None),
    ],
)
def test_a_title_is_looked_for_in_the_content_first(
    attributes: dict[str, Any], content: dict[str, Any] | None, expected: str | None
) -> None:
    assert title(Event("e", attributes, 0, content=content)) == expected


def test_some_attributes_are_shown_the_wanted_ones_first() -> None:
    event = Event("e", {name: number for number, name in enumerate("gfedcba")} | {"title": "T"}, 0)
    assert [*shown_attributes(event)] == ["g", "f", "e", "d", "c"]
    assert [*shown_attributes(event, {"a", "b", "missing"})] == ["a", "b", "g", "f", "e"]
    assert [*shown_attributes(event, {"title"})] == ["g", "f", "e", "d", "c"]
    assert shown_attributes(Event("e", {"a": [1, 2], "b": True}, 0)) == {"a": [1, 2], "b": True}
