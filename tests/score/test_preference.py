"""Preference ranking (PREF 3), judged by its definitions over conjunctions of small intervals."""

import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidPolicy, InvalidSubscription
from tidings.model.records import Event, Subscription
from tidings.score.preference import Preference, prefranks, winnow

DRAMA, BURTON = "genre = 'drama'", "genre = 'drama' and director = 'T. Burton'"
BIG_FISH = Event("e1", {"genre": "drama", "director": "T. Burton", "year": 2003}, 0)
Prefers = list[tuple[str, str]]


def subscriptions(*written: tuple[str, float | None]) -> list[Subscription]:
    return [
        Subscription(f"s{n}", "addison", where=where, prefrank=prefrank)
        for n, (where, prefrank) in enumerate(written, 1)
    ]


def rank(*written: tuple[str, float | None], scorer: Preference | None = None) -> float | None:
    built = subscriptions(*written)
    return (scorer or Preference()).prepare(built, []).rank(BIG_FISH, built)


@pytest.mark.parametrize(("subscriber", "burton"), [("addison", 0.9), ("carson", 0.5)])
def test_the_more_specific_subscription_overrules_the_general_one(
    subscriber: str, burton: float
) -> None:
    """PREF 3.2: Addison likes Burton's dramas better than other dramas, Carson less."""
    assert rank((DRAMA, 0.7), (BURTON, burton)) == burton, subscriber


def test_a_more_specific_subscription_that_does_not_match_overrules_nothing() -> None:
    assert rank((DRAMA, 0.7), ("genre = 'drama' and director = 'S. Spielberg'", 0.1)) == 0.7
    assert rank(("genre = 'horror'", 0.7)) is None


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("max", 0.9), ("min", 0.2), ("mean", 0.55), ("sum", 1.1)]
)
def test_equal_conditions_are_both_most_specific(aggregate: str, expected: float) -> None:
    same = "director = 'T. Burton' and genre in ('drama')"
    ranked = rank((BURTON, 0.2), (same, 0.9), (DRAMA, 1), scorer=Preference(aggregate))
    assert ranked == expected


def test_a_disjunction_is_more_specific_if_each_of_its_conjunctions_is() -> None:
    either = f"({BURTON}) or (genre = 'drama' and year < 1990)"
    assert rank((DRAMA, 0.7), (either, 0.3)) == 0.3
    assert rank((DRAMA, 0.7), (f"({BURTON}) or year = 2003", 0.3)) == 0.7
    assert rank((f"{DRAMA} or genre = 'horror'", 0.9), (DRAMA, 0.4)) == 0.4


def test_a_sum_is_weighted_by_the_ids_of_the_subscriptions() -> None:
    scorer = Preference("weighted sum", weights={"s1": 0.5, "s2": 2})
    ranked = rank(("year = 2003", 0.4), (DRAMA, 0.3), ("year > 2000", 1), scorer=scorer)
    assert ranked == pytest.approx(0.5 * 0.4 + 2 * 0.3)


def test_one_subscription_alone_scores_its_prefrank() -> None:
    general, burton, horror = built = subscriptions((DRAMA, 0.7), (BURTON, 0.9), ("genre = 'x'", 1))
    ranker = Preference().prepare(built, [])
    assert [ranker.score(BIG_FISH, hit) for hit in (general, burton, horror)] == [0.7, 0.9, None]


PREFERS = [("s1", "s3"), ("s2", "s3"), ("s3", "s4"), ("s2", "s5"), ("s5", "s4")]


def test_winnow_removes_the_undominated_level_by_level() -> None:
    levels = winnow(["s1", "s2", "s3", "s4", "s5", "s6"], PREFERS)
    assert levels == [{"s1", "s2", "s6"}, {"s3", "s5"}, {"s4"}]


def test_prefrank_follows_from_the_level_and_the_longest_path() -> None:
    ranked = prefranks(["s1", "s2", "s3", "s4", "s5", "s6"], PREFERS)
    expected = {"s1": 1, "s2": 1, "s6": 1, "s3": 2 / 3, "s5": 2 / 3, "s4": 1 / 3}
    assert ranked == pytest.approx(expected)


def test_an_explicit_prefrank_wins_and_unknown_ids_are_ignored() -> None:
    built = subscriptions((DRAMA, None), (BURTON, None), ("year = 2003", 0.3))
    prefers = [("s1", "s2"), ("s1", "s3"), ("s2", "s9"), ("s9", "s1")]
    ranker = Preference().prepare(built, prefers)
    assert ranker.prefranks == {"s1": 1, "s2": 0.5, "s3": 0.3}


def test_without_preferences_every_subscription_has_rank_one() -> None:
    assert rank((DRAMA, None)) == 1


NAMES = "abcdef"
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=10)


def longest(item: str, steps: Callable[[str], list[str]]) -> int:
    return max((1 + longest(after, steps) for after in steps(item)), default=0)


