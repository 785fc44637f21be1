"""p-values of laws, by synthetic sets."""

from itertools import product

import numpy as np
import pytest

from tidings.lab.papers.tks_table_7_10 import (
    LAWS,
    POWER_LAW,
    TABLE,
    alternatives_are_refused,
    fitted,
    most_are_good,
    p_value,
    power_law_is_best,
    size_does_not_matter,
)


def sample(law: str, size: int = 150) -> np.ndarray:
    rng = np.random.default_rng(3)
    if law == POWER_LAW:
        return rng.zipf(2.2, size).astype(float)
    if law == "log-normal":
        return np.maximum(1, np.rint(rng.lognormal(3, 0.4, size)))
    return 1 + np.floor(rng.exponential(30, size))


# A wide log-normal law is close to a power law, and would be accepted.
PAIRS = [pair for pair in product(LAWS, LAWS) if pair != ("log-normal", POWER_LAW)]


@pytest.mark.parametrize(("law", "drawn"), PAIRS)
def test_only_the_law_that_values_were_drawn_from_is_accepted(law: str, drawn: str) -> None:
    p = p_value(LAWS[law], sample(drawn), 20, np.random.default_rng(1))
    assert p > 0.1 if law == drawn else p < 0.1


def test_a_fit_has_the_exponent_of_the_law() -> None:
    assert fitted(LAWS[POWER_LAW], sample(POWER_LAW, 3000)).alpha == pytest.approx(2.2, abs=0.1)


def test_equal_votes_are_no_power_law() -> None:
    votes = np.full(20, 34.0)
    assert p_value(LAWS[POWER_LAW], votes, 10, np.random.default_rng(1)) == 0


@pytest.mark.parametrize("fits", [True, False])
def test_claims_follow_from_the_values(fits: bool) -> None:
    bad = {name: dict.fromkeys(of, 0.001) for name, of in TABLE.items()}
    power, other = (TABLE, bad) if fits else (bad, TABLE)
    assert most_are_good(power).holds == fits
    values = {
        law: {
            name: power[name] if law == POWER_LAW else other[name]
            for name in ("Automotive", "Home")
        }
        for law in LAWS
    }
    assert alternatives_are_refused(values).holds == fits
    assert power_law_is_best(values).holds == fits


def test_p_values_that_depend_on_k_are_shown() -> None:
    assert size_does_not_matter(TABLE).holds
    assert not size_does_not_matter({name: {20: 0.9, 500: 0.1} for name in TABLE}).holds


def test_p_values_of_zero_are_named_where_they_decide_a_claim() -> None:
    zero = size_does_not_matter({name: {20: 0.0, 500: 0.001} for name in TABLE})
    assert (zero.holds, zero.ours) == (True, "by 0.00, since all are 0")
    assert size_does_not_matter(TABLE).ours == "by 0.10"
