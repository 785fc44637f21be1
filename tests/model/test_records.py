"""Events and subscriptions exist only if they are valid; the forms are those of the public API."""

import math
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidEvent, InvalidSubscription
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import predicate
from tidings.model.records import Delivery, Event, Match, Subscription, Weighted, newest_first


def event(**changes: Any) -> Event:
    given: dict[str, Any] = {"id": "e1", "attributes": {"genre": "drama"}, "published_at": 0}
    return Event(**given | changes)


def subscription(**changes: Any) -> Subscription:
    return Subscription(**{"id": "s1", "subscriber": "addison"} | changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": ""}, "an event's id is a non-empty string, not ''"),
        ({"id": 7}, "an event's id is a non-empty string, not 7"),
        ({"id": "\ud800"}, r"an event's id is text that UTF-8 can hold, not '\\ud800'"),
        ({"published_at": math.nan}, "e1: published_at: nan is not a finite number"),
        ({"published_at": None}, "e1: published_at: null is not a time"),
        ({"published_at": "soon"}, "e1: published_at: 'soon' is not a time; write RFC 3339"),
        ({"published_at": True}, "e1: published_at: True is not a time"),
        (
            {"published_at": 1_700_000_000_000},
            r"1700000000000 is outside .* use epoch \*seconds\*",
        ),
        ({"sequence": -1}, "e1: sequence is a whole number of at least 0, not -1"),
        ({"sequence": 1 << 61}, f"e1: sequence is at most {(1 << 61) - 1}, not {1 << 61}"),
        ({"sequence": 1.5}, "sequence is a whole number of at least 0, not 1.5"),
        ({"attributes": [("a", 1)]}, "e1: attributes are a mapping of names to values"),
        ({"attributes": {"": 1}}, "e1: an attribute's name is a non-empty string, not ''"),
        ({"attributes": {5: 1}}, "an attribute's name is a non-empty string, not 5"),
        ({"attributes": {"a": math.nan}}, "e1: attribute a: nan is not a finite number"),
        ({"attributes": {"a": [1, math.inf]}}, "e1: attribute a: inf is not a finite number"),
        ({"attributes": {"a": None}}, "e1: attribute a: null is not a value; omit the attribute"),
        ({"attributes": {"a": [[1]]}}, r"e1: attribute a: \[1\] is a list"),
        ({"attributes": {"a": b"x"}}, "e1: attribute a: b'x' is a bytes"),
        ({"attributes": {"a": {"b": 1}}}, "e1: attribute a: {'b': 1} is a dict"),
        ({"attributes": {"a": {"time": "soon"}}}, "e1: attribute a: 'soon' is not a time"),
    ],
)
def test_a_bad_event_is_refused_with_its_value_and_the_rule(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidEvent, match=why):
        event(**changes)


