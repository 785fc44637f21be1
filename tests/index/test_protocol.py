"""What indexes without weights or orders of their own do: score all that is found."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.protocol import best_found, has_ranges, own_score, relaxed_score
from tidings.index.scan import Scan
from tidings.model.records import Event, Subscription
from tidings.model.values import Range

NAMES = st.sampled_from(["s1", "s10", "s2", "s3"])
subscriptions = st.dictionaries(
    NAMES,
    st.tuples(st.integers(0, 2), st.sampled_from([None, 0.0, 0.5, 2.0])),
)


def scan_of(drawn: dict[str, tuple[int, float | None]]) -> Scan:
    return Scan(
        Subscription(name, "u", where=f"x >= {low} and y = 1", score=score)
        for name, (low, score) in drawn.items()
    )


@given(subscriptions, st.integers(0, 2), st.integers(0, 5))
def test_without_a_score_those_that_match_have_their_own(
    drawn: dict[str, tuple[int, float | None]], x: int, k: int
) -> None:
    expected = sorted(
        (-(1.0 if score is None else score), name)
        for name, (low, score) in drawn.items()
        if x >= low
    )
    found = best_found(scan_of(drawn), Event("e", {"x": x, "y": 1}, 0), k, None)
    assert found == [(name, -minus) for minus, name in expected[:k]]


@given(subscriptions, st.integers(0, 2), st.integers(0, 5))
def test_with_a_score_those_that_are_touched_are_scored(
    drawn: dict[str, tuple[int, float | None]], x: int, k: int
) -> None:
    def score(event: Event, subscription: Subscription) -> float | None:
        low, own = drawn[subscription.id]
        return None if low == 2 else own or float(low)

    expected = sorted(
        (-(own or float(low)), name) for name, (low, own) in drawn.items() if x >= low != 2
    )
    found = best_found(scan_of(drawn), Event("e", {"x": x}, 0), k, score)
    assert found == [(name, -minus) for minus, name in expected[:k]]


@pytest.mark.parametrize(("score", "own"), [(None, 1.0), (0.0, 0.0), (2.5, 2.5)])
def test_a_score_is_1_unless_it_is_given(score: float | None, own: float) -> None:
    assert own_score(Subscription("s", "u", where="x = 1", score=score)) == own


def relaxed(event: Event, *parts: Any, where: str | None = None) -> float | None:
    return relaxed_score(event, Subscription("s", "u", where=where, any=list(parts) or None))


EVENT = Event("e", {"x": 1, "y": 2}, 0)


def test_the_weights_of_all_that_holds_are_added() -> None:
    assert relaxed(EVENT, ("x = 1", 0.5), ("y = 2", 0.25), ("y = 3", 9)) == 0.75
    assert relaxed(EVENT, ("x = 2", 0.5), ("z = 2", 0.25)) is None
    assert relaxed(EVENT, ("x = 1", 0.0)) == 0.0  # something holds


def test_sums_are_rounded_to_12_decimals() -> None:
    parts = [("x = 1", 0.1), ("y = 2", 0.2), ("x > 0", 1e-13)]
    assert relaxed(EVENT, *parts) == 0.3


def test_the_best_conjunction_counts() -> None:
    assert relaxed(EVENT, where="(x = 1 and y = 3) or (x = 1 and y = 2)") == 2.0
    assert relaxed(EVENT, where="(x = 2 and y = 3) or (x = 1 and y = 3)") == 1.0


def test_weights_are_multiplied_by_the_probability_of_their_attribute() -> None:
    event = Event("e", {"x": 1, "y": 2}, 0, probabilities={"x": 0.5})
    assert relaxed(event, ("x = 1", 0.5), ("y = 2", 0.25)) == 0.5
    assert relaxed(event, ("x > 0", 1), ("x < 9", 1)) == 1.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, False), ("a", False), ([1, 2], False), (Range(1, 2), True), ([0, Range(1, 2)], True)],
)
def test_ranges_are_seen_among_all_values(value: Any, expected: bool) -> None:
    assert has_ranges(Event("e", {"y": 1, "x": value}, 0)) == expected


def test_an_event_without_values_has_no_ranges() -> None:
    assert not has_ranges(Event("e", {}, 0))
