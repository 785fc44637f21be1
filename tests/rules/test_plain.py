"""Rules by definition, on cases small enough to be worked out by hand."""

from typing import Any

import pytest
from hypothesis import given
from tests.rules.streams import chooser, pick, picks, policies

from tidings.model.values import format_time, parse_time_us
from tidings.policy import Policy
from tidings.rules.plain import RuleChange, plain_rules
from tidings.window import Pick

END = parse_time_us("2026-12-31")


def passed(rules: list[Any], *chosen: Pick, until: str = "2026-12-31", **more: Any) -> list[str]:
    """Return the events that pass, with the hour and minute at which they do."""
    policy = Policy(k=2, rules=rules)
    due = plain_rules(policy.rules, chooser(policy), chosen, parse_time_us(until), **more)
    return [f"{each.match.event.id} {format_time(each.at_us)[8:16]}" for each in due]


def at(name: str, time: str, rank: float = 0.5, **attributes: Any) -> Pick:
    return pick(name, f"2026-11-{time}Z", rank, **attributes)


def test_without_rules_everything_passes_unchanged() -> None:
    chosen = [at("a", "15T10:00"), at("b", "15T10:00"), at("c", "15T11:00")]
    policy = Policy()
    assert plain_rules((), chooser(policy), chosen, END) == chosen
    assert plain_rules((), chooser(policy), [], END) == []


def test_nothing_passes_twice_within_a_distance_and_a_time() -> None:
    rule = {"name": "different", "min": 0.5, "within": "1h"}
    chosen = [
        at("a", "15T10:00", genre="drama"),
        at("b", "15T10:30", genre="drama"),
        at("c", "15T10:30", genre="comedy"),
        at("d", "15T11:00", genre="drama"),  # a is an hour old: no longer compared
        at("e", "15T11:00", genre="drama"),
    ]
    assert passed([rule], *chosen) == ["a 15T10:00", "c 15T10:30", "d 15T11:00"]


def test_a_distance_of_the_least_is_enough() -> None:
    chosen = [at("a", "15T10:00", x=1, y=1), at("b", "15T10:01", x=1, y=2)]
    for least, count in ((0.5, 2), (0.51, 1)):
        assert len(passed([{"name": "different", "min": least}], *chosen)) == count


def test_a_quota_passes_what_comes_first() -> None:
    rule = {"name": "quota", "n": 1, "pick": "first"}
    chosen = [at("a", "15T10:00", 0.1), at("b", "15T11:00", 0.9), at("c", "16T00:00", 0.1)]
    assert passed([rule], *chosen) == ["a 15T10:00", "c 16T00:00"]


def test_a_quota_waits_for_better_ones_that_are_expected() -> None:
    first = [at(f"a{n}", f"15T{n:02d}:00", 0.9) for n in range(2)]
    # Two are expected, all of them better: at noon one is, for one place.
    chosen = [*first, at("low", "16T12:00", 0.5), at("lower", "16T13:00", 0.4)]
    assert passed([{"name": "quota", "n": 1}], *chosen) == [
        "a0 15T00:00",
        "low 17T00:00",
    ]
    urgent = {"name": "quota", "n": 1, "urgent": 0.5}
    assert passed([urgent], *chosen)[1] == "low 16T12:00"


def test_what_an_empty_period_shows_is_that_nothing_comes() -> None:
    first = [at(f"a{n}", f"13T{n:02d}:00", 0.9) for n in range(4)]
    assert passed([{"name": "quota", "n": 1}], *first, at("low", "15T00:00", 0.1)) == [
        "a0 13T00:00",
        "low 15T00:00",
    ]


def test_quiet_hours_release_the_best_together() -> None:
    chosen = [at("a", "15T23:00", 0.1), at("b", "16T01:00", 0.9), at("c", "16T06:59", 0.5)]
    rule = {"name": "quiet"}
    assert passed([rule], *chosen) == ["b 16T07:00", "c 16T07:00"]
    assert passed([rule], *chosen, until="2026-11-16T06:59Z") == []
    assert passed([rule], at("d", "16T07:00")) == ["d 16T07:00"]
    assert passed([{"name": "quiet", "urgent": 0.9}], *chosen)[0] == "b 16T01:00"


