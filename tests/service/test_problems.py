"""Problems point at the smallest part of a form that is at fault."""

from typing import Any

import pytest

from tidings.formats.json_forms import loads_event, loads_subscriber, loads_subscription
from tidings.service.problems import HttpProblem, load_form

WISH = {"id": "s1", "subscriber": "ada"}


@pytest.mark.parametrize(
    ("loads", "form", "pointer", "position"),
    [
        (loads_subscription, {**WISH, "where": "genre = 'a' and ="}, "/where", 16),
        (loads_subscription, {**WISH, "where": "a = 1", "prefrank": 2}, "/prefrank", None),
        (loads_subscription, {**WISH, "any": [["a = 1", 1], ["b = = 2", 1]]}, "/any/1/0", 4),
        (loads_subscription, {**WISH, "any": [["a = 1", 1], ["b = 2", -1]]}, "/any/1/1", None),
        (loads_subscription, {**WISH, "where": "a = 1", "more/~": 1}, "/more~1~0", None),
        (loads_subscription, {**WISH, "subscriber": 7, "where": "a = 1"}, "/subscriber", None),
        (loads_subscription, {**WISH, "id": "", "where": "a = 1"}, "/id", None),
        (loads_subscription, WISH, "", None),
        (loads_subscription, [], "", None),
        (loads_subscriber, {"id": "a", "policy": {"k": 0}}, "/policy/k", None),
        (loads_subscriber, {"id": "a", "policy": {"window": "x", "k": 1}}, "/policy/window", None),
        (
            loads_subscriber,
            {"id": "a", "policy": {"rules": ["quiet", {"name": "quiet", "start": "25:00"}]}},
            "/policy/rules/1/start",
            None,
        ),
        (loads_subscriber, {"id": "a", "prefers": [["s1", "s2"], ["s1"]]}, "/prefers/1", None),
        (
            loads_event,
            {"id": "e", "published_at": 0, "attributes": {"a": 1, "b": {}}},
            "/attributes/b",
            None,
        ),
        (loads_event, {"id": "e", "published_at": "x", "attributes": {}}, "/published_at", None),
    ],
)
def test_a_problem_points_at_the_field(
    loads: Any, form: Any, pointer: str, position: int | None
) -> None:
    with pytest.raises(HttpProblem) as caught:
        load_form(loads, form)
    problem = caught.value.to_dict()
    assert (problem["status"], problem["pointer"]) == (422, pointer)
    assert problem.get("position") == position


def test_a_form_that_is_fine_is_read() -> None:
    assert load_form(loads_subscriber, {"id": "ada"}).id == "ada"


def test_a_long_list_is_pointed_at_as_a_whole_after_little_work() -> None:
    reads = 0

    def loads(form: Any) -> object:
        nonlocal reads
        reads += 1
        return loads_event(form)

    form = {"id": "e", "published_at": 0, "attributes": {"a": [1] * 1_000 + [None] + [1] * 1_000}}
    with pytest.raises(HttpProblem) as caught:
        load_form(loads, form)
    assert caught.value.to_dict()["pointer"] == "/attributes/a"
    assert reads < 50
