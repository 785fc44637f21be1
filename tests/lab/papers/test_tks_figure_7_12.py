"""Claims about NAIVE, BLSH and ILSH, from times that are given."""

import pytest

from tidings.diversify.covers import MaxDivRel
from tidings.diversify.distance import Jaccard
from tidings.lab.papers.tks_figure_7_12 import (
    BLSH,
    ILSH,
    NAIVE,
    TABLE_7_12,
    IndexParameters,
    Measured,
    _Streams,
    advantage_grows,
    at_most_linear,
    blsh_is_always_faster,
    blsh_is_faster,
    both_agree,
    error_costs,
    grows_with_windows,
    hash_functions,
    ilsh_beats_naive_by_far,
    ilsh_is_fastest,
    naive,
    naive_grows_faster,
    update_cost,
    window_matters_little,
    work_of_a_batch,
)

PARAMETERS = IndexParameters(dimensions=(50, 1000), windows=(100, 1000))
GOOD = {NAIVE: {100: 1.0, 1000: 90.0}, BLSH: {100: 1.0, 1000: 10.0}, ILSH: {100: 0.01, 1000: 0.02}}
BAD = {NAIVE: {100: 1.0, 1000: 1.0}, BLSH: {100: 1.0, 1000: 10.0}, ILSH: {100: 2.0, 1000: 20.0}}


def test_naive_chooses_what_the_greedy_algorithm_does() -> None:
    window = _Streams(IndexParameters(dimensions=(8,), windows=(80,), rounds=1), 3).of(8)
    greedy = MaxDivRel(alpha=0.5, distance=Jaccard())
    assert naive(greedy, window, 9) == greedy.choose(window, 9)


def measured(small: float, large: float, times: dict[str, dict[int, float]]) -> Measured:
    """Return times that grow from D = 50 to D = 1000 by factors, for BLSH and ILSH, and NAIVE."""
    result = Measured(PARAMETERS)
    for method, by_window in times.items():
        for w, ms in by_window.items():
            result.ms[50, w, method] = ms
            result.ms[1000, w, method] = ms * (large if method == NAIVE else small)
    return result


@pytest.mark.parametrize(
    "claim", [blsh_is_faster, advantage_grows, ilsh_is_fastest, ilsh_beats_naive_by_far]
)
def test_claims_about_methods(claim) -> None:
    assert claim(GOOD).holds
    assert not claim(BAD).holds


def test_blsh_may_be_faster_in_large_windows_only() -> None:
    curves = {NAIVE: {100: 1.0, 1000: 90.0}, BLSH: {100: 4.0, 1000: 10.0}}
    assert blsh_is_faster(curves).holds
    always = blsh_is_always_faster(curves)
    assert not always.holds
    assert always.ours == "0.25 times as fast at w = 100, 9.00 times as fast at w = 1,000"
    assert always.reason.startswith("In windows of up to 100 ")
    assert blsh_is_always_faster({**curves, NAIVE: {100: 5.0, 1000: 90.0}}).holds


def test_claims_about_dimensions() -> None:
    good, bad = measured(8, 12, GOOD), measured(40, 2, BAD)
    for method in (BLSH, ILSH):
        assert at_most_linear(good, method, "-").holds
        assert not at_most_linear(bad, method, "-").holds
    assert naive_grows_faster(good).holds
    assert not naive_grows_faster(bad).holds
    assert window_matters_little(good).holds
    assert not window_matters_little(bad).holds


def test_claims_about_errors_and_windows() -> None:
    curves = {"e = 0.05": {10: 2.0, 20: 4.0}, "e = 0.1": {10: 1.0, 20: 3.0}}
    assert error_costs(curves).holds
    assert not error_costs(dict(reversed(curves.items()))).holds
    assert grows_with_windows(curves).holds
    assert not grows_with_windows({"e = 0.1": {10: 3.0, 20: 1.0}}).holds


def test_claims_about_updates_and_work() -> None:
    assert update_cost(TABLE_7_12).holds
    assert not update_cost({50: 1.0, 1000: 30.0}).holds
    assert not update_cost({50: 1.0, 1000: 0.9}).holds
    assert hash_functions(0.1, 0.5) == 100
    assert work_of_a_batch(PARAMETERS, 50).holds
    assert not work_of_a_batch(IndexParameters(windows=(100,)), 50).holds
    assert both_agree([True, True]).holds
    assert not both_agree([True, False]).holds
