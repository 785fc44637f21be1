"""Ranges and probabilities (RPS, future work): values of which not all is known."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Engine, Event, InvalidEvent, Range, Subscription, TidingsError, loads_event
from tidings.formats.arrow import events_to_table
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import predicate

NUMBERS = st.integers(0, 4)
CONDITIONS = st.one_of(
    st.builds("x {} {}".format, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), NUMBERS),
    st.builds(
        lambda a, b: f"x between {min(a, b)} and {max(a, b)}",
        NUMBERS,
        NUMBERS,
    ),
    st.lists(NUMBERS, min_size=1).map(lambda found: f"x in ({', '.join(map(str, found))})"),
)


def holds(text: str, value: object) -> bool:
    return parse(text).holds(Event("e", {"x": value}, published_at=0).tokens)


@given(CONDITIONS, NUMBERS, NUMBERS)
def test_overlaps_is_some_value_and_contained_is_every_value(text: str, a: int, b: int) -> None:
    """Between whole numbers a predicate over whole numbers does not change: quarters tell all."""
    low, high = min(a, b), max(a, b)
    points = [holds(text, low + step / 4) for step in range(4 * (high - low) + 1)]
    assert holds(text, Range(low, high)) == any(points)
    assert holds(text, Range(low, high, mode="contained")) == all(points)


def test_a_range_of_times_is_compared_with_times_only() -> None:
    march = Range(datetime(2003, 3, 1, tzinfo=UTC), datetime(2003, 3, 31, tzinfo=UTC))
    assert holds("x >= date '2003-03-15'", march)
    assert not holds("x >= date '2003-04-01'", march)
    assert not holds("x >= 0", march)


def test_a_range_is_some_value_of_a_list() -> None:
    assert holds("x = 7", [1, Range(5, 9)])


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"range": [3, 2]}, "low 3 is above its high 2"),
        ({"range": [1]}, "a low and a high, not \\[1\\]"),
        ({"range": ["a", "b"]}, "from a number or time to another"),
        ({"range": [1, {"time": "2003-01-01"}]}, "from a number or time to another"),
        ({"range": [1, 2], "mode": "near"}, "'overlaps' or 'contained', not 'near'"),
        ({"range": [1, float("nan")]}, "nan is not a finite number"),
    ],
)
def test_a_bad_range_is_refused(form: object, why: str) -> None:
    with pytest.raises(InvalidEvent, match=why):
        Event("e", {"x": form}, published_at=0)


def test_a_condition_has_no_ranges() -> None:
    with pytest.raises(TidingsError, match="is for events; write `between`"):
        predicate("x", "=", Range(1, 2))


def test_ranges_and_probabilities_come_back_from_their_forms() -> None:
    values = {"x": Range(1, 2.5), "y": Range(3, 4, mode="contained"), "z": 5}
    event = Event("e", values, published_at=0, probabilities={"z": 0.5})
    again = loads_event(event.to_dict())
    assert again == event
    assert again.tokens == event.tokens
    assert event.to_dict()["attributes"]["y"] == {"range": [3, 4], "mode": "contained"}


@pytest.mark.parametrize(
    ("probabilities", "why"),
    [
        ({"x": 1.5}, "the probability of x is between 0 and 1, not 1.5"),
        ({"y": 0.5}, "there is no attribute 'y'"),
    ],
)
def test_a_bad_probability_is_refused(probabilities: dict[str, float], why: str) -> None:
    with pytest.raises(InvalidEvent, match=why):
        Event("e", {"x": 1}, published_at=0, probabilities=probabilities)


def test_probabilities_weigh_relaxed_matching_alone() -> None:
    engine = Engine()
    engine.add(Subscription("s", "a", any=[["x = 1", 4], ["y = 1", 1]], score=3))
    event = Event("e", {"x": 1, "y": 1}, published_at=0, probabilities={"x": 0.25})
    assert engine.target(event, scorer="relaxed") == [("s", 2.0)]
    assert engine.target(event, scorer="exact") == [("s", 3.0)]


def test_columns_refuse_what_they_cannot_hold() -> None:
    with pytest.raises(TidingsError, match="event e has ranges or probabilities; use JSON Lines"):
        events_to_table([Event("e", {"x": Range(1, 2)}, published_at=0)])