WHERE = {"where": "a = 1"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": ""} | WHERE, "a subscription's id is a non-empty string, not ''"),
        ({"subscriber": ""} | WHERE, "s1: subscriber is a non-empty string, not ''"),
        ({}, "s1: give either `where` or `any`"),
        (WHERE | {"any": [["a = 1", 1]]}, "s1: give either `where` or `any`"),
        ({"where": ""}, "s1: '' is not a condition"),
        ({"where": 5}, "s1: 5 is not a condition"),
        ({"where": "x > 5 and x < 3"}, "s1: x: low 5 is above high 3"),
        (WHERE | {"prefrank": 1.1}, "s1: prefrank is between 0 and 1, not 1.1"),
        (WHERE | {"prefrank": -0.1}, "s1: prefrank is between 0 and 1, not -0.1"),
        (WHERE | {"prefrank": math.nan}, "s1: prefrank is a finite number, not nan"),
        (WHERE | {"prefrank": True}, "s1: prefrank is a finite number, not True"),
        (WHERE | {"score": -1}, "s1: score is at least 0, not -1"),
        (WHERE | {"score": 1e101}, "s1: score is at most 1e"),
        (WHERE | {"score": math.inf}, "s1: score is a finite number, not inf"),
        (WHERE | {"score": 10**400}, "s1: score is a finite number, not an integer of"),
        (WHERE | {"score": "high"}, "s1: score is a finite number, not 'high'"),
        ({"any": []}, "s1: `any` needs at least one predicate"),
        ({"any": "a = 1"}, "s1: `any` is a list of .*, not 'a = 1'"),
        ({"any": 5}, "s1: `any` is a list of .*, not 5"),
        ({"any": ["a = 1"]}, "s1: 'a = 1' is not a weighted predicate; write"),
        ({"any": [["a = 1"]]}, r"s1: \['a = 1'\] is not a weighted predicate"),
        ({"any": [["a = 1", 1e-200]]}, "s1: 'a = 1': the weight is 0 or between 1e-50 and 1e"),
        ({"any": [["a = 1", -1]]}, "s1: 'a = 1': the weight is at least 0, not -1"),
        ({"any": [["a = 1", math.nan]]}, "s1: 'a = 1': the weight is a finite number, not nan"),
        ({"any": [["a = 1", None]]}, "s1: 'a = 1': the weight is a finite number, not None"),
        (
            {"any": [["a = 1", 1, "off"]]},
            "the state is one of 'active', 'inactive', 'dead', not 'off'",
        ),
        ({"any": [["a = 1", 1, ["dead"]]]}, r"the state is one of .*, not \['dead'\]"),
        ({"any": [["a = 1 and b = 2", 1]]}, "s1: 'a = 1 and b = 2' is more than one predicate"),
        ({"any": [["lower(a) = 'x'", 1]]}, r"s1: `lower\(a\)` is not an attribute"),
    ],
)
def test_a_bad_subscription_is_refused_with_its_value_and_the_rule(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidSubscription, match=why):
        subscription(**changes)


@pytest.mark.parametrize(("weight", "state"), [(-1, "active"), (math.nan, "active"), (1, "off")])
def test_a_weighted_predicate_is_valid_if_it_exists(weight: float, state: Any) -> None:
    with pytest.raises(InvalidSubscription):
        Weighted(predicate("a", "=", 1), weight, state)


@pytest.mark.parametrize(
    "published_at",
    [60, 60.0, np.int64(60), datetime(1970, 1, 1, 0, 1), "1970-01-01T00:01:00Z"],  # noqa: DTZ001
)
def test_every_way_to_write_a_time_is_the_same_event(published_at: Any) -> None:
    made = event(published_at=published_at)
    assert (made.published_us, made.published_at) == (60_000_000, 60)
    assert made == event(published_at=60)


def test_an_event_does_not_see_later_changes_of_what_it_was_made_from() -> None:
    attributes: dict[str, Any] = {"genre": ["drama"]}
    made = event(attributes=attributes)
    attributes["genre"].append("comedy")
    attributes["year"] = 2003
    assert made == event(attributes={"genre": ["drama"]})


