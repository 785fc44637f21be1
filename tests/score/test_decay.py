"""Forward decay (TKS Def. 4.2.4): it fades with age, keeps its order, and never overflows."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.errors import InvalidPolicy
from tidings.policy import Policy
from tidings.score import DECAYS
from tidings.score.decay import Exponential, Logarithmic, NoDecay, Polynomial
from tidings.score.protocol import Decay

SECOND = 1_000_000
FAR = 250_000_000_000 * SECOND  # nearly the year 9900
LANDMARKS = st.sampled_from([0, -1000.5, 1_700_000_000])
RATES = st.sampled_from([1e-9, 1e-5, 0.5, 3.0, 1e9, 1e300])
FADING = (
    st.builds(Exponential, RATES, LANDMARKS)
    | st.builds(Polynomial, RATES, LANDMARKS)
    | st.builds(Logarithmic, LANDMARKS)
)
DECAY = FADING | st.just(NoDecay())
TIMES = st.integers(-FAR // 10, FAR) | st.integers(0, 100 * SECOND)
SCORES = st.sampled_from([0.0, 5e-324, 1e-9, 0.3, 1.0, 7.0, 1e300])


def g(decay: Any, x: float) -> float:
    """The papers' g; x is the time since the landmark in seconds."""
    if isinstance(decay, Exponential):
        return math.exp(decay.per_second * x)
    x = max(0.0, x)
    return float(x**decay.exponent) if isinstance(decay, Polynomial) else math.log(1 + x)


SMALL = [Exponential(0.1, 5), Polynomial(2, 5), Polynomial(0.5, 5), Logarithmic(5)]


@pytest.mark.parametrize("decay", SMALL)
@pytest.mark.parametrize(("then", "now"), [(6, 6), (6, 10), (10, 100), (5.5, 1000)])
def test_the_fresh_score_is_the_score_times_the_ratio_of_g(
    decay: Decay, then: float, now: float
) -> None:
    expected = 3 * g(decay, then - 5) / g(decay, now - 5)
    fresh = decay.fresh(3, round(then * SECOND), round(now * SECOND))
    assert fresh == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("decay", SMALL)
def test_the_key_is_the_logarithm_of_score_times_g(decay: Decay) -> None:
    assert decay.key(3, 7 * SECOND) == pytest.approx(math.log(3 * g(decay, 7 - 5)))


def test_without_decay_scores_stay_as_they_are() -> None:
    assert NoDecay().key(0.7, FAR) == 0.7
    assert NoDecay().fresh(0.7, 0, FAR) == 0.7


@given(DECAY, SCORES, TIMES, TIMES)
def test_nothing_overflows_in_a_long_stream(
    decay: Decay, score: float, one: int, other: int
) -> None:
    then, now = sorted([one, other])
    assert not math.isnan(decay.key(score, then))
    assert 0 <= decay.fresh(score, then, now) <= score


@given(DECAY, SCORES, TIMES)
def test_nothing_has_faded_at_the_time_of_publication(
    decay: Decay, score: float, then: int
) -> None:
    assert decay.fresh(score, then, then) == score


@given(DECAY, SCORES, TIMES, TIMES, TIMES)
def test_the_fresh_score_never_grows_with_time(
    decay: Decay, score: float, one: int, other: int, third: int
) -> None:
    then, now, later = sorted([one, other, third])
    assert decay.fresh(score, then, later) <= decay.fresh(score, then, now)


@given(DECAY, SCORES, TIMES, TIMES, TIMES)
def test_a_newer_event_never_loses_to_an_equally_relevant_older_one(
    decay: Decay, score: float, one: int, other: int, third: int
) -> None:
    older, newer, now = sorted([one, other, third])
    assert decay.key(score, older) <= decay.key(score, newer)
    assert decay.fresh(score, older, now) <= decay.fresh(score, newer, now)


@given(DECAY, TIMES, SCORES, SCORES)
def test_at_equal_times_the_more_relevant_event_never_loses(
    decay: Decay, when: int, one: float, other: float
) -> None:
    less, more = sorted([one, other])
    assert decay.key(less, when) <= decay.key(more, when)


SECONDS = st.integers(1, 50)


