"""Policies as numbers for the kernels, and the slabs that their windows need."""

from typing import Any

import pytest

from tidings.feed.columnar.kernels import layout, timing
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CONTINUOUS,
    EVER,
    HISTORY,
    JUMPING,
    MATCHING,
    PERIODIC,
    PUBLISHED,
    SLIDING,
    TIME,
    DecayCodes,
    DiversityCodes,
    PolicyCodes,
    SearchCodes,
)
from tidings.feed.columnar.policy_codes import (
    LONGEST,
    decay_codes,
    diversity_codes,
    has_ring,
    list_slabs,
    longest,
    policy_codes,
    ring_slabs,
    search_codes,
    step_axis,
)
from tidings.policy import Policy

SECOND = 1_000_000


def codes(k: int = 3, **window: Any) -> PolicyCodes:
    return policy_codes(Policy(k=k, window=window))


def diversity(diversify: Any, k: int = 3, decay: Any = "none", **window: Any) -> DiversityCodes:
    policy = Policy(k=k, window=window, diversify=diversify, decay=decay)
    return diversity_codes(policy, policy_codes(policy))


def test_a_sliding_window_has_a_length_and_prunes():
    assert codes(name="sliding", length=5) == PolicyCodes(
        k=3,
        window=SLIDING,
        axis=MATCHING,
        length=5,
        step_axis=MATCHING,
        step=5,
        origin=0,
        leave=False,
        wait=False,
        strict=False,
        prune=True,
        capped=False,
    )


def test_a_window_from_which_deliveries_leave_prunes_nothing():
    left = codes(name="sliding", length=5, delivered="leave", wait=True)
    assert (left.leave, left.wait, left.prune) == (True, True, False)


def test_a_continuous_window_without_expiry_keeps_the_best():
    ever = codes(name="continuous")
    assert (ever.window, ever.axis, ever.length) == (BEST, EVER, 0)
    assert (ever.prune, ever.capped) == (False, True)
    expiring = codes(name="continuous", expires="2s")
    assert (expiring.window, expiring.axis, expiring.length) == (CONTINUOUS, TIME, 2 * SECOND)
    assert (expiring.prune, expiring.capped) == (True, False)


def test_a_period_has_an_origin_and_keeps_the_best():
    period = codes(name="periodic", length="10s", origin="1970-01-01T00:00:03Z")
    assert (period.window, period.step_axis, period.step) == (PERIODIC, TIME, 10 * SECOND)
    assert period.origin == 3 * SECOND
    assert (period.prune, period.capped) == (False, True)


def test_a_jumping_window_has_two_axes():
    jumping = codes(name="jumping", length="10s", step=4)
    assert (jumping.window, jumping.axis, jumping.length) == (JUMPING, TIME, 10 * SECOND)
    assert (jumping.step_axis, jumping.step) == (MATCHING, 4)
    assert jumping.prune


def test_a_history_can_be_strict_and_count_published_events():
    history = codes(name="history", length=7, count="published", strict=True)
    assert (history.window, history.axis, history.length) == (HISTORY, PUBLISHED, 7)
    assert (history.strict, history.prune, history.capped) == (True, False, False)


@pytest.mark.parametrize(
    ("window", "ring", "most", "steps"),
    [
        ({"name": "sliding", "length": 5}, True, 5, EVER),
        ({"name": "sliding", "length": 5, "count": "published"}, True, LONGEST, EVER),
        ({"name": "sliding", "length": "5s"}, True, LONGEST, EVER),
        ({"name": "continuous", "expires": 5}, True, 5, EVER),
        ({"name": "continuous"}, False, LONGEST, EVER),
        ({"name": "periodic", "length": 5}, False, LONGEST, MATCHING),
        ({"name": "periodic", "length": "5s"}, False, LONGEST, TIME),
        ({"name": "jumping", "length": 5, "step": 2}, True, 7, MATCHING),
        ({"name": "jumping", "length": "5s", "step": "1s"}, True, LONGEST, TIME),
        ({"name": "history", "length": 5}, False, 4, EVER),
    ],
    ids=repr,
)
def test_a_window_holds_at_most_its_longest(window, ring, most, steps):
    coded = codes(k=3, **window)
    assert has_ring(coded) is ring
    assert longest(coded) == most
    assert step_axis(coded) == steps
    held = most if ring else 3
    assert list_slabs(coded).capacity[-1] > held
    assert ring_slabs(coded).capacity[-1] == held + 1


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("none", DecayCodes(timing.NONE, 0.0, 0.0)),
        ({"name": "exponential", "rate": 0.5}, DecayCodes(timing.EXPONENTIAL, 0.5, 0.0)),
        (
            {"name": "polynomial", "exponent": 2, "landmark": 30},
            DecayCodes(timing.POLYNOMIAL, 2.0, 30.0),
        ),
        ({"name": "logarithmic"}, DecayCodes(timing.LOGARITHMIC, 0.0, 0.0)),
    ],
    ids=repr,
)
def test_a_decay_is_a_kind_with_one_parameter(form, expected):
    assert decay_codes(Policy(decay=form)) == expected


SLIDING_5: dict[str, Any] = {"name": "sliding", "length": 5}
DECAY: dict[str, Any] = {"name": "exponential", "rate": 0.5}


@pytest.mark.parametrize(
    ("kept", "arguments"),
    [
        (3, {"diversify": "divrank"}),
        (64, {"diversify": "maxsum", "k": 64}),
        (-1, {"diversify": "maxsum", "k": 65}),
        (0, {"diversify": "divrank", "k": 1}),
        (0, {"diversify": "divrank", "decay": DECAY}),
        (0, {"diversify": "divrank", "delivered": "leave"}),
        (0, {"diversify": "disc"}),
        (3, {"diversify": "maxdivrel-lsh", "decay": DECAY}),
        (1, {"diversify": "maxdivrel-lsh", "k": 1}),
        (0, {"diversify": "maxdivrel-lsh", "name": "periodic"}),
        (0, {"diversify": "divrank", "name": "jumping", "step": 2}),
    ],
    ids=repr,
)
def test_a_choice_is_kept_where_the_next_one_starts_from_it(kept, arguments):
    assert diversity(**SLIDING_5 | arguments).kept_width == kept


def test_a_diversifier_is_a_rule_with_sigma_and_radius():
    divrank = diversity({"name": "divrank", "sigma": 0.25}, **SLIDING_5)
    assert divrank == DiversityCodes(layout.NEAREST, 0.25, 3)
    disc = Policy(k=2, diversify={"name": "disc", "alpha": 0.3})
    assert search_codes(disc) == SearchCodes(layout.COUNTED, 0.3)
    assert search_codes(Policy(k=2, diversify="maxdivrel")) == SearchCodes(layout.RELEVANT, -1.0)
    assert search_codes(Policy(k=2, diversify="maxmin")) is None
