"""The rule `quota`, with what must pass written out."""

import json

import pytest
from tests.rules.streams import chooser, delivered, pick

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.model.values import parse_time_us
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.quota import Quota
from tidings.window import Pick


def day(date: str, *ranks: float) -> list[Pick]:
    """Return one pick an hour, from eight o'clock on."""
    return [
        pick(f"{date[-2:]}-{hour}", f"{date}T{hour:02d}:00Z", rank)
        for hour, rank in enumerate(ranks, start=8)
    ]


def test_the_first_pass_as_they_come() -> None:
    policy = Policy(rules=[Quota(2, pick="first")])
    chosen = [*day("2026-11-15", 0.1, 0.2, 0.9), *day("2026-11-16", 0.1)]
    assert delivered(policy, chosen, "2026-11-17") == [
        "15-8 2026-11-15T08:00:00Z",
        "15-9 2026-11-15T09:00:00Z",
        "16-8 2026-11-16T08:00:00Z",
    ]


def test_without_a_last_period_nothing_is_expected() -> None:
    chosen = day("2026-11-15", 0.1, 0.2, 0.9)
    assert delivered(Policy(rules=[Quota(2)]), chosen, "2026-11-17") == [
        "15-8 2026-11-15T08:00:00Z",
        "15-9 2026-11-15T09:00:00Z",
    ]


def test_low_ranks_wait_for_the_end_of_the_period() -> None:
    # On the second day at eight, 4 x 16/24 x 4/4 better ones than 0.3 are expected: 2.67, for two.
    chosen = [*day("2026-11-15", 0.5, 0.5, 0.5, 0.5), *day("2026-11-16", 0.3, 0.2)]
    assert delivered(Policy(rules=[Quota(2)]), chosen, "2026-11-18")[2:] == [
        "16-8 2026-11-17T00:00:00Z",
        "16-9 2026-11-17T00:00:00Z",
    ]


def test_the_best_held_ones_fill_what_is_left() -> None:
    first = day("2026-11-15", *[0.5] * 8)
    # At eight, 8 x 16/24 x 8/8 = 5.3 better ones are expected for two places. 0.9 passes at once.
    chosen = [*first, *day("2026-11-16", 0.2, 0.4, 0.3, 0.9)]
    assert delivered(Policy(rules=[Quota(2)]), chosen, "2026-11-18")[2:] == [
        "16-11 2026-11-16T11:00:00Z",
        "16-9 2026-11-17T00:00:00Z",
    ]


def test_only_the_last_full_period_counts() -> None:
    # Nothing was chosen on the 16th, so nothing is expected on the 17th.
    chosen = [*day("2026-11-15", *[0.5] * 8), *day("2026-11-17", 0.1)]
    assert delivered(Policy(rules=[Quota(2)]), chosen, "2026-11-18")[2:] == [
        "17-8 2026-11-17T08:00:00Z"
    ]


def test_urgent_events_are_not_held_while_something_is_left() -> None:
    first = day("2026-11-15", *[0.99] * 8)
    chosen = [*first, *day("2026-11-16", 0.9, 0.9)]
    assert delivered(Policy(rules=[Quota(1, urgent=0.9)]), chosen, "2026-11-18")[1:] == [
        "16-8 2026-11-16T08:00:00Z"
    ]
    assert delivered(Policy(rules=[Quota(1)]), chosen, "2026-11-18")[1:] == [
        "16-9 2026-11-17T00:00:00Z"  # equal ranks: the newer one
    ]


@pytest.mark.parametrize(
    ("per", "zone", "second"),
    [
        ("day", "UTC", "2026-03-30T00:00:00Z"),
        # Athens moves from UTC+2 to UTC+3 on that day, which has 23 hours.
        ("day", "Europe/Athens", "2026-03-29T21:00:00Z"),
        ("week", "Europe/Athens", "2026-03-29T21:00:00Z"),
        ("hour", "Europe/Athens", "2026-03-29T01:00:00Z"),
        ("hour", "Asia/Kolkata", "2026-03-29T01:30:00Z"),
        ("36h", "UTC", "2026-03-30T12:00:00Z"),
    ],
)
def test_periods_follow_the_calendar(per: str, zone: str, second: str) -> None:
    quota = Quota(1, per=per, zone=zone)
    state = quota.open(chooser(Policy()))
    first, later = pick("a", "2026-03-29T00:30Z"), pick("b", "2026-03-29T00:45Z")
    assert state.offer(first) == [first]
    assert state.offer(later) == []
    assert state.period.end == parse_time_us(second)
    again = pick("c", second)
    assert state.offer(again) == [again]