@pytest.mark.parametrize(
    ("frozen", "field"),
    [
        (event(), "id"),
        (subscription(**WHERE), "prefrank"),
        (Weighted(predicate("a", "=", 1)), "weight"),
        (Match("addison", event(), 1.0, ("s1",)), "score"),
        (Delivery("addison", "e1", 1.0, 1, {}, ("s1",), 0, 0), "rank"),
    ],
)
def test_everything_is_frozen(frozen: Any, field: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(frozen, field, 0)
    assert isinstance(hash(frozen), int)


def test_ties_between_events_go_to_the_newer_then_to_the_smaller_id() -> None:
    events = [event(id=name, published_at=t) for name, t in [("b", 1), ("c", 2), ("a", 1)]]
    assert [event.id for event in sorted(events, key=newest_first)] == ["c", "a", "b"]


def test_the_form_of_an_event() -> None:
    made = event(
        attributes={"genre": ["drama"], "year": 2003, "on": datetime(2004, 2, 13, tzinfo=UTC)},
        published_at="2026-11-15T21:05:00+01:00",
    )
    form = {
        "id": "e1",
        "published_at": "2026-11-15T20:05:00Z",
        "attributes": {"genre": ["drama"], "year": 2003, "on": {"time": "2004-02-13T00:00:00Z"}},
    }
    assert made.to_dict() == form
    assert event(sequence=3).to_dict()["sequence"] == 3
    assert Event(**form) == made  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "form",
    [
        {"where": "genre = 'drama' and year >= 2003", "prefrank": 0.8},
        {"where": "(a = 1) or (b = 2)", "score": 12.5},
        {"any": [["carrier = 'AT&T'", 0.4], ["storage <= 16", 0.7, "inactive"]]},
    ],
)
def test_the_form_of_a_subscription_is_what_it_is_made_from(form: dict[str, Any]) -> None:
    assert subscription(**form).to_dict() == {"id": "s1", "subscriber": "addison"} | form


def test_the_form_of_a_match_and_of_a_delivery() -> None:
    match = Match("addison", event(), 0.9, ("s1", "s2"))
    assert match.to_dict() == {
        "subscriber": "addison",
        "event": event().to_dict(),
        "score": 0.9,
        "matched": ["s1", "s2"],
    }
    window = {"name": "continuous"}
    assert Delivery("addison", "e4", 0.9, 1, window, ("s1",), 17, 1_500_000).to_dict() == {
        "subscriber": "addison",
        "event": "e4",
        "rank": 0.9,
        "position": 1,
        "window": window,
        "matched": ["s1"],
        "sequence": 17,
        "delivered_at": "1970-01-01T00:00:01.500000Z",
    }


def test_a_condition_may_be_given_as_such() -> None:
    assert subscription(where=parse("a = 1")) == subscription(where="a = 1")


STATES = st.sampled_from(["active", "inactive", "dead"])
ENTRIES = st.lists(st.tuples(st.sampled_from(["a = 1", "b = 1"]), st.just(1), STATES), min_size=1)


@given(ENTRIES, st.sets(st.sampled_from("ab")))
def test_only_active_predicates_count(entries: list[tuple[str, int, str]], held: set[str]) -> None:
    made = subscription(any=entries)
    found = [text[0] in held for text, _, state in entries if state == "active"]
    happening = event(attributes=dict.fromkeys(held, 1))
    assert made.matches(happening) == (bool(found) and all(found))
    assert made.touches(happening) == any(found)


@pytest.mark.parametrize(
    ("attributes", "matches", "touches"),
    [
        ({"a": 1, "b": 1}, True, True),
        ({"c": 1}, True, True),
        ({"a": 1}, False, True),
        ({"a": 2}, False, False),
    ],
)
def test_a_disjunction_matches_once_and_touches_by_any_predicate(
    attributes: dict[str, Any], matches: bool, touches: bool
) -> None:
    made = subscription(where="a = 1 and b = 1 or c = 1")
    assert made.matches(event(attributes=attributes)) == matches
    assert made.touches(event(attributes=attributes)) == touches


def test_a_delivery_has_the_content_of_its_event() -> None:
    plain = Delivery("bob", "e1", 0.9, 1, {}, ("s2",), 1, 3_000_000)
    assert plain.content is None
    assert "content" not in plain.to_dict()
    assert Delivery.from_dict(plain.to_dict()) == plain
    full = replace(plain, content_json='{"title":"Big Fish"}')
    assert full.content == {"title": "Big Fish"}
    assert full.content is not full.content  # nobody can change that of another delivery
    assert full.to_dict() == plain.to_dict() | {"content": {"title": "Big Fish"}}
    assert Delivery.from_dict(full.to_dict()) == full
