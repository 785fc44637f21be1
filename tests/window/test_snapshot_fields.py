"""Fields of a snapshot are read with checks, and refused by their name."""

import math

import pytest

from tidings.errors import InvalidForm, TidingsError
from tidings.model.records import LAST_SEQUENCE, Event, Match
from tidings.window import snapshot_fields

MATCH = Match("u", Event("e", {"genre": "drama"}, 3, 7), 0.5, ("s", "t"))


def test_a_field_is_returned_as_it_is():
    assert snapshot_fields.field({"x": None}, "x") is None


@pytest.mark.parametrize("state", [{}, {"y": 1}, [], None, "x"])
def test_a_missing_field_is_named(state):
    with pytest.raises(InvalidForm, match="field 'x' is missing"):
        snapshot_fields.field(state, "x")


@pytest.mark.parametrize("value", [0, 1, LAST_SEQUENCE])
def test_an_integer_within_its_bounds_is_returned(value):
    assert snapshot_fields.whole({"x": value}, "x") == value


@pytest.mark.parametrize("value", [-1, LAST_SEQUENCE + 1, 1.0, True, "1", None])
def test_other_values_are_no_integers_of_a_snapshot(value):
    with pytest.raises(InvalidForm, match="field 'x' must be an integer from 0 to"):
        snapshot_fields.whole({"x": value}, "x")


def test_null_is_allowed_only_where_a_value_may_be_missing():
    assert snapshot_fields.whole({"x": None}, "x", missing=True) is None
    with pytest.raises(InvalidForm, match="field 'x' is missing"):
        snapshot_fields.whole({}, "x", missing=True)
    with pytest.raises(InvalidForm, match="from -2 to 2, not 3"):
        snapshot_fields.whole({"x": 3}, "x", -2, 2, missing=True)


def test_a_list_may_have_rows_of_one_width():
    assert snapshot_fields.items({"x": [1, "a"]}, "x") == [1, "a"]
    assert snapshot_fields.items({"x": []}, "x", width=2) == []
    assert snapshot_fields.items({"x": [[1, 2], (3, 4)]}, "x", width=2) == [[1, 2], (3, 4)]


@pytest.mark.parametrize("value", [[[1]], [[1, 2, 3]], [[1, 2], "ab"], [{1: 2, 3: 4}]])
def test_rows_of_another_width_are_refused(value):
    with pytest.raises(InvalidForm, match="field 'x' must be a list of lists of 2"):
        snapshot_fields.items({"x": value}, "x", width=2)


@pytest.mark.parametrize("value", [(), {}, "ab", None])
def test_other_values_are_no_lists(value):
    with pytest.raises(InvalidForm, match="field 'x' must be a list, not"):
        snapshot_fields.items({"x": value}, "x")


def test_a_list_of_texts_has_only_strings():
    assert snapshot_fields.texts({"x": ["a", ""]}, "x") == ["a", ""]
    with pytest.raises(InvalidForm, match="a list of strings, not of 1"):
        snapshot_fields.texts({"x": ["a", 1]}, "x")


def test_an_object_of_integers_is_checked_by_name_and_value():
    form = {"x": {"a": 1, "b": 2}}
    read = snapshot_fields.numbers(form, "x", 1, 2)
    assert read == {"a": 1, "b": 2}
    read["a"] = 9
    assert form["x"]["a"] == 1
    with pytest.raises(InvalidForm, match="a number in field 'x' must be an integer from 1 to 2"):
        snapshot_fields.numbers({"x": {"a": 3}}, "x", 1, 2)
    with pytest.raises(InvalidForm, match="the names in field 'x' must be strings, not 1"):
        snapshot_fields.numbers({"x": {1: 1}}, "x", 1, 2)
    with pytest.raises(InvalidForm, match="field 'x' must be an object, not"):
        snapshot_fields.numbers({"x": [1]}, "x", 1, 2)


def test_a_match_reads_back():
    assert snapshot_fields.read_match(MATCH.to_dict()) == MATCH


def test_an_event_reads_back():
    event = Event("e", {"hours": 3}, 3, probabilities={"hours": 0.5})
    assert snapshot_fields.read_event(event.to_dict()) == event


@pytest.mark.parametrize(
    "broken",
    [
        {"subscriber": 1},
        {"score": -0.1},
        {"score": math.nan},
        {"score": 1e201},
        {"score": "1"},
        {"score": True},
        {"matched": "s"},
        {"matched": [1]},
        {"event": None},
        {"event": {"id": "e", "published_at": 3}},
        {"event": MATCH.event.to_dict() | {"probabilities": [1]}},
    ],
    ids=repr,
)
def test_a_broken_match_is_refused(broken):
    with pytest.raises(TidingsError):
        snapshot_fields.read_match(MATCH.to_dict() | broken)


@pytest.mark.parametrize("name", ["subscriber", "event", "score", "matched"])
def test_every_field_of_a_match_is_needed(name):
    form = MATCH.to_dict()
    del form[name]
    with pytest.raises(InvalidForm, match=f"field '{name}' is missing"):
        snapshot_fields.read_match(form)


@pytest.mark.parametrize("score", [0, 1, 0.0, 1e200])
def test_a_score_is_any_number_up_to_the_largest(score):
    assert snapshot_fields.read_match(MATCH.to_dict() | {"score": score}).score == score
