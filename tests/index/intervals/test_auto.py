"""The choice of an index, its reason, and its being overruled."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.intervals import interval_index


def chosen(size, length, **wanted):
    rng = np.random.default_rng(1)
    low = rng.random(size)
    score = 1 - length * rng.random(size)
    return interval_index("auto", low, low + length, score, **wanted)


@pytest.mark.parametrize(
    ("size", "length", "wanted", "name"),
    [
        (10, 0.5, {}, "sopt-r-64"),
        (1000, 0.5, {}, "topk-table"),
        (1000, 0.5, {"budget": 0}, "sopt-r-64"),
        (1000, 0.001, {"budget": 20}, "sopt-r-64"),
        (1000, 0.5, {"updates_per_query": 0.1}, "live"),
        (10, 0.5, {"updates_per_query": 0.1}, "live"),
        (1000, 0.5, {"updates_per_query": 0.1, "use": "ir"}, "ir"),
        (1000, 0.5, {"use": "ir"}, "ir"),
    ],
)
def test_what_is_chosen(size, length, wanted, name):
    index = chosen(size, length, **wanted)
    assert index.choice.name == name
    assert index.describe().startswith(f"{name}, since ")


def test_the_table_is_as_deep_as_k():
    assert chosen(1000, 0.5, k=50, budget=1000).chosen.depth == 50


@pytest.mark.parametrize("use", [None, "ir"])
def test_changes_go_to_an_index_that_takes_them(use):
    index = chosen(100, 0.5, updates_per_query=1, use=use)
    new = index.insert(-5, -4, 1)
    index.rescore(new, 2)
    index.replace(0, -4.5, -4, 1)
    assert index.top(-4.5, 3).tolist() == [new, 0]
    index.delete(new)
    assert index.top(-4.5, 3).tolist() == [0]


def test_changes_are_refused_otherwise():
    with pytest.raises(TidingsError, match="sopt-r-64 takes no changes"):
        chosen(10, 0.5).insert(0, 1, 1)


def test_wrong_wishes():
    with pytest.raises(TidingsError, match="k is at least 1"):
        chosen(10, 0.5, k=0)
    with pytest.raises(TidingsError, match="auto cannot use 'b-tree'"):
        chosen(10, 0.5, use="b-tree")