def test_rules_apply_in_one_order_however_they_are_listed() -> None:
    """What is dropped by `different` takes nothing from the quota."""
    rules: list[Any] = [{"name": "quota", "n": 2, "pick": "first"}, "different"]
    chosen = [
        at("a", "15T10:00", genre="drama"),
        at("b", "15T10:01", genre="drama"),
        at("c", "15T10:02", genre="comedy"),
    ]
    for listed in (rules, rules[::-1]):
        assert passed(listed, *chosen) == ["a 15T10:00", "c 15T10:02"]


def test_what_comes_in_a_pause_was_not_received() -> None:
    paused_until = parse_time_us("2026-11-15T10:30Z")
    chosen = [at("a", "15T10:00", genre="drama"), at("b", "15T11:00", genre="drama")]
    assert passed(["different"], *chosen, is_paused=lambda us: us < paused_until) == [
        "a 15T10:00",
        "b 15T11:00",
    ]


def test_new_rules_take_over_what_old_ones_held() -> None:
    night = [at("a", "15T23:00", 0.9), at("b", "15T23:30", 0.1), at("c", "15T23:40", 0.5)]
    us = parse_time_us("2026-11-16T03:00Z")
    gone = [RuleChange(3, us, ())]
    assert passed(["quiet"], *night, changes=gone) == ["a 16T03:00", "c 16T03:00"]
    kept = [RuleChange(3, us, Policy(rules=["quiet"]).rules)]
    assert passed(["quiet"], *night, changes=kept) == ["a 16T07:00", "c 16T07:00"]


def test_an_added_rule_compares_what_is_published_from_then_on() -> None:
    chosen = [
        at("a", "15T10:00", genre="drama"),
        at("b", "15T11:00", genre="drama"),
        at("c", "15T12:00", genre="drama"),
    ]
    change = RuleChange(1, parse_time_us("2026-11-15T10:30Z"), Policy(rules=["different"]).rules)
    assert passed([], *chosen, changes=[change]) == ["a 15T10:00", "b 15T11:00"]


def test_a_new_quota_counts_what_has_passed_in_the_period() -> None:
    chosen = [at("a", "15T10:00"), at("b", "15T12:00"), at("c", "15T13:00")]
    one, two = ({"name": "quota", "n": n, "pick": "first"} for n in (1, 2))
    us = parse_time_us("2026-11-15T11:00Z")
    more = [RuleChange(1, us, Policy(rules=[two]).rules)]
    assert passed([one], *chosen, changes=more) == ["a 15T10:00", "b 15T12:00"]
    fewer = [RuleChange(1, us, Policy(rules=[one]).rules)]
    assert passed([two], *chosen, changes=fewer) == ["a 15T10:00"]


@given(policies, picks())
def test_deliveries_are_picks_in_order_of_time_and_each_at_most_once(
    policy: Policy, chosen: list[Pick]
) -> None:
    end = chosen[-1].at_us + 40 * 86_400_000_000
    due = plain_rules(policy.rules, chooser(policy), chosen, end)
    times = [each.at_us for each in due]
    assert times == sorted(times)
    ids = [each.match.event.id for each in due]
    assert len(ids) == len({*ids})
    by_id = {each.match.event.id: each for each in chosen}
    for each in due:
        assert each.at_us >= by_id[each.match.event.id].at_us
        assert each.match == by_id[each.match.event.id].match


@pytest.mark.parametrize("n", [1, 2, 3])
@given(picks())
def test_a_quota_is_never_exceeded(n: int, chosen: list[Pick]) -> None:
    policy = Policy(rules=[{"name": "quota", "n": n, "per": "1d"}])
    end = chosen[-1].at_us + 40 * 86_400_000_000
    due = plain_rules(policy.rules, chooser(policy), chosen, end)
    # What is held is released at the end of its period, and counts in that one.
    periods = [(each.at_us - (each not in chosen)) // 86_400_000_000 for each in due]
    assert all(periods.count(period) <= n for period in periods)