def test_another_zone_keeps_what_has_passed_in_the_open_period() -> None:
    athens, manila = (
        Policy(rules=[Quota(2, zone=zone)]) for zone in ("Europe/Athens", "Asia/Manila")
    )
    chain = RuleChain(athens.rules, chooser(athens))
    assert len(chain.offer(day("2026-11-15", 0.5, 0.5), 0)) == 2
    moved = RuleChain(manila.rules, chooser(manila))
    moved.adopt(chain, parse_time_us("2026-11-15T12:00Z"))
    # The day of Manila ends at 16:00 UTC.
    assert moved.offer([pick("late", "2026-11-15T15:59Z")], 0) == []
    assert len(moved.offer([pick("next", "2026-11-15T16:00Z")], 0)) == 1


def test_a_quota_that_is_changed_before_the_first_event_of_a_day_knows_the_day_before() -> None:
    busy = [pick(f"e{n}", f"2026-11-14T{n:02d}:00Z", 0.9) for n in range(10, 20)]
    chain = RuleChain([Quota(3)], chooser(Policy()))
    chain.offer(busy, busy[-1].at_us)
    changed = RuleChain([Quota(2)], chooser(Policy()))
    changed.adopt(chain, parse_time_us("2026-11-15T01:00Z"))
    low = pick("low", "2026-11-15T02:00Z", 0.1)
    assert changed.offer([low], low.at_us) == []
    verdict = changed.take_verdicts()[-1]
    assert (verdict.event, verdict.fate) == ("low", "held")


def test_a_smaller_quota_may_be_used_up_already() -> None:
    policy, smaller = (Policy(rules=[Quota(n)]) for n in (3, 1))
    chain = RuleChain(policy.rules, chooser(policy))
    assert len(chain.offer(day("2026-11-15", 0.5, 0.5, 0.5), 0)) == 3
    changed = RuleChain(smaller.rules, chooser(smaller))
    changed.adopt(chain, parse_time_us("2026-11-15T12:00Z"))
    assert changed.offer([pick("late", "2026-11-15T15:00Z", 1.0)], 0) == []


def test_a_state_with_nothing_chosen_is_small_and_survives() -> None:
    state = Quota(3).open(chooser(Policy()))
    form = json.loads(json.dumps(state.snapshot()))
    other = Quota(3).open(chooser(Policy()))
    other.restore(form)
    assert other.snapshot() == state.snapshot()
    assert other.deadline is None


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"n": 0}, "n is a whole number of at least 1, not 0"),
        ({"n": 2, "per": "month"}, "per is hour, day, week or a duration such as 12h, not 'month'"),
        ({"n": 2, "per": 5}, "per is hour, day, week"),
        (
            {"n": 2, "zone": "Athens"},
            "zone is the name of a time zone such as UTC or Europe/Athens",
        ),
        ({"n": 2, "zone": "../etc/passwd"}, "zone is the name of a time zone"),
        ({"n": 2, "pick": "last"}, "pick"),
        ({"n": 2, "urgent": float("nan")}, "urgent"),
        ({}, "rule quota needs 'n'"),
        ({"n": 2, "size": 2}, "unknown parameter 'size'"),
    ],
)
def test_bad_parameters_are_refused(form: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        Policy(rules=[{"name": "quota", **form}])


@pytest.mark.parametrize(
    "change",
    [
        {"start": "x"},
        {"passed": -1},
        {"chosen": [1]},
        {"chosen": None},
        {"ranks": [-1]},
        {"held": [[1]]},
        {"held": [[{}, 0, 1, {}, 0]]},
    ],
)
def test_damaged_states_are_refused(change: dict[str, object]) -> None:
    state = Quota(3).open(chooser(Policy()))
    with pytest.raises(InvalidForm):
        state.restore(state.snapshot() | change)
