"""Profiles of events: which predicates can never hold, and what may be meant instead."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings import Event, Range
from tidings.model import profile as module
from tidings.model.conditions.parser import parse_predicate
from tidings.model.profile import Profile

FLIGHTS = [
    {
        "dest": "MIA",
        "carrier": ["AA", "B6"],
        "distance": 1089,
        "departs": datetime(2013, 1, 1, 5, tzinfo=UTC),
    },
    {
        "dest": "ORD",
        "carrier": "UA",
        "distance": 733.0,
        "departs": datetime(2013, 1, 2, 6, tzinfo=UTC),
    },
]
BOUNDS = "between 2013-01-01T05:00:00Z and 2013-01-02T06:00:00Z"


def profile_of(*attributes: dict[str, Any]) -> Profile:
    profile = Profile()
    for number, values in enumerate(attributes):
        profile.add(Event(f"e{number}", values, published_at=number))
    return profile


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("dest = 'MIA'", None),
        ("carrier = 'B6'", None),
        ("distance between 1000 and 1100", None),
        ("dst = 'MIA'", "no event has the attribute dst; did you mean dest?"),
        ("Dest = 'MIA'", "no event has the attribute Dest; did you mean dest?"),
        ("price > 5", "no event has the attribute price"),
        ("dest = 5", "dest holds strings, not numbers; write dest = '5'"),
        ("distance > '500'", "distance holds numbers, not strings; write distance > 500"),
        ("distance in ('1', '2')", "distance holds numbers, not strings; write distance in (1, 2)"),
        ("distance like '5%'", "distance holds numbers, not strings"),
        (
            "departs > '2013-01-01'",
            "departs holds times, not strings; write departs > timestamp '2013-01-01T00:00:00Z'",
        ),
        ("dest = 'MIAA'", "no event has such a value; did you mean 'MIA'?"),
        ("dest = 'mia'", "no event has such a value; did you mean 'MIA'?"),
        ("dest = 'Berlin'", "no event has such a value"),
        ("distance > 3000", "no event has such a value; distance is between 733 and 1089"),
        ("departs > date '2014-01-01'", f"no event has such a value; departs is {BOUNDS}"),
    ],
)
def test_advice(condition: str, advice: str | None) -> None:
    assert profile_of(*FLIGHTS).advice(parse_predicate(condition)) == advice


def test_only_types_are_compared_where_only_types_are_known() -> None:
    profile = Profile.of_types({"dest": "string", "distance": "number"})
    assert profile.advice(parse_predicate("dest = 'anything'")) is None
    assert profile.advice(parse_predicate("distance > 1e9")) is None
    assert (
        profile.advice(parse_predicate("dest = 5"))
        == "dest holds strings, not numbers; write dest = '5'"
    )


def test_above_the_number_of_kept_values_only_bounds_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 2)
    profile = profile_of(*({"x": number, "s": str(number)} for number in range(4)))
    assert profile.advice(parse_predicate("x = 2.5")) is None
    assert (
        profile.advice(parse_predicate("x > 3"))
        == "no event has such a value; x is between 0 and 3"
    )
    assert profile.advice(parse_predicate("s = '9'")) is None


def test_unknown_attributes_are_not_reported_above_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_ATTRIBUTES", 1)
    profile = profile_of({"a": 1}, {"b": 2})
    assert profile.advice(parse_predicate("b = 2")) is None


def test_a_range_stands_for_values_within_its_bounds() -> None:
    profile = profile_of({"hours": Range(20, 30)})
    assert profile.advice(parse_predicate("hours = 25")) is None
    assert profile.advice(parse_predicate("hours > 40")) is not None


VALUES = st.one_of(st.integers(0, 3), st.sampled_from(["", "a", "ab", "b"]), st.booleans())
EVENTS = st.lists(
    st.dictionaries(st.sampled_from(["x", "y"]), VALUES | st.lists(VALUES, min_size=1, max_size=2)),
    max_size=4,
)
CONDITIONS = st.sampled_from(
    (
        *("x = 1", "x > 1", "x between 1 and 2", "x != 1", "x = 'a'", "x like 'a%'"),
        *("x like '%b'", "x in ('a', 'b')", "x != 'a'", "x > 'a'", "y = true", "y != true"),
        "z = 1",
    )
)


@given(EVENTS, CONDITIONS)
def test_advice_is_given_if_and_only_if_no_event_satisfies_the_predicate(
    attributes: list[dict[str, Any]], condition: str
) -> None:
    part = parse_predicate(condition)
    events = [Event(f"e{n}", values, published_at=n) for n, values in enumerate(attributes)]
    profile = Profile()
    for event in events:
        profile.add(event)
    may_hold = any(part.holds(event.tokens) for event in events) or not any(attributes)
    assert (profile.advice(part) is None) == may_hold


@given(EVENTS, EVENTS, CONDITIONS)
def test_a_merged_profile_is_that_of_all_events(
    first: list[dict[str, Any]], second: list[dict[str, Any]], condition: str
) -> None:
    whole, merged = profile_of(*first, *second), profile_of(*first)
    merged.merge(profile_of(*second))
    assert merged.events == whole.events
    assert merged.advice(parse_predicate(condition)) == whole.advice(parse_predicate(condition))


@given(EVENTS, EVENTS, st.integers(3, 12))
@example([], [{"x": 0, "y": 0}, {"y": 1, "x": 1}], 3)  # near the limit, in another order
@example([], [{"x": ["a", "b"], "y": 0}, {"y": 1, "x": ["a", "c"]}], 3)
def test_events_that_are_added_together_are_added_as_one_by_one(
    first: list[dict[str, Any]], second: list[dict[str, Any]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_VALUES", 2)
        patch.setattr(module, "MOST_KEPT", most)
        whole, together = profile_of(*first, *second), Profile()
        for part in (first, second):
            together.add_sample([Event("e", values, published_at=0) for values in part])
    assert together.events == whole.events
    assert together.attributes == whole.attributes
    assert [*together.attributes] == [*whole.attributes]


def test_of_many_events_the_names_are_all_read_and_the_values_are_a_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FULLY_READ", 2)
    monkeypatch.setattr(module, "ONE_IN", 3)
    profile = Profile()
    profile.add_sample(
        [Event(f"e{n}", {"n": n, f"only{n}": "x"}, published_at=n) for n in range(8)]
    )
    assert profile.events == 8
    read = [n for n in range(8) if profile.flaw(parse_predicate(f"n = {n}")) is None]
    assert read == [0, 1, 3, 6]
    assert [profile.flaw(parse_predicate(f"only{n} = 5")) for n in (0, 2)] == ["type", None]
    assert profile.flaw(parse_predicate("only9 = 5")) == "attribute"


def test_a_profile_keeps_a_bounded_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 10)
    profile = profile_of(*({f"a{n}": f"v{n}", f"b{n}": f"v{n}"} for n in range(20)))
    kept = [values.distinct for types in profile.attributes.values() for values in types.values()]
    assert sum(len(values) for values in kept if values is not None) == 10
    assert profile.flaw(parse_predicate("a0 = 'no'")) == "value"
    assert profile.flaw(parse_predicate("a19 = 'no'")) is None  # its values are not kept


def test_swapped_letters_are_the_closest() -> None:
    profile = profile_of(*({"dest": text} for text in ("OMA", "MIA", "MCI", "AAA")))
    assert profile.hint(parse_predicate("dest = 'MAI'"), "value") == "did you mean 'MIA'?"


def test_prose_is_not_kept() -> None:
    assert profile_of({"text": "x" * 200}).flaw(parse_predicate("text = 'y'")) is None


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("open = 'true'", "open holds booleans, not strings; write open = true"),
        ("open = 1", "open holds booleans, not numbers; write open = true"),
        ("open = 2", "open holds booleans, not numbers"),
        ("\"has space\" > '5'", '"has space" > 5'),
        ("\"has space\" between '5' and '7'", '"has space" between 5 and 7'),
        ("word > 5 and word <= 7", "word holds strings, not numbers"),
        ("word > 5", "word holds strings, not numbers; write word > '5'"),
        ("word = 0.1", "word holds strings, not numbers; write word = '0.1'"),
        ("word > date '2013-01-01'", "word holds strings, not times"),
        ("id = 'x'", "no event has the attribute id; the id of an event is not an attribute"),
    ],
)
def test_advice_on_types(condition: str, advice: str) -> None:
    profile = profile_of({"open": True, "has space": 3, "word": "x"})
    assert advice in str(profile.advice(parse_predicate(condition)))
