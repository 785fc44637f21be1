"""The contract of every registered window, for any parameters."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.window.reference import Publication, Taste
from tests.window.streams import UNTIL_US, match_of, moment_of, policy, streams, tastes

from tidings.errors import InvalidPolicy
from tidings.feed.single import PolicyChooser
from tidings.model import named_parts
from tidings.window import WINDOWS, Moment, Pick, Window

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "continuous": [{}, {"expires": 3}, {"expires": "2s", "wait": True}],
    "periodic": [
        {"length": "3s", "origin": 1},
        {"length": 3, "wait": True},
        {"length": 4, "count": "published"},
    ],
    "sliding": [
        {"length": 3},
        {"length": "3s", "delivered": "leave"},
        {"length": 4, "count": "published", "wait": True},
    ],
    "jumping": [
        {"length": 5, "step": 3},
        {"length": "4s", "step": "2s", "delivered": "leave"},
        {"length": "3s", "step": 2, "wait": True},
        {"length": 5, "step": 2, "count": "published"},
    ],
    "history": [
        {"length": 3},
        {"length": "3s", "strict": True},
        {"length": 4, "count": "published", "wait": True},
    ],
}
FORMS = [{"name": name, **given} for name, all_given in PARAMETERS.items() for given in all_given]
every_window = pytest.mark.parametrize("form", FORMS, ids=str)
few = settings(max_examples=30)


def open_window(form: dict[str, Any], taste: Taste) -> Window:
    part = named_parts.read(WINDOWS, "window", form)
    return part.open(PolicyChooser(policy(taste, part)))


def feed(window: Window, stream: list[Publication]) -> list[Pick]:
    """Offer a stream, and return all deliveries."""
    delivered: list[Pick] = []
    for publication in stream:
        if publication.score is not None:
            delivered += window.offer(match_of(publication), moment_of(publication))
        delivered += window.advance(moment_of(publication))
    return delivered


def end_of(stream: list[Publication]) -> Moment:
    return Moment(UNTIL_US, stream[-1].sequence)


def test_every_registered_window_is_covered() -> None:
    assert set(PARAMETERS) == set(WINDOWS)


@every_window
@few
@given(stream=streams(), taste=tastes)
def test_no_event_is_delivered_twice(
    form: dict[str, Any], stream: list[Publication], taste: Taste
) -> None:
    window = open_window(form, taste)
    ids = [pick.match.event.id for pick in [*feed(window, stream), *window.advance(end_of(stream))]]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {publication.id for publication in stream if publication.score is not None}


@every_window
@few
@given(stream=streams(), taste=tastes, data=st.data())
def test_a_snapshot_at_any_step_continues_alike(
    form: dict[str, Any], stream: list[Publication], taste: Taste, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    window, twin = open_window(form, taste), open_window(form, taste)
    feed(window, stream[:cut])
    twin.restore(json.loads(json.dumps(window.snapshot())))
    assert twin.snapshot() == window.snapshot()
    assert feed(twin, stream[cut:]) == feed(window, stream[cut:])
    assert twin.advance(end_of(stream)) == window.advance(end_of(stream))


@every_window
@few
@given(stream=streams(), taste=tastes)
def test_advancing_twice_delivers_nothing_new(
    form: dict[str, Any], stream: list[Publication], taste: Taste
) -> None:
    window = open_window(form, taste)
    for publication in stream:
        feed(window, [publication])
        assert window.advance(moment_of(publication)) == []
    window.advance(end_of(stream))
    assert window.advance(end_of(stream)) == []


@every_window
@few
@given(stream=streams(), taste=tastes)
def test_the_current_list_has_positions_from_1_and_changes_nothing(
    form: dict[str, Any], stream: list[Publication], taste: Taste
) -> None:
    window = open_window(form, taste)
    for publication in stream:
        feed(window, [publication])
        before = json.dumps(window.snapshot())
        current = window.current(moment_of(publication))
        assert [pick.position for pick in current] == list(range(1, len(current) + 1))
        assert len(current) <= taste.k
        assert current == window.current(moment_of(publication))
        assert json.dumps(window.snapshot()) == before


@every_window
@few
@given(stream=streams(), taste=tastes)
def test_a_delivery_has_its_position_and_window(
    form: dict[str, Any], stream: list[Publication], taste: Taste
) -> None:
    for pick in feed(open_window(form, taste), stream):
        assert 1 <= pick.position <= taste.k
        assert pick.window["name"] == form["name"]
        assert pick.window["start"] <= pick.window["end"]
        assert pick.window["size"] >= 1
        assert pick.at_us >= pick.match.event.published_us


@every_window
def test_the_json_form_reads_back(form: dict[str, Any]) -> None:
    part = named_parts.read(WINDOWS, "window", form)
    assert (
        named_parts.read(WINDOWS, "window", json.loads(json.dumps(named_parts.form(part)))) == part
    )


@pytest.mark.parametrize("name", WINDOWS)
def test_a_new_window_is_empty(name: str) -> None:
    window = open_window({"name": name, **PARAMETERS[name][0]}, Taste(k=2))
    assert window.current(Moment(0, 0)) == window.advance(Moment(UNTIL_US, 99)) == []


@pytest.mark.parametrize(
    ("form", "value", "rule"),
    [
        ({"name": "sliding", "length": 0}, "0", "at least 1"),
        ({"name": "sliding", "length": -3}, "-3", "at least 1"),
        ({"name": "sliding", "length": "0s"}, "0s", "above 0"),
        ({"name": "sliding", "length": 3, "delivered": "stay"}, "stay", "'keep', 'leave'"),
        ({"name": "sliding", "length": 3, "wait": "no"}, "'no'", "true or false"),
        ({"name": "sliding", "length": 3, "size": 3}, "size", "expected one of: length"),
        ({"name": "sliding"}, "length", "needs"),
        ({"name": "continuous", "expires": 0}, "0", "at least 1"),
        ({"name": "continuous", "wait": None}, "None", "true or false"),
        ({"name": "periodic", "length": "0s"}, "0s", "above 0"),
        ({"name": "periodic", "length": "1h", "count": "published"}, "published", "is a count"),
        ({"name": "periodic", "length": "1h", "origin": "noon"}, "noon", "RFC 3339"),
        ({"name": "periodic", "length": 3, "wait": 1}, "1", "true or false"),
        ({"name": "jumping", "length": 3, "step": 0}, "0", "at least 1"),
        ({"name": "jumping", "length": 3, "step": 4}, "step 4", "above length 3"),
        ({"name": "jumping", "length": "3s", "step": "4s"}, "step 4s", "above length 3s"),
        ({"name": "jumping", "length": 3, "step": "4s"}, "step", "length that is a duration"),
        ({"name": "jumping", "length": 3, "step": 1, "wait": "x"}, "'x'", "true or false"),
        ({"name": "jumping", "length": 3, "step": 1, "delivered": 1}, "1", "'keep', 'leave'"),
        ({"name": "history", "length": "1h", "count": "published"}, "published", "is a count"),
        ({"name": "history", "length": 3, "count": "all"}, "all", "'matching', 'published'"),
        ({"name": "history", "length": 3, "strict": 0}, "0", "true or false"),
        ({"name": "history", "length": 3, "wait": "x"}, "'x'", "true or false"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_with_the_value_and_the_rule(
    form: dict[str, Any], value: str, rule: str
) -> None:
    with pytest.raises(InvalidPolicy) as refusal:
        named_parts.read(WINDOWS, "window", form)
    message = str(refusal.value)
    assert form["name"] in message
    assert value in message
    assert rule in message
