"""Windows by name: each is read from its form, opens empty, and says what it is."""

import json
from typing import Any

import pytest
from tests.rules.streams import chooser

from tidings.errors import InvalidPolicy
from tidings.model import named_parts
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window.protocol import Moment
from tidings.window.registry import WINDOWS

FORMS: dict[str, dict[str, Any]] = {
    "continuous": {},
    "periodic": {"length": "10s"},
    "sliding": {"length": 3},
    "jumping": {"length": 4, "step": 2},
    "history": {"length": 3},
}


def test_there_is_a_form_for_each() -> None:
    assert FORMS.keys() == WINDOWS.keys()


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_opens_empty_and_continues_from_its_snapshot(name: str) -> None:
    part = named_parts.read(WINDOWS, "window", {"name": name, **FORMS[name]})
    assert type(part) is WINDOWS[name]
    assert part.name == name
    policy = Policy(k=2, window=part)
    windows = [part.open(chooser(policy)) for _ in range(2)]
    assert windows[0].current(Moment(0, 0)) == windows[0].advance(Moment(0, 0)) == []
    for number in range(1, 9):
        match = Match("u", Event(f"e{number}", {"n": number}, number, number), 0.5, ("s",))
        now = Moment(match.event.published_us, number)
        first, second = [window.offer(match, now) for window in windows]
        assert first == second
        state = json.loads(json.dumps(windows[1].snapshot()))
        windows[1] = part.open(chooser(policy))
        windows[1].restore(state)
    end = Moment(10**9, 9)
    assert windows[0].advance(end) == windows[1].advance(end)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidPolicy) as error:
        named_parts.read(WINDOWS, "window", "foo")
    assert str(error.value) == f"unknown window 'foo'; expected one of: {', '.join(WINDOWS)}"
