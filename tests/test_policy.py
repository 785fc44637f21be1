"""Policies and subscribers: any parts together, each as itself, its name or its form."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import (
    Continuous,
    DivRank,
    NoDecay,
    NoDiversity,
    Policy,
    Preference,
    Quiet,
    Quota,
    Relaxed,
    Sliding,
    Subscriber,
    loads_policy,
    loads_subscriber,
)
from tidings.errors import InvalidPolicy, InvalidSubscription
from tidings.testing import DECAYS, DIVERSIFIERS, SCORERS, WINDOWS

RULES: list[Any] = [
    "different",
    {"name": "different", "min": 0.4, "within": "12h", "distance": "jaccard"},
    {"name": "quota", "n": 5},
    Quota(2, per="week", zone="Asia/Kathmandu", pick="first", urgent=0.9),
    Quota(3, per="90m"),
    "quiet",
    Quiet("13:30", "14:15:30", zone="America/St_Johns", urgent=0.5),
]


@given(
    st.integers(1, 20),
    st.sampled_from(SCORERS),
    st.sampled_from(DECAYS),
    st.sampled_from(WINDOWS),
    st.sampled_from(DIVERSIFIERS),
    st.lists(st.sampled_from(RULES), max_size=3),
)
def test_any_parts_go_together_and_their_form_reads_back(
    k: int, scorer: Any, decay: Any, window: Any, diversify: Any, rules: Any
) -> None:
    policy = Policy(k, scorer, decay, window, diversify, rules)
    again = loads_policy(json.loads(json.dumps(policy.to_dict())))
    assert again == policy
    assert hash(again) == hash(policy)


def test_a_policy_is_continuous_by_preference_unless_told_otherwise() -> None:
    policy = Policy()
    assert (policy.k, policy.scorer, policy.decay) == (10, Preference(), NoDecay())
    assert (policy.window, policy.diversify) == (Continuous(), NoDiversity())
    assert policy.to_dict() == {"k": 10}


@pytest.mark.parametrize("window", [Sliding(4), {"name": "sliding", "length": 4}])
def test_a_part_may_be_itself_or_its_form(window: Any) -> None:
    assert Policy(window=window).window == Sliding(4)


def test_a_bare_name_stands_for_the_defaults() -> None:
    assert Policy(diversify="divrank").diversify == DivRank(sigma=0.5)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"k": 0}, "k is a whole number of at least 1, not 0"),
        ({"k": True}, "at least 1, not True"),
        (
            {"window": "tumbling"},
            "unknown window 'tumbling'; expected one of: continuous",
        ),
        ({"window": {"name": "sliding"}}, "window sliding needs 'length'"),
        ({"window": {"length": 4}}, "a window is a name or a form with a name"),
        ({"diversify": {"name": "divrank", "sigma": 2}}, "sigma is between 0 and 1, not 2"),
        ({"scorer": 5}, "a scorer is a name or a form with a name, not 5"),
        ({"scorer": Sliding(4)}, "a scorer is a name"),
        ({"decay": {"name": "none", "rate": 1}}, "unknown parameter 'rate'"),
        ({"rules": "quota"}, "rules is a list of rules, not 'quota'"),
        ({"rules": ["quiet"] * 17}, "a policy has at most 16 rules, not 17"),
        ({"rules": ["mute"]}, "unknown rule 'mute'; expected one of: different, quota, quiet"),
        ({"rules": ["quota"]}, "rule quota needs 'n'"),
        ({"rules": [{"name": "quota", "n": 0}]}, "n is a whole number of at least 1, not 0"),
        (
            {"rules": [{"name": "quota", "n": 1, "per": "fortnight"}]},
            "per is hour, day, week or a duration such as 12h, not 'fortnight'",
        ),
        (
            {"rules": [{"name": "quota", "n": 1, "zone": "Mars"}]},
            "zone is the name of a time zone such as UTC or Europe/Athens, not 'Mars'",
        ),
        ({"rules": [{"name": "quota", "n": 1, "pick": "last"}]}, "pick is one of 'best', 'first'"),
        ({"rules": [{"name": "quiet", "start": "25:00"}]}, "start is a time of day such as 07:30"),
        (
            {"rules": [{"name": "quiet", "start": "7:00", "end": "07:00"}]},
            "start is a time of day such as 07:30, not '7:00'",
        ),
        (
            {"rules": [{"name": "quiet", "start": "07:00", "end": "07:00"}]},
            "start and end are different times, not both 07:00",
        ),
        ({"rules": [{"name": "different", "min": 0}]}, "min is above 0 and at most 1, not 0"),
        ({"rules": [{"name": "different", "within": 7}]}, "within is a duration such as 7d, not 7"),
        ({"rules": [{"name": "quiet", "urgent": "now"}]}, "urgent is a finite number, not 'now'"),
    ],
)
def test_a_bad_policy_is_refused(form: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        Policy(**form)


def test_a_function_has_no_written_form() -> None:
    with pytest.raises(InvalidPolicy, match="no JSON form"):
        Policy(scorer=Relaxed(aggregate=max)).to_dict()


def test_the_form_of_a_subscriber_reads_back() -> None:
    subscriber = Subscriber("addison", Policy(k=2), [("s1", "s2"), ("s2", "s3")])
    form = json.loads(json.dumps(subscriber.to_dict()))
    assert form == {"id": "addison", "policy": {"k": 2}, "prefers": [["s1", "s2"], ["s2", "s3"]]}
    assert loads_subscriber(form) == subscriber


def test_a_cycle_of_preferences_is_refused_and_named() -> None:
    with pytest.raises(InvalidSubscription, match=r"addison.*a > b > c > a"):
        Subscriber("addison", prefers=[("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")])


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        ({"id": ""}, "non-empty string, not ''"),
        ({"id": "x", "policy": "sliding"}, "expected a policy, not 'sliding'"),
        ({"id": "x", "prefers": [("a",)]}, "is not a preference"),
        ({"id": "x", "prefers": [("a", 1)]}, "is not a preference"),
        ({"id": "x", "prefers": ["ab"]}, "is not a preference"),
    ],
)
def test_a_bad_subscriber_is_refused(given_as: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSubscription, match=message):
        Subscriber(**given_as)
