"""Indexes by name: each is created empty, and answers."""

import pytest

from tidings.index.registry import INDEXES
from tidings.model.records import Event, Subscription


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_is_created_empty_and_answers(name: str) -> None:
    index = INDEXES[name]()
    event = Event("e", {"x": 1}, 0)
    assert list(index.matching(event)) == []
    assert index.top(event, 3) == []
    index.add(Subscription("s", "u", where="x = 1", score=2))
    assert [each.id for each in index.matching(event)] == ["s"]
    assert index.top(event, 3) == index.top(event, 1) == [("s", 2.0)]
    assert {"predicates", "subscriptions"} <= {*index.counters()}
    index.remove("s")
    assert index.top(event, 3) == []


def test_the_reference_is_among_them() -> None:
    assert next(iter(INDEXES)) == "scan"
