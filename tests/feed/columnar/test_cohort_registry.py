"""Cohorts by policy: subscribers with the same policy share one."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank
from tidings.errors import InvalidPolicy
from tidings.feed.columnar.cohort_registry import CohortRegistry, has_kernels
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.python_cohort import PythonCohort
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.policy import Policy
from tidings.window.sliding import Sliding

SLIDING: dict[str, Any] = {"name": "sliding", "length": 4}


@dataclass(frozen=True)
class OwnDistance(Jaccard):
    """A distance of a user."""


def own_window() -> Sliding:
    """Return a window of a class that is new each time, and always has the same name."""

    @dataclass(frozen=True)
    class OwnWindow(Sliding):
        pass

    return OwnWindow(4)


def registry() -> CohortRegistry:
    return CohortRegistry(EventTable())


def test_the_same_policy_has_one_cohort_whatever_its_scorer():
    cohorts, policy = registry(), Policy(k=2, window=SLIDING)
    number = cohorts.number(policy)
    assert cohorts.number(policy) == number
    assert cohorts.number(Policy(k=2, window=SLIDING, scorer="exact")) == number
    assert cohorts.number(replace(policy, k=3)) != number
    assert len(cohorts) == 2
    assert [cohort.policy.k for cohort in cohorts] == [2, 3]


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (Policy(window=SLIDING), RankedCohort),
        (Policy(window=SLIDING, diversify="divrank"), DiverseCohort),
        (Policy(diversify=DivRank(distance=OwnDistance())), PythonCohort),
        (Policy(window=own_window()), PythonCohort),
    ],
    ids=["ranked", "diverse", "own distance", "own window"],
)
def test_a_cohort_is_of_the_fastest_kind_that_runs_its_policy(policy, kind):
    cohorts = registry()
    cohort = cohorts[cohorts.number(policy)]
    assert type(cohort) is kind
    assert list(cohorts.objects()) == ([cohort] if kind is PythonCohort else [])
    assert list(cohorts.arrays()) == ([] if kind is PythonCohort else [cohort])


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (SLIDING, True),
        ({"name": "sliding", "length": "4s"}, False),
        ({"name": "continuous"}, False),
        ({"name": "history", "length": "4s"}, True),
    ],
    ids=str,
)
def test_the_best_set_has_kernels_where_the_number_of_sets_is_bounded(window, expected):
    assert has_kernels(Policy(k=2, window=window, diversify="optimal")) is expected


def test_classes_of_the_same_name_have_different_cohorts():
    cohorts, one, other = registry(), own_window(), own_window()
    first = cohorts.number(Policy(window=one))
    assert cohorts.number(Policy(window=other)) != first
    assert cohorts.number(Policy(window=replace(one))) == first


def test_a_cohort_goes_with_its_last_row_and_its_number_is_not_reused():
    cohorts, policy = registry(), Policy(window=SLIDING)
    number = cohorts.number(policy)
    rows = [cohorts[number].enrol(n, f"u{n}") for n in range(2)]
    assert not cohorts.leave(number, rows[0])
    assert not cohorts.discard(number)
    assert cohorts.leave(number, rows[1])
    assert cohorts.numbers() == []
    assert not cohorts.discard(number)
    assert cohorts.number(policy) == number + 1
    assert cohorts.numbers() == [number + 1]


def test_an_empty_cohort_can_be_discarded():
    cohorts = registry()
    number = cohorts.number(Policy(window=SLIDING))
    assert cohorts.discard(number)
    assert len(cohorts) == 0


def test_a_policy_without_a_json_form_is_refused():
    @dataclass(frozen=True)
    class Odd(Sliding):
        extra: Any = None

    cohorts = registry()
    with pytest.raises(InvalidPolicy, match="has no JSON form"):
        cohorts.number(Policy(window=Odd(4, extra=b"bytes")))
    assert len(cohorts) == 0