@given(st.permutations(NAMES), PAIRS)
def test_levels_and_prefranks_are_by_longest_paths(order: list[str], pairs: Prefers) -> None:
    """In a graph without cycles, the level of a node is 1 + the longest path that ends there."""
    prefers = [(x, y) for x, y in pairs if order.index(x) < order.index(y)]
    above = {item: longest(item, lambda y: [x for x, z in prefers if z == y]) for item in NAMES}
    diameter = max(above.values())
    expected = {item: (diameter + 1 - above[item]) / (diameter + 1) for item in NAMES}
    assert prefranks(NAMES, prefers) == pytest.approx(expected)


def reachable(pairs: Prefers, start: str) -> set[str]:
    ranked: set[str] = set()
    grown = {y for x, y in pairs if x == start}
    while grown - ranked:
        ranked |= grown
        grown |= {y for x, y in pairs if x in ranked}
    return ranked


@given(PAIRS)
def test_a_cycle_is_refused_and_the_error_names_it(pairs: Prefers) -> None:
    if not any(item in reachable(pairs, item) for item in NAMES):
        assert len(prefranks(NAMES, pairs)) == len(NAMES)
        return
    with pytest.raises(InvalidSubscription, match="preferences form a cycle: ") as caught:
        prefranks(NAMES, pairs)
    named = re.findall(r"\b[a-f]\b(?= >|$)", str(caught.value).split(": ")[1])
    assert named[0] == named[-1]
    assert len(named) == len(set(named)) + 1
    assert set(pairwise(named)) <= set(pairs)


Box = dict[str, tuple[int, int]]
INTERVALS = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: tuple(sorted(pair)))
BOXES = st.dictionaries(st.sampled_from("xy"), INTERVALS, min_size=1)
RANKS = st.sampled_from([0, 0.25, 0.5, 1])
WRITTEN = st.lists(
    st.tuples(st.lists(BOXES, min_size=1, max_size=2), RANKS), min_size=1, max_size=5
)
AGGREGATES: dict[str, Any] = {
    "max": max,
    "min": min,
    "sum": sum,
    "mean": lambda ranks: math.fsum(ranks) / len(ranks),
}


def text(boxes: list[Box]) -> str:
    one = [[f"{name} between {low} and {high}" for name, (low, high) in b.items()] for b in boxes]
    return " or ".join(f"({' and '.join(parts)})" for parts in one)


def covers(general: list[Box], special: list[Box]) -> bool:
    def over(wide: Box, narrow: Box) -> bool:
        pairs = [(wide[name], narrow.get(name, (-9, 9))) for name in wide]
        return all(low <= inner[0] and inner[1] <= high for (low, high), inner in pairs)

    return all(any(over(wide, narrow) for wide in general) for narrow in special)


@given(WRITTEN, st.integers(0, 3), st.integers(0, 3), st.sampled_from([*AGGREGATES]))
def test_the_rank_aggregates_the_most_specific_matching_subscriptions(
    written: list[tuple[list[Box], float]], x: int, y: int, aggregate: str
) -> None:
    point = {"x": x, "y": y}
    matching = [
        (boxes, prefrank)
        for boxes, prefrank in written
        if any(all(low <= point[n] <= high for n, (low, high) in box.items()) for box in boxes)
    ]
    specific = [
        prefrank
        for box, prefrank in matching
        if not any(covers(box, other) and not covers(other, box) for other, _ in matching)
    ]
    built = subscriptions(*[(text(boxes), prefrank) for boxes, prefrank in written])
    ranked = Preference(aggregate).prepare(built, []).rank(Event("e", point, 0), built)
    assert ranked == (pytest.approx(AGGREGATES[aggregate](specific)) if specific else None)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"aggregate": "median"}, "aggregate is one of 'max', 'mean', 'min', 'sum', not 'median'"),
        ({"aggregate": ["max"]}, r"aggregate is one of .*, not \['max'\]"),
        (
            {"aggregate": "sum", "weights": {"s1": -1}},
            r"the weight of s1 is between 0 and 1e\+100, not -1",
        ),
        (
            {"aggregate": "sum", "weights": {"s1": 1e101}},
            r"the weight of s1 is between 0 and 1e\+100, not 1e\+101",
        ),
        ({"weights": {"s1": 1}}, "weights go with the aggregate sum, not max"),
    ],
)
def test_invalid_parameters_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        Preference(**arguments)


def test_long_chains_have_levels_and_a_long_cycle_is_abbreviated() -> None:
    steps = [(f"s{number}", f"s{number + 1}") for number in range(50_000)]
    assert len(winnow({name for pair in steps for name in pair}, steps)) == 50_001
    with pytest.raises(InvalidSubscription, match=r"form a cycle: s0 > s1 > .* > s0") as caught:
        winnow({name for pair in steps for name in pair}, [*steps, ("s50000", "s0")])
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("weights", [[1], "a", 5, None, {1: 2}, {"s": "x"}])
def test_weights_of_the_wrong_shape_are_refused(weights: object) -> None:
    with pytest.raises(InvalidPolicy):
        Preference("sum", weights)  # type: ignore[arg-type]
