"""Policies in words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.streams import WINDOWS, plain_or_diverse, policies

from tidings import (
    Continuous,
    Different,
    DivRank,
    Exponential,
    Graph,
    History,
    Jumping,
    Periodic,
    Policy,
    Quiet,
    Quota,
    Relaxed,
    Sliding,
)
from tidings.diversify.distance import Overlap
from tidings.formats.policy_words import describe_policy

ATHENS = "Europe/Athens"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (Continuous(), "each match at once if it is among the best 10 so far"),
        (
            Continuous(expires="1h", wait=True),
            (
                "each match at once if it is among the best 10 of the last hour, once there are "
                "that many"
            ),
        ),
        (Periodic("90m"), "the best 10 of every 1 hour 30 minutes"),
        (Periodic(100, count="published"), "the best 10 of every 100 publications"),
        (Periodic("1d", origin="2026-01-05"), "the best 10 of every day since 2026-01-05"),
        (
            Periodic(at=["08:00", "17:30"], days=["mon", "fri"], zone=ATHENS),
            "the best 10 at 08:00 and 17:30 on mon and fri Athens time",
        ),
        (Periodic(at="08:00"), "the best 10 at 08:00 UTC"),
        (Sliding(100), "after each match, the best 10 of the last 100 matches"),
        (
            Sliding(50, delivered="leave"),
            "after each match, the best 10 of the last 50 matches, without those delivered before",
        ),
        (
            Jumping(9, 1, delivered="leave"),
            "after every match, the best 10 of the last 9 matches, without those delivered before",
        ),
        (
            History("2h"),
            (
                "each match at once if it does not worsen the best 10 of what was delivered of the "
                "last 2 hours"
            ),
        ),
        (
            History(9, strict=True),
            (
                "each match at once if it improves the best 10 of what was delivered of the last 9 "
                "matches"
            ),
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_window_says_when_and_of_what(window: Any, words: str) -> None:
    assert describe_policy(Policy(window=window)) == f"{words}, ranked by preference"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Different(), "nothing nearer than 0.2 (overlap) to what came in the last week"),
        (
            Different(0.5, "12h", "jaccard"),
            "nothing nearer than 0.5 (jaccard) to what came in the last 12 hours",
        ),
        (Quota(5), "at most 5 a day, the best"),
        (Quota(5, zone=ATHENS), "at most 5 a day Athens time, the best"),
        (
            Quota(1, "hour", pick="first", urgent=0.9),
            "at most 1 an hour, as they come, a rank of at least 0.9 at once while some are left",
        ),
        (Quota(2, "12h"), "at most 2 in every 12 hours, the best"),
        (
            Quiet("22:00", "07:00", ATHENS),
            "nothing between 22:00 and 07:00 Athens time, then the best 10 of what came",
        ),
        (
            Quiet("22:00", "07:00", urgent=0.95),
            (
                "nothing between 22:00 and 07:00 UTC unless its rank is at least 0.95, then the "
                "best 10 of what came"
            ),
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_rule_says_what_it_allows(rule: Any, words: str) -> None:
    assert describe_policy(Policy(rules=[rule])).partition("preference; ")[2] == words


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"decay": Exponential(half_life="6h")}, "preference; ranks halve every 6 hours"),
        ({"decay": Exponential(rate=1e-5)}, "preference; ranks halve every 19 hours 15 minutes"),
        ({"decay": "polynomial"}, "preference; ranks fade (polynomial)"),
        ({"scorer": Graph(lambda_=0.7)}, "graph with lambda 0.7"),
        ({"scorer": Relaxed(max)}, "relaxed with aggregate max"),
    ],
)
def test_ranks_and_their_decay_are_named(parts: Any, words: str) -> None:
    assert describe_policy(Policy(**parts)).partition("ranked by ")[2] == words


def test_all_parts_make_one_sentence() -> None:
    policy = Policy(
        k=5,
        window=Periodic("1d"),
        diversify=DivRank(sigma=0.7),
        rules=[Quiet("22:00", "07:00", ATHENS), Quota(5, zone=ATHENS)],
    )
    assert describe_policy(policy) == (
        "the best 5 that differ (divrank with sigma 0.7) of every day, ranked by preference; "
        "at most 5 a day Athens time, the best; "
        "nothing between 22:00 and 07:00 Athens time, then the best 5 that differ (divrank with "
        "sigma 0.7) of what came"
    )


class Random(Overlap):
    """A distance of a user."""

    name = "random"


def test_parts_of_users_are_called_by_their_names() -> None:
    words = describe_policy(Policy(rules=[Different(distance=Random())]))
    assert words.endswith("nothing nearer than 0.2 (random) to what came in the last week")


@given(st.one_of(*(policies(window, plain_or_diverse) for window in WINDOWS.values())))
def test_every_policy_has_words(policy: Policy) -> None:
    assert f"the best {policy.k}" in describe_policy(policy)