@given(
    st.sampled_from([*SMALL, NoDecay()]),
    st.tuples(st.floats(0.1, 1), SECONDS),
    st.tuples(st.floats(0.1, 1), SECONDS),
    st.lists(SECONDS, min_size=2, max_size=2),
)
def test_keys_order_events_as_fresh_scores_do_at_any_time(
    decay: Decay, one: tuple[float, int], other: tuple[float, int], waits: list[int]
) -> None:
    """Times are after the landmark of 5 s; differences within rounding are no order."""
    (s, t), (r, u) = ((score, (5 + second) * SECOND) for score, second in (one, other))
    for wait in waits:
        now = max(t, u) + wait * SECOND
        first, second = decay.fresh(s, t, now), decay.fresh(r, u, now)
        if not math.isclose(first, second, rel_tol=1e-9):
            assert (first > second) == (decay.key(s, t) > decay.key(r, u))


@pytest.mark.parametrize("decay", [Polynomial(2, landmark=100), Logarithmic(landmark=100)])
@pytest.mark.parametrize(
    ("then", "now", "left"),
    [(50, 60, 1), (50, 100, 1), (100, 100, 1), (50, 101, 0), (100, 101, 0), (101, 101, 1)],
)
def test_before_the_landmark_nothing_fades_and_after_it_the_earlier_is_gone(
    decay: Decay, then: int, now: int, left: float
) -> None:
    assert decay.fresh(0.8, then * SECOND, now * SECOND) == 0.8 * left


@pytest.mark.parametrize("decay", [Polynomial(2, landmark=100), Logarithmic(landmark=100)])
def test_events_up_to_the_landmark_come_last(decay: Decay) -> None:
    assert decay.key(9, 50 * SECOND) == decay.key(0.1, 100 * SECOND) == -math.inf
    assert decay.key(0.1, 100 * SECOND + 1) > -math.inf


@given(FADING, TIMES)
@example(Exponential(1e300), FAR)
def test_a_score_of_zero_comes_last(decay: Decay, when: int) -> None:
    assert decay.key(0.0, when) == -math.inf


@pytest.mark.parametrize("landmark", [86_400, "1970-01-02", datetime(1970, 1, 2, tzinfo=UTC)])
def test_a_landmark_is_a_time(landmark: Any) -> None:
    assert Polynomial(2, landmark).landmark == 86_400


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("exponential", {"rate": 0}, "rate is above 0, not 0"),
        ("exponential", {"rate": -1}, "rate is at least 0, not -1"),
        ("exponential", {"rate": math.inf}, "rate is a finite number, not inf"),
        ("exponential", {"rate": 1, "landmark": None}, "landmark: null is not a time"),
        ("polynomial", {"exponent": 0}, "exponent is above 0, not 0"),
        ("polynomial", {"exponent": "two"}, "exponent is a finite number, not 'two'"),
        ("logarithmic", {"landmark": "soon"}, "landmark: 'soon' is not a time"),
    ],
)
def test_invalid_parameters_are_refused(name: str, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        DECAYS[name](**arguments)


def test_a_score_halves_within_the_half_life() -> None:
    decay = Exponential(half_life="6h")
    assert decay.fresh(1.0, 0, 6 * 3600 * SECOND) == pytest.approx(0.5)
    assert decay.key(1.0, SECOND) == Exponential(math.log(2) / (6 * 3600)).key(1.0, SECOND)


@pytest.mark.parametrize(
    ("decay", "form"),
    [
        (Exponential(half_life="90m"), {"half_life": "90m"}),
        (Exponential(half_life="PT6H"), {"half_life": "PT6H"}),
        (Exponential(half_life=timedelta(hours=6)), {"half_life": "6h"}),  # type: ignore[arg-type]
        (Exponential(rate=0.5), {"rate": 0.5}),
    ],
)
def test_a_form_has_what_was_written(decay: Exponential, form: dict[str, Any]) -> None:
    policy = Policy(decay=decay)
    assert policy.to_dict()["decay"] == {"name": "exponential"} | form
    assert Policy(**policy.to_dict()) == policy


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({}, "give either rate or half_life, not neither"),
        ({"rate": 1, "half_life": "1h"}, "give either rate or half_life, not both"),
        ({"half_life": "0s"}, "half_life is longer than 0, not '0s'"),
        ({"half_life": "soon"}, "half_life: 'soon' is not a duration"),
        ({"half_life": 3600}, "half_life: 3600 is not a duration"),
        ({"rate": 0}, "rate"),
    ],
)
def test_exactly_one_of_rate_and_half_life_is_given(form: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        Policy(decay={"name": "exponential"} | form)
