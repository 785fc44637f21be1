"""A policy that is accepted never takes the memory or the time of others: limits on its parts."""

from typing import Any

import pytest

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.optimal import Optimal
from tidings.errors import InvalidPolicy
from tidings.model.limits import Limits
from tidings.policy import Policy

FINE = {"name": "jumping", "length": "30d", "step": "3s"}
OPTIMAL: dict[str, Any] = {"diversify": "optimal"}


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"k": 2**63}, "k is 9,223,372,036,854,775,808, above the limit k = 10,000,000"),
        ({"k": 2**31}, "above the limit k ="),
        ({"k": 10**5_000}, "k is an integer of 16,610 bits, above the limit k ="),
        ({"k": -(10**5_000)}, "k is a whole number of at least 1, not an integer of 16,610 bits"),
        ({"window": {"name": "sliding", "length": 2**63}}, "sliding: length is .* window_events"),
        ({"window": {"name": "history", "length": 2**64}}, "history: length is .* window_events"),
        ({"window": {"name": "periodic", "length": 2**70}}, "periodic: length .* window_events"),
        ({"window": {"name": "continuous", "expires": 2**63}}, "continuous: expires .* window_ev"),
        ({"window": {"name": "continuous", "expires": "40000d"}}, "in microseconds .* window_us"),
        ({"window": {"name": "sliding", "length": "9" * 400 + "d"}}, "length is a count of events"),
        (
            {"window": {"name": "jumping", "length": "36500d", "step": "0.000001s"}},
            "length / step is 3,153,600,000,000,000, above the limit window_steps = 1,000,000",
        ),
        ({"window": {"name": "jumping", "length": 10**7, "step": 1}}, "window_steps"),
        (
            {"window": FINE, "decay": "logarithmic", "diversify": "divrank"},
            "length / step with a decay is 864,000, above the limit decayed_steps = 1,000",
        ),
        (
            {"diversify": {"name": "maxdivrel-lsh", "tables": 2**20, "rows": 2**10}},
            "tables times rows is 1,073,741,824, above the limit lsh_cells = 100,000",
        ),
        (
            {
                "window": {"name": "sliding", "length": 10**7},
                "diversify": {"name": "maxdivrel-lsh", "tables": 21},
            },
            "10,000,000 events in 21 tables of maxdivrel-lsh are more than the limit lsh_keys",
        ),
        (
            {"k": 8, "window": {"name": "sliding", "length": 40}} | OPTIMAL,
            "the sets of 8 of 40 events are more than the limit optimal_sets = 10,000,000",
        ),
        (
            {"k": 5_000, "window": {"name": "periodic", "length": 9_999}} | OPTIMAL,
            "the sets of 5,000 of 9,999 events are more than the limit optimal_sets",
        ),
    ],
)
def test_what_would_take_the_memory_or_never_end_is_refused(form: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why) as error:
        Policy(**form)
    assert len(str(error.value).encode()) <= 1_000


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"k": 1_001}, "k is 1,001, above the limit k = 1,000"),
        ({"window": {"name": "sliding", "length": 100_001}}, "window_events = 100,000"),
        ({"window": {"name": "sliding", "length": "367d"}}, "window_us"),
        ({"window": {"name": "periodic", "length": "999ms"}}, "below the limit period_us = 1s"),
        (
            {"window": {"name": "jumping", "length": "1h", "step": "0.5s"}},
            "step is 500ms, below the limit period_us = 1s",
        ),
        ({"window": {"name": "jumping", "length": "1d", "step": "1s"}}, "window_steps = 10,000"),
        ({"diversify": {"name": "maxdivrel-lsh", "tables": 101, "rows": 100}}, "lsh_cells"),
        (
            {
                "window": {"name": "sliding", "length": 100_000},
                "diversify": {"name": "maxdivrel-lsh", "tables": 21},
            },
            "lsh_keys = 2,000,000",
        ),
        ({"k": 2, "window": {"name": "sliding", "length": 31}} | OPTIMAL, "optimal_events = 30"),
        ({"k": 2, "window": {"name": "sliding", "length": "1h"}} | OPTIMAL, "optimal_events = 30"),
        (
            {"k": 8, "window": {"name": "sliding", "length": 30}} | OPTIMAL,
            "the sets of 8 of 30 events are more than the limit optimal_sets = 30,000",
        ),
        (
            {"k": 5, "window": {"name": "sliding", "length": 30}} | OPTIMAL,
            "the sets of 5 of 30 events are more than the limit optimal_sets = 30,000",
        ),
        ({"k": 2} | OPTIMAL, "optimal needs a window with a length in events"),
        ({"rules": [{"name": "quota", "n": 1_001}]}, "quota: n is 1,001, above the limit k"),
        (
            {"rules": [{"name": "quota", "n": 1, "per": "999ms"}]},
            "quota: per is 999ms, below the limit period_us = 1s",
        ),
        (
            {"rules": [{"name": "quota", "n": 1, "per": "367d"}]},
            "quota: per in microseconds .* window_us",
        ),
        (
            {"window": {"name": "periodic", "at": ["08:00", "23:59:59.5", "00:00"]}},
            "the time between two of `at` is 500ms, below the limit period_us = 1s",
        ),
        ({"rules": [{"name": "different", "within": "367d"}]}, "different: within .* window_us"),
        (
            {"k": 2, "window": {"name": "sliding", "length": 9}, "rules": ["quiet"]} | OPTIMAL,
            "optimal needs a window with a length in events",
        ),
    ],
)
def test_the_public_preset_refuses_more(form: dict[str, Any], why: str) -> None:
    Policy(**form)
    with pytest.raises(InvalidPolicy, match=why):
        Policy(**form, limits=Limits.public())


