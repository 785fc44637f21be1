"""Relaxed matching (RPS): some predicate holds, and the weights of those that hold add up."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidPolicy
from tidings.model.records import Event, Subscription
from tidings.score.relaxed import Relaxed

PHONE = Event("e1", {"carrier": "AT&T", "brand": "HTC", "storage": 32}, 0)
WEIGHTED = [["carrier = 'AT&T'", 0.4], ["brand = 'HTC'", 0.3], ["storage <= 16", 0.7]]


def score(scorer: Relaxed | None = None, **condition: Any) -> float | None:
    built = Subscription("s1", "bob", **condition)
    return (scorer or Relaxed()).prepare([built], []).score(PHONE, built)


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("sum", 0.7), ("max", 0.4), ("min", 0.3), ("mean", 0.35), (math.prod, 0.12), (len, 2)],
)
def test_the_weights_that_hold_are_aggregated(aggregate: Any, expected: float) -> None:
    assert score(Relaxed(aggregate), any=WEIGHTED) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("carrier = 'AT&T' and brand = 'HTC' and storage = 32", 3),
        ("carrier = 'AT&T' and brand = 'Nokia'", 1),
        ("brand = 'Nokia' and color = 'black'", None),
        ("storage >= 16 and storage <= 64", 1),
        ("storage >= 16 and storage <= 20", None),
    ],
)
def test_a_plain_condition_counts_each_predicate_with_weight_one(
    where: str, expected: float | None
) -> None:
    assert score(where=where) == expected


def test_the_best_disjunct_counts() -> None:
    assert score(where="brand = 'HTC' or (carrier = 'AT&T' and storage = 32) or color = 'red'") == 2


def test_a_weight_of_zero_is_still_a_match() -> None:
    assert score(any=[["brand = 'HTC'", 0]]) == 0
    assert score(any=[["brand = 'Nokia'", 5]]) is None


@pytest.mark.parametrize("state", ["inactive", "dead"])
def test_disabled_and_removed_predicates_do_not_count(state: str) -> None:
    brand = ["brand = 'HTC'", 0.3, state]
    assert score(any=[["carrier = 'AT&T'", 0.4], brand]) == 0.4
    assert score(any=[brand]) is None


ENTRIES = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from([0, 0.1, 0.2, 0.3, 2]),
    st.sampled_from(["active", "active", "inactive", "dead"]),
)


@given(
    st.lists(st.lists(ENTRIES, min_size=1, max_size=4), min_size=1, max_size=3),
    st.sets(st.sampled_from("abc")),
)
def test_a_subscribers_rank_is_the_best_sum(
    written: list[list[tuple[str, float, str]]], true: set[str]
) -> None:
    built = [
        Subscription(f"s{n}", "x", any=[[f"{name} = 1", *rest] for name, *rest in entries])
        for n, entries in enumerate(written)
    ]
    sums = []
    for entries in written:
        held = [w for name, w, state in entries if name in true and state == "active"]
        sums += [sum(held)] if held else []
    event = Event("e", dict.fromkeys(true, 1), 0)
    ranked = Relaxed().prepare(built, []).rank(event, built)
    assert ranked == (pytest.approx(max(sums), abs=1e-12) if sums else None)


@given(st.permutations([0.1, 0.2, 0.3, 0.7, 1.1]))
def test_the_order_of_the_weights_does_not_matter(weights: list[float]) -> None:
    entries = [[f"storage <= {32 + n}", weight] for n, weight in enumerate(weights)]
    assert score(any=entries) == 2.4


@pytest.mark.parametrize("aggregate", ["median", None, ["sum"]])
def test_an_unknown_aggregate_is_refused(aggregate: Any) -> None:
    with pytest.raises(InvalidPolicy, match="aggregate is one of 'sum', 'max', 'mean', 'min', not"):
        Relaxed(aggregate)
