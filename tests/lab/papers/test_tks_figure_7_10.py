"""Costs of matching, and what is claimed of them."""

import pytest

from tidings.lab.papers.tks_figure_7_10 import (
    Cost,
    grows_gradually,
    grows_with_the_space,
    is_at_most_proportional,
    is_constant,
    more_is_satisfied,
    satisfied_tuples,
    space,
)
from tidings.lab.workloads.catalogue import Category, SyntheticCategory, View
from tidings.model.records import Event, Subscription


def test_a_space_has_about_as_many_tuples_as_wanted() -> None:
    view = View("Tea", SyntheticCategory(Category("Tea", 5, 0, 40)).products(30))
    for tuples in (10, 100, 500):
        drawn = space(view, tuples, seed=1)
        assert tuples <= sum(len(one.groups[0]) for one in drawn) < tuples + 32


def test_each_satisfied_tuple_counts_once() -> None:
    parts = [("x like 'a%'", 0.5), ("x = 'ab'", 0.5), ("y = 'ab'", 1.0)]
    asked = [Subscription("s1", "u", any=parts), Subscription("s2", "u", any=parts[:1])]
    events = [Event("e1", {"x": "ab"}, 0), Event("e2", {"x": "b"}, 0)]
    assert satisfied_tuples(asked, events) == 1.0  # two and none


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [
        (grows_with_the_space, 4.0, 1.0),
        (grows_gradually, 4.0, 11.0),
        (more_is_satisfied, 4.0, 1.0),
    ],
)
def test_claims_about_spaces(claim, good: float, bad: float) -> None:
    def costs(growth: float) -> dict[str, dict[int, Cost]]:
        return {"Books": {10: Cost(1.0, 1.0), 100: Cost(growth, growth)}}

    assert claim(costs(good)).holds
    assert not claim(costs(bad)).holds


@pytest.mark.parametrize(
    ("claim", "good", "bad"), [(is_constant, 1.4, 2), (is_at_most_proportional, 9, 11)]
)
def test_claims_about_publications(claim, good: float, bad: float) -> None:
    assert claim({10: Cost(1.0, 1.0), 100: Cost(good, 5.0)}).holds
    assert not claim({10: Cost(1.0, 1.0), 100: Cost(bad, 5.0)}).holds