@pytest.mark.parametrize(("k", "length"), [(4, 30), (8, 17), (26, 30), (30, 30)])
def test_few_sets_of_few_events_are_public(k: int, length: int) -> None:
    form: dict[str, Any] = {"k": k, "window": {"name": "sliding", "length": length}} | OPTIMAL
    assert Policy(**form, limits=Limits.public()).k == k


@pytest.mark.parametrize(
    "form",
    [
        {"k": 10**7, "window": {"name": "history", "length": 10**7}, "diversify": "divrank"},
        {"window": {"name": "jumping", "length": 10**6, "step": 1}},
        {"window": {"name": "jumping", "length": "36500d", "step": 10}},
        {"window": {"name": "sliding", "length": "36525d"}},
        {"diversify": {"name": "maxdivrel-lsh", "error": 0.01, "threshold": 0.5}},
        {"k": 40, "window": {"name": "sliding", "length": 40}} | OPTIMAL,
        {"k": 10**7, "window": {"name": "sliding", "length": 10_000}} | OPTIMAL,
        {"k": 50, "window": {"name": "history", "length": 10**6}} | OPTIMAL,
        {"decay": {"name": "exponential", "rate": 5e-324}},
        {"decay": {"name": "polynomial", "exponent": 1e308}},
        {"diversify": {"name": "maxdivrel-lsh", "seed": 2**70}},
    ],
)
def test_what_costs_no_more_than_its_events_is_accepted(form: dict[str, Any]) -> None:
    assert Policy(**Policy(**form).to_dict()) == Policy(**form)


def test_the_sets_of_a_choice_are_those_of_the_limits_of_the_policy() -> None:
    optimal = Policy(**OPTIMAL, limits=Limits(optimal_sets=5)).diversify
    assert optimal == Policy(**OPTIMAL).diversify
    assert (vars(optimal)["most_sets"], Optimal().most_sets) == (5, 10_000_000)


@pytest.mark.parametrize("name", [name for name in DIVERSIFIERS if name != "maxdivrel-lsh"])
@pytest.mark.parametrize(
    "distance",
    [
        3,
        None,
        ["overlap"],
        {"name": ["overlap"]},
        {"name": "overlap", "weights": 7},
        {"name": "overlap", "weights": {"a": -1}},
        {"name": "overlap", "weights": {"a": float("nan")}},
        {"name": "overlap", "weights": {"a": 1e308}},
        {"name": "overlap", "weights": {"a": 10**400}},
        {"name": "overlap", "weights": {"a": "1"}},
        {"name": "overlap", "weights": {1: 1}},
        {"name": "overlap", "weights": {"a": [1]}},
        {"name": "far"},
    ],
)
def test_distances_of_any_form_are_refused_by_our_own_errors(name: str, distance: Any) -> None:
    with pytest.raises(InvalidPolicy):
        Policy(diversify={"name": name, "distance": distance})


@pytest.mark.parametrize(
    "form",
    [
        {"window": FINE, "diversify": "divrank"},
        {"window": FINE, "decay": "logarithmic"},
        {"window": FINE, "decay": "logarithmic", "diversify": "disc"},
        {
            "window": {"name": "jumping", "length": 100_000, "step": 10},
            "decay": "logarithmic",
            "diversify": "divrank",
        },
    ],
)
def test_many_steps_are_fine_where_time_alone_changes_no_choice(form: dict[str, Any]) -> None:
    Policy(**form)
