"""Relevance with and without decay."""

import math

import pytest

from tidings.diversify import Candidate
from tidings.lab.papers.tks_figure_7_7 import (
    Effect,
    ScoredWindow,
    effect_is_proportional,
    freshness_counts_more,
    longer_delays_matter_more,
    order_stays,
    slope,
    top_is_newer,
)
from tidings.model.records import Event

RATE, K = 0.1, 2


def window(ranks: list[float], delay_s: float) -> ScoredWindow:
    """Return a window of publications at equal delays, of these ranks."""
    events = [Event(f"e{place}", {}, place * delay_s) for place in range(len(ranks))]
    pairs = zip(events, ranks, strict=True)
    return ScoredWindow([Candidate(event, rank, rank) for event, rank in pairs])


def effect(ranks: list[float], delay_s: float) -> Effect:
    return Effect.of({"a view": window(ranks, delay_s)}, RATE, K)


FALLING = [5.0, 4.0, 3.0, 2.0, 1.0]


def test_scores_decay_with_age() -> None:
    of = window([1.0, 1.0, 1.0], 10)
    assert of.ages_s() == [20, 10, 0]
    assert of.fresh(0.1) == pytest.approx([math.exp(-2), math.exp(-1), 1])
    assert of.fresh(0.1, later_s=10) == pytest.approx([math.exp(-3), math.exp(-2), math.exp(-1)])
    assert of.top([1.0, 3.0, 3.0], 2) == [2, 1]
    assert of.mean_age_s([0, 1]) == 15
    assert slope(of, of.fresh(0.25)) == pytest.approx(0.25)


def test_an_effect_is_a_mean_over_views() -> None:
    windows = {"one": window(FALLING, 20), "other": window(FALLING[::-1], 20)}
    assert Effect.of(windows, RATE, K) == Effect((70 + 10) / 2, 10, (2 + 0) / 2)


def test_decay_makes_the_top_newer_if_older_ones_were_more_relevant() -> None:
    slow, fast, rising = effect(FALLING, 1), effect(FALLING, 20), effect(FALLING[::-1], 20)
    assert top_is_newer({20: fast}, K).holds
    assert not top_is_newer({20: rising}, K).holds
    assert longer_delays_matter_more({1: slow, 20: fast}, K).holds
    assert not longer_delays_matter_more({1: fast, 20: rising}, K).holds


def test_the_order_stays() -> None:
    windows = {"a view": window([3.0, 1.0, 2.0, 2.0], 2)}
    assert order_stays({2: windows}, RATE).holds


def test_claims_about_rates_follow_from_ages_and_slopes() -> None:
    assert freshness_counts_more({0.1: 9, 0.2: 9, 0.3: 4}).holds
    assert not freshness_counts_more({0.1: 4, 0.2: 9, 0.3: 1}).holds
    assert not freshness_counts_more({0.1: 4, 0.2: 4}).holds
    assert effect_is_proportional({0.1: 0.1, 0.2: 0.2}).holds
    assert not effect_is_proportional({0.1: 0.1, 0.2: 0.3}).holds
